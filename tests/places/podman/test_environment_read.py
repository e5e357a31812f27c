# SPDX-License-Identifier: GPL-3.0-or-later
"""A variable that has Podman read another file leaves unknown what a trial without it passed."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlhost_limits.containers.policy import ContainerPolicy
from mlhost_limits.core.finding import Observation, Requirement, judge
from mlhost_limits.core.reader import Limit
from mlhost_limits.host.image import Tree
from mlhost_limits.podman import environment_read
from mlhost_limits.podman.check import _doubt
from mlhost_limits.podman.environment_read import find_named_files
from mlhost_limits.podman.image import foresee_podman

ALL, SITE = "/etc/environment", "/etc/profile.d/site.sh"


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        (ALL, "CONTAINERS_CONF=/etc/c.conf\n", ["/etc/c.conf"]),
        (SITE, "export A=1 CONTAINERS_CONF_OVERRIDE='/etc/c.conf'\n", ["/etc/c.conf"]),
        (SITE, "#export CONTAINERS_CONF=/etc/c.conf\n", []),
        (SITE, "export CONTAINERS_CONFIG=/etc/c.conf\n", []),
        (f"{SITE}.bak", "CONTAINERS_CONF=/etc/c.conf\n", []),
    ],
)
def test_lines_that_name_another_file(
    path: str, text: str, found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [path.rpartition("/")[2]] if path != ALL else []
    monkeypatch.setattr(environment_read, "list_folder", lambda *_words: names)
    monkeypatch.setattr(environment_read, "read_text", {path: text}.get)
    lines = list(find_named_files())
    assert [(line.path, line.value) for line in lines] == [(path, value) for value in found]


@pytest.mark.parametrize(("value", "status"), [(9, "unknown"), (5, "fail")])
def test_no_trial_passes_for_a_session_that_reads_another_file(
    value: int, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment_read, "list_folder", lambda *_words: [])
    monkeypatch.setattr(environment_read, "read_text", {ALL: "CONTAINERS_CONF=/x\n"}.get)
    wanted = Requirement("new-container:podman", "nofile", "soft", 7)
    told = _doubt(judge(wanted, Observation(value, "")), next(find_named_files()))
    assert (told.status, bool(told.causes)) == (status, status == "unknown")


@pytest.mark.parametrize(
    ("path", "text", "told"),
    [
        ("/etc/motd", "", ""),
        (
            ALL,
            "CONTAINERS_CONF=/x\n",
            f'{ALL}:1 "CONTAINERS_CONF=/x" has the Podman of a session read /x',
        ),
        (SITE, "export CONTAINERS_CONF_OVERRIDE=/x\n", f"{SITE}:1 "),
        (
            "/root/.config/containers/containers.conf",
            "",
            "/root/.config/containers/containers.conf counts",
        ),
    ],
)
def test_no_image_passes_whose_sessions_read_another_file(
    tmp_path: Path, path: str, text: str, told: str
) -> None:
    stated = '[containers]\ndefault_ulimits = ["nofile=9:9"]\n'
    files = {"/usr/bin/podman": "", "/etc/containers/containers.conf": stated, path: text}
    for name, content in files.items():
        (tmp_path / name[1:]).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name[1:]).write_text(content)
    asked = ContainerPolicy({"nofile": Limit(7, 8)})
    for _wanted, one in foresee_podman(asked, Tree(str(tmp_path))):
        assert one.status == ("unknown" if told else "pass")
        assert not told or one.reason.startswith(told)
