# SPDX-License-Identifier: GPL-3.0-or-later
"""A variable that has Podman read another file leaves unknown what a trial without it passed."""

from __future__ import annotations

import pytest
from mlhost_limits.core.finding import Observation, Requirement, judge
from mlhost_limits.podman import environment_read
from mlhost_limits.podman.check import _doubt
from mlhost_limits.podman.environment_read import find_named_files

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
    monkeypatch.setattr(environment_read, "list_folder", lambda _folder: names)
    monkeypatch.setattr(environment_read, "read_text", {path: text}.get)
    lines = list(find_named_files())
    assert [(line.path, line.value) for line in lines] == [(path, value) for value in found]


@pytest.mark.parametrize(("value", "status"), [(9, "unknown"), (5, "fail")])
def test_no_trial_passes_for_a_session_that_reads_another_file(
    value: int, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment_read, "list_folder", lambda _folder: [])
    monkeypatch.setattr(environment_read, "read_text", {ALL: "CONTAINERS_CONF=/x\n"}.get)
    wanted = Requirement("new-container:podman", "nofile", "soft", 7)
    told = _doubt(judge(wanted, Observation(value, "")), next(find_named_files()))
    assert (told.status, bool(told.causes)) == (status, status == "unknown")
