# SPDX-License-Identifier: GPL-3.0-or-later
"""A version of a profile stays what it is, and a site may have profiles of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlhost_limits.command_line import parse_words
from mlhost_limits.core import profiles
from mlhost_limits.core.profiles import PROFILE_NAMES, PROFILES, find_profile
from mlhost_limits.core.reader import PolicyError
from mlhost_limits.policy_file import read_policy_within
from mlhost_limits.result import digest_policy
from mlhost_limits.schema import load_policy

from tests.reference.policy_page import SOURCES, find_source, list_stated

DIGESTS = {
    "training@1": "sha256:3af59",
    "multi-node@1": "sha256:7e46e",
    "slurm-node@1": "sha256:29689",
    "kubernetes-node@1": "sha256:7be24",
    "inference@1": "sha256:f767f",
    "workstation@1": "sha256:f33d5",
    "dataloader@1": "sha256:fb81f",
    "deepspeed-zero3-offload@1": "sha256:51465",
    "webdataset@1": "sha256:df3be",
    "simpletuner@1": "sha256:80d43",
    "transformers@1": "sha256:acfd1",
    "trl@1": "sha256:6985a",
}


@pytest.mark.parametrize("name", [name for name in PROFILES if name != "none"])
def test_a_version_states_for_ever_what_it_states(name: str) -> None:
    stated = find_profile(f"{name}@1")
    assert stated is not None
    assert digest_policy(stated)[:12] == DIGESTS[f"{name}@1"]


def test_the_bare_name_is_the_newest_version(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_profile("training") == find_profile("training@1") == PROFILES["training"]
    monkeypatch.setitem(profiles.OLDER, "training@1", {"kernel": {"fs.nr_open": 5}})
    assert find_profile("training@1") == {"kernel": {"fs.nr_open": 5}}
    assert find_profile("training") == find_profile("training@2") == PROFILES["training"]


@pytest.mark.parametrize("name", ["training@0", "training@2", "training@", "@1", "bogus@1", "a/b"])
def test_other_versions_are_refused(name: str) -> None:
    assert name not in PROFILE_NAMES
    with pytest.raises(PolicyError, match="is unknown; accepted are dataloader"):
        load_policy(None, name)


@pytest.mark.parametrize("name", [5, ["training"], None, "", {"a": 1}])
def test_a_profile_is_a_name(name: object) -> None:
    told = r"profile: is empty; accepted are dataloader" if not name else r"profile: .* is unknown"
    with pytest.raises(PolicyError, match=told):
        load_policy({"profile": name, "kernel": {"fs.nr_open": 5}}, "none")


def test_a_policy_may_name_its_profile() -> None:
    given = {"profile": "inference@1", "kernel": {"fs.nr_open": None}}
    found = load_policy(given, "training")
    assert found.stated == load_policy({"kernel": {"fs.nr_open": None}}, "inference").stated
    assert "profile" in given  # It is the caller's.
    assert load_policy({"profile": "workstation"}, "none").stated == PROFILES["workstation"]


@pytest.mark.parametrize("name", ["trl", "inference"])
def test_two_profiles_are_refused(name: str) -> None:
    """What an option names is not silently left out; the same name twice is one."""
    given = {"profile": "inference", "kernel": {"fs.nr_open": None}}
    if name == "inference":
        assert load_policy(given, name).stated == load_policy(given, "training").stated
        return
    told = "the policy names 'inference', and --profile or mlhost_limits_profile 'trl'; one of"
    with pytest.raises(PolicyError, match=told):
        load_policy(given, name)


@pytest.mark.parametrize("name", ["training", "none"])
def test_a_default_that_is_asked_for_is_no_default(name: str) -> None:
    given = {"profile": "inference"}
    words = parse_words(["check", "--profile", name])
    with pytest.raises(PolicyError, match=f"names 'inference', and --profile .* '{name}'; one of"):
        load_policy(given, words.profile)
    assert load_policy(given, parse_words(["check"]).profile).stated == PROFILES["inference"]
    same = parse_words(["check", "--profile", "inference"])
    assert load_policy(given, same.profile).stated == PROFILES["inference"]


def test_a_file_that_a_policy_stands_on_names_the_profile(tmp_path: Path) -> None:
    write(tmp_path, top="profile: ./base.yml\n", base="profile: training@1\n")
    tree = read_policy_within(str(tmp_path / "top.yml"), 9)
    asked = [parse_words(["check", "--profile", name]).profile for name in ("training", "none")]
    assert load_policy(tree.root, asked[0]).stated == PROFILES["training"]
    with pytest.raises(PolicyError, match=r"the policy names 'training@1', and .* 'none'; one of"):
        load_policy(tree.root, asked[1])


def write(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        (folder / f"{name}.yml").write_text(text)


def test_a_site_has_profiles_of_its_own(tmp_path: Path) -> None:
    """What one file removes stays removed, and the whole stands alone."""
    (tmp_path / "site").mkdir()
    write(tmp_path, top="profile: site/gpu.yml\nkernel: {vm/max_map_count: null, fs.nr_open: 9}\n")
    write(tmp_path / "site", gpu="profile: ../base.yml\ncontainers: null\n")
    write(tmp_path, base="profile: training@1\ncontainers: {docker: null, podman: {tasks: 7}}\n")
    tree = read_policy_within(str(tmp_path / "top.yml"), 9)
    stated = load_policy(tree.root, "training").stated
    kernel = {"fs.file-max": 2097152, "fs.nr_open": 9}
    assert stated == {"sessions": PROFILES["training"]["sessions"], "kernel": kernel}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("profile: ./top.yml\n", "top.yml stands on this file itself"),
        ("profile: ./gone.yml\n", "gone.yml"),
        ('profile: "./a\\0b"\n', "profile: './a\\x00b' is not the name of a file"),
        ("kernel: {fs.nr_open: 5}\n", "base.yml: profile: is not stated; in the last file"),
        ("profile: training@9\n", "base.yml: profile: 'training@9' is unknown"),
        ("[1]\n", "base.yml: a list was given; a mapping is accepted"),
    ],
)
def test_a_site_s_own_that_cannot_be_used_is_told(tmp_path: Path, text: str, told: str) -> None:
    write(tmp_path, top="profile: ./base.yml\nkernel: {fs.nr_open: 9}\n", base=text)
    with pytest.raises((ValueError, OSError)) as caught:
        read_policy_within(str(tmp_path / "top.yml"), 9)
    assert told in str(caught.value)


def test_every_value_of_a_profile_has_a_source() -> None:
    stated = {path for profile in PROFILES.values() for path, _value in list_stated(profile)}
    assert all(find_source(path) for path in stated if not path.startswith(("training.", "sess")))
    assert all(any(path.endswith(f".{name}") for path in stated) for name in SOURCES)
