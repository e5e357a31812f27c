# SPDX-License-Identifier: GPL-3.0-or-later
"""Users' own dockerds are judged under their users' names, and only where they answer themselves."""

from __future__ import annotations

import os
from typing import Any

import pytest
from mlhost_limits.core.finding import Observation, Requirement, judge
from mlhost_limits.core.policy import CheckOptions
from mlhost_limits.docker import rootless_check as check_rootless
from mlhost_limits.docker.dockerd_flags import Flag
from mlhost_limits.docker.place import Docker
from mlhost_limits.docker.read import DockerRead
from mlhost_limits.docker.rootless_check import RootlessRead
from mlhost_limits.host.children import Report
from mlhost_limits.host.look import Look, read_process
from mlhost_limits.schema import load_policy

POLICY: Any = load_policy(None, "training").get("docker")


@pytest.fixture
def look(monkeypatch: pytest.MonkeyPatch) -> Look:
    found = Look()
    me = read_process(os.getpid())
    found.at(DockerRead).rootless = (me, me._replace(pid=2**22))
    monkeypatch.setattr(RootlessRead, "user", "alice")
    monkeypatch.setattr(RootlessRead, "address", "/s")
    return found


def test_each_is_judged_by_itself(look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that ended is skipped; its places have the user's name, its cap is said."""
    wanted = Requirement("new-container:docker/alice", "nofile", "hard", 2**40)

    def check(*words: Any) -> list[Any]:
        assert words[3] == "docker/alice"
        assert isinstance(words[2].at(DockerRead), RootlessRead)
        return [judge(wanted, Observation(1024, ""))]

    monkeypatch.setattr(RootlessRead, "is_own", True)
    monkeypatch.setattr(check_rootless, "check_engine", check)
    (found,) = check_rootless.check_rootless(POLICY, "auto", look, 30.0)
    assert [cause.code for cause in found.causes] == ["docker-rootless-capped"]
    assert isinstance(look.at(DockerRead), DockerRead)
    assert not isinstance(look.at(DockerRead), RootlessRead)


def test_who_answers_for_another_is_not_believed(
    look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RootlessRead, "is_own", False)
    found = list(check_rootless.check_rootless(POLICY, "auto", look, 30.0))
    assert {one.status for one in found} == {"unknown"}
    assert {one.requirement.place for one in found} == {"new-container:docker/alice"}
    assert found[0].observation.reason == f"who answers at /s is not uid {os.getuid()}"


def test_what_is_stated_is_read_where_it_is_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    docker = RootlessRead(read_process(os.getpid()))
    monkeypatch.setattr(RootlessRead, "version", "20.10.24")
    monkeypatch.setattr(RootlessRead, "config_path", "/c.json")
    docker.flags = (Flag("default-ulimit", "nproc=9", "/proc/1/cmdline", 0),)
    docker.config = '{"default-ulimits": {"nofile": {"Name": "nofile", "Hard": 9, "Soft": 8}}}'
    assert [one.name for one in check_rootless._read_stated(docker)] == ["nofile", "nproc"]
    docker.config = None
    assert [one.name for one in check_rootless._read_stated(docker)] == ["nproc"]
    docker.config = "{"
    assert check_rootless._read_stated(docker) == []


def test_users_daemons_have_a_share_of_the_time_and_no_more(
    look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What root's own look needs is left to it, whatever time limit the check has."""
    given: list[float] = []

    def ask(errands: Any) -> list[Report]:
        given.extend(errand.seconds for errand in errands)
        return [Report(None, "no answer") for _errand in errands]

    monkeypatch.setattr("mlhost_limits.docker.check.check_docker", lambda *_words: ())
    monkeypatch.setattr(check_rootless, "ask_users", ask)
    found, *_others = Docker().check(POLICY, CheckOptions(time_limit=20.0), look)
    assert given == [6.0]
    assert found.status == "unknown"
