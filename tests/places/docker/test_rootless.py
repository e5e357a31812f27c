# SPDX-License-Identifier: GPL-3.0-or-later
"""A user's dockerd is capped by what it has, and its remedies act as the user."""

from __future__ import annotations

import pytest
from mlhost_limits.core.cause import Cause, Outlook, Remedy
from mlhost_limits.core.finding import Finding, Observation, Requirement, judge
from mlhost_limits.core.line_edit import as_user
from mlhost_limits.core.values import Declaration, Rlimit
from mlhost_limits.docker.daemon_json import StatedDefault
from mlhost_limits.docker.rootless import Rootless, explain_rootless

PLACE = "new-container:docker/alice"
DAEMON = Rootless("alice", 4711, {"nofile": Rlimit(1024, 524288)})
EDIT = Cause("docker-not-stated", "x", Remedy("state it", (("python3", "-c", "1"),), "restart"))
ASK = Cause("docker-own-ulimit", "x", Remedy("create it anew"))


def find(minimum: int | None, seen: int | None, item: str = "nofile") -> Finding:
    wanted = Requirement(PLACE, item, "soft", minimum, 2**20)
    found = judge(wanted, Observation(seen, "", "" if seen else "x"))
    return found._replace(causes=(EDIT, ASK), outlook=Outlook("", "fail", "fail"))


@pytest.mark.parametrize(
    ("finding", "codes"),
    [
        (find(1048576, 1024), ["docker-rootless-capped"]),
        (find(524289, 1024), ["docker-rootless-capped"]),
        (find(524288, 1024), ["docker-not-stated", "docker-own-ulimit"]),
        (find(65536, 1024), ["docker-not-stated", "docker-own-ulimit"]),
        (find(None, 2**21), ["docker-not-stated", "docker-own-ulimit"]),
        (find(1048576, None), ["docker-not-stated", "docker-own-ulimit"]),
        (find(1048576, 1024, "shm_size"), ["docker-not-stated", "docker-own-ulimit"]),
    ],
)
def test_what_caps_it_comes_alone(finding: Finding, codes: list[str]) -> None:
    """No edit of a file helps above the daemon's own hard limit; below it nothing caps."""
    assert [cause.code for cause in explain_rootless(finding, DAEMON).causes] == codes


@pytest.mark.parametrize(("later", "told"), [("", ""), ("fail", "unknown")])
def test_what_a_boot_gives_is_told_only_of_what_starts_then(later: str, told: str) -> None:
    finding = find(1048576, 1024)._replace(outlook=Outlook("", "pass", later))
    assert explain_rootless(finding, DAEMON).outlook == ("", "fail", told)


def test_commands_act_as_the_user() -> None:
    """A link in the user's home leads root nowhere; what only a person can do stays as it is."""
    edit, ask = explain_rootless(find(65536, 1024), DAEMON).causes
    assert edit.remedy.commands == (as_user("alice", ("python3", "-c", "1")),)
    assert edit.remedy.then == "alice restarts it: systemctl --user restart docker"
    assert ask == ASK
    (cap,) = explain_rootless(find(1048576, 1024), DAEMON).causes
    assert cap.text == (
        "dockerd of alice (pid 4711) has nofile 1024:524288 itself, and no container of it can"
        " have more"
    )
    assert cap.remedy.then.startswith("systemctl restart user@$(id -u alice)")


def test_a_default_above_the_cap_is_why_nothing_starts() -> None:
    """Its line is named; one that may be given, and one that has no cap, are not."""
    lines = [("nofile", 2**20), ("memlock", 5), ("nproc", 9)]
    stated = [
        StatedDefault(name, Rlimit(hard, hard), Declaration("/c", n, f'"{name}"', hard))
        for n, (name, hard) in enumerate(lines, 3)
    ]
    daemon = DAEMON._replace(stated=stated, limits={**DAEMON.limits, "memlock": Rlimit(5, 5)})
    wanted = Requirement(PLACE, "start", "value", exact="a container that starts")
    found = explain_rootless(judge(wanted, Observation("no", "")), daemon)
    assert [(cause.code, cause.at and cause.at.line) for cause in found.causes] == [
        ("docker-rootless-capped", 3)
    ]
    assert found.causes[0].text == (
        '/c:3 "nofile" asks for more than the nofile 524288 that dockerd of alice (pid 4711) may'
        " give"
    )
