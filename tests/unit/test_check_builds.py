# SPDX-License-Identifier: GPL-3.0-or-later
"""A build is judged by dockerd's limits, and its remedy says what a restart does to containers."""

from __future__ import annotations

import os
from typing import Any

import pytest
from mlhost_limits import check_builds as builds
from mlhost_limits.policy.cause import Cause, Outlook
from mlhost_limits.policy.policy_reader import Limit
from mlhost_limits.policy.process_causes import Verdict
from mlhost_limits.policy.remedy import Remedy
from mlhost_limits.policy.rlimit import Rlimit
from mlhost_limits.policy.schema import DockerPolicy
from mlhost_limits.probe.docker import Daemon
from mlhost_limits.probe.docker_evidence import DockerEvidence
from mlhost_limits.probe.evidence import Evidence
from mlhost_limits.probe.process import read_process

POLICY = DockerPolicy({"nofile": Limit(65536, 1048576)}, None, True)
STOCK, RAISED, ENOUGH = Rlimit(1024, 524288), Rlimit(524287, 524288), Rlimit(65536, 1048576)
RESTART = ("systemctl", "restart", "docker.service")
RELOAD = ("systemctl", "daemon-reload")


@pytest.fixture
def evidence(monkeypatch: pytest.MonkeyPatch) -> Evidence:
    """Docker of Debian 13, whose unit states nothing."""
    found, docker = Evidence(), DockerEvidence()
    found.docker, docker.rootless = docker, ()
    docker.daemon = Daemon(read_process(os.getpid()), [])
    docker.unit = docker.restarted_by = "docker.service"
    docker.go_version, docker.live_restore = "go1.24.4", False
    monkeypatch.setattr(builds, "read_limits", lambda _pid: {"nofile": RAISED})
    monkeypatch.setattr(builds, "_find_given", lambda *_words: STOCK)
    cause = Cause("unit-not-stated", "nobody does", Remedy("state it", (RELOAD, RESTART)))
    verdict = Verdict((cause,), ENOUGH, STOCK)
    monkeypatch.setattr(builds, "judge_unit", lambda *_words: {"nofile": verdict})
    return found


def look(evidence: Evidence) -> list[Any]:
    return list(builds.check_builds(POLICY, evidence))


def test_a_step_has_what_dockerd_was_started_with(evidence: Evidence) -> None:
    soft, hard = look(evidence)
    assert (soft.status, soft.observation.value, hard.observation.value) == ("fail", 1024, 524288)
    assert soft.outlook == Outlook("", "pass", "fail")


@pytest.mark.parametrize(
    ("text", "lives", "expected"),
    [
        ("state it", False, "state it, then restart docker, which stops the running containers"),
        ("state it", True, "state it, then restart docker"),
        ("restart docker.service", True, "restart docker"),
        ("read files, and restart docker.service", True, "read files, then restart docker"),
    ],
)
def test_a_remedy_restarts_dockerd_once(
    evidence: Evidence, monkeypatch: pytest.MonkeyPatch, text: str, lives: bool, expected: str
) -> None:
    """systemd's count of starts is cleared, and what it does to containers is said."""
    verdict = Verdict((Cause("c", "", Remedy(text, (RELOAD, RESTART))),), STOCK, STOCK)
    monkeypatch.setattr(builds, "judge_unit", lambda *_words: {"nofile": verdict})
    evidence.docker.live_restore = lives
    remedy = look(evidence)[0].causes[0].remedy
    assert remedy.text == expected
    line = "systemctl reset-failed docker; systemctl restart docker"
    assert remedy.commands == (RELOAD, ("sh", "-c", line))


def test_a_remedy_without_a_restart_stays(
    evidence: Evidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    cause = Cause("c", "", Remedy("look", (RELOAD,)))
    verdict = Verdict((cause,), STOCK, STOCK)
    monkeypatch.setattr(builds, "judge_unit", lambda *_words: {"nofile": verdict})
    assert look(evidence)[0].causes == (cause,)


def test_what_go_hides_is_unknown(evidence: Evidence, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hard limit shows all the same, and what comes is foretold of both."""
    monkeypatch.setattr(builds, "_find_given", lambda *_words: None)
    soft, hard = look(evidence)
    assert (soft.status, hard.status) == ("unknown", "fail")
    assert soft.observation.value is None
    assert soft.outlook == Outlook("", "pass", "fail")


def test_a_dockerd_that_ends_is_unknown(
    evidence: Evidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_pid: int) -> None:
        raise ProcessLookupError

    monkeypatch.setattr(builds, "read_limits", fail)
    assert {one.observation.reason for one in look(evidence)} == {"dockerd ended meanwhile"}
    evidence.docker.daemon = None
    assert {one.status for one in look(evidence)} == {"unknown"}
    assert look(evidence)[0].observation.reason.startswith("no dockerd is running on this host")


def test_a_dockerd_of_nobody_has_no_chain(evidence: Evidence) -> None:
    evidence.docker.unit = ""
    with pytest.raises(ValueError, match="was not started by systemd"):
        builds.trace_builds("nofile", evidence)
    assert {one.causes for one in look(evidence)} == {()}
