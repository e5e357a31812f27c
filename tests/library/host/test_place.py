# SPDX-License-Identifier: GPL-3.0-or-later
"""What an earlier run has made is found by its files, also where no policy speaks of it now."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from mlhost_limits.containerd.plan import OURS
from mlhost_limits.containers.policy import ContainerPolicy
from mlhost_limits.core.plan import Section
from mlhost_limits.core.policy import Policy, ProvisionOptions
from mlhost_limits.crio.crio_conf import OWN as OF_CRIO
from mlhost_limits.docker.dockerd_flags import CONFIG_PATH
from mlhost_limits.docker.record import find_record_path
from mlhost_limits.places import PLACES, PROVISIONED
from mlhost_limits.podman.containers_conf import OWN
from mlhost_limits.provision import prepare_sections
from mlhost_limits.services.plan import USER_CONF, find_target
from mlhost_limits.shared_memory.model import FSTAB
from mlhost_limits.slurm.plan import DROP_IN
from mlhost_limits.slurm.slurm_conf import SLURM_CONF

BLOCK = "x\n# BEGIN mlhost.limits\ny\n# END mlhost.limits\n"
MADE = {
    "services": [find_target("x.service"), find_target("system.conf"), find_target(USER_CONF)],
    "containerd": [OURS],
    "docker": [find_record_path(CONFIG_PATH), find_record_path("/opt/docker.json")],
    "podman": [OWN],
    "crio": [OF_CRIO],
    "slurm": [DROP_IN, SLURM_CONF],
    "shared_memory": [FSTAB],
}


@pytest.mark.parametrize(
    ("section", "path"), [(name, path) for name, paths in MADE.items() for path in paths]
)
def test_a_file_of_ours_tells_of_its_section(tmp_path: Path, section: str, path: str) -> None:
    def find() -> set[str]:
        return {place.name for place in PLACES if place.is_made(str(tmp_path))}

    assert find() == set()
    for file, text in ((SLURM_CONF, "x\n"), (FSTAB, "x\n"), (path, BLOCK)):
        (tmp_path / file.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file.lstrip("/")).write_text(text)
    assert find() == {section}


@pytest.mark.parametrize("made", [True, False])
def test_a_section_that_nobody_asks_for_any_more_is_taken_back(
    monkeypatch: pytest.MonkeyPatch, made: bool
) -> None:
    asked: dict[str, bool] = {}

    def prepare(name: str) -> Callable[..., Section]:
        def note(_policy: Policy, options: ProvisionOptions, _nr_open: int | None) -> Section:
            asked[name] = options.absent
            return Section(in_effect=(name,))

        return note

    for place in PLACES:
        monkeypatch.setattr(type(place), "is_made", lambda _place, _root: made)
        monkeypatch.setattr(type(place), "prepare", staticmethod(prepare(place.name)))
    options = ProvisionOptions(sections=tuple(name for name in PROVISIONED if name != "podman"))
    policy = Policy({"docker": ContainerPolicy({}, 2**30)})
    sections = prepare_sections(policy, options).values()
    others = dict.fromkeys(("services", "containerd", "crio", "slurm", "shared_memory"), True)
    always = dict.fromkeys(("kernel", "sessions", "docker"), False)
    assert asked == {**(others if made else {}), **always}
    assert [name for one in sections for name in one.in_effect] == ["docker"]


def test_what_is_taken_back_asks_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a host without any file of ours that changes nothing."""
    for place in PLACES:
        monkeypatch.setattr(type(place), "is_made", lambda _place, _root: True)
    for section in prepare_sections(Policy(), ProvisionOptions(check_mode=True)).values():
        assert section.plan.edits == ()
        assert section.plan.problems == ()
        assert section.sysctls == ()
        assert list(section.find_old()) == []
        assert section.in_effect == ()


@pytest.mark.parametrize("wanted", [True, False], ids=["kernel too", "kernel left as it is"])
def test_the_kernel_says_what_every_other_place_may_count_on(
    monkeypatch: pytest.MonkeyPatch, wanted: bool
) -> None:
    """It must stand first: whoever is asked before it does not know which nofile is refused."""
    told: dict[str, int | None] = {}

    def prepare(name: str) -> Callable[..., Section]:
        def note(_policy: Policy, _options: ProvisionOptions, nr_open: int | None) -> Section:
            told[name] = nr_open
            return Section(nr_open=77 if name == "kernel" else None)

        return note

    for place in PLACES:
        monkeypatch.setattr(type(place), "prepare", staticmethod(prepare(place.name)))
    kernel = next(place for place in PLACES if place.name == "kernel")
    monkeypatch.setattr(type(kernel), "leave", lambda _place: Section(nr_open=88))
    options = ProvisionOptions(sections=None if wanted else tuple(set(PROVISIONED) - {"kernel"}))
    prepare_sections(Policy(dict.fromkeys(PROVISIONED)), options)
    others = (name for name in PROVISIONED if name != "kernel")
    assert told == {
        **({"kernel": None} if wanted else {}),
        **dict.fromkeys(others, 77 if wanted else 88),
    }
