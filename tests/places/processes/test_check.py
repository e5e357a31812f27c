# SPDX-License-Identifier: GPL-3.0-or-later
"""No user's process hides one of root's or of another user, and none counts as root's."""

from __future__ import annotations

import pytest
from mlhost_limits.core.cause import Cause, Remedy
from mlhost_limits.core.finding import FAIL, PASS, UNKNOWN, Finding
from mlhost_limits.core.process_owner import MAKER
from mlhost_limits.core.reader import Limit
from mlhost_limits.core.values import RLIMITS, UNLIMITED, Rlimit
from mlhost_limits.host.look import Look, Process
from mlhost_limits.processes import check as check_processes
from mlhost_limits.processes import diagnose as explain_processes
from mlhost_limits.processes.causes import Verdict
from mlhost_limits.processes.policy import ProcessRule
from mlhost_limits.systemd.read import World

UNIT = "/system.slice/slurmd.service"
OWN = "/user.slice/user-1000.slice/user@1000.service"
RULE = ProcessRule("name", "python", {"nofile": Limit(100, 200, 300)})
BY_UNIT = RULE._replace(by="unit", value="slurmd.service")


class Host:
    """Processes that a test makes up: their limits, and who may have set them."""

    def __init__(self) -> None:
        self.limits: dict[int, dict[str, Rlimit]] = {}
        self.processes: list[Process] = []
        self.owners: dict[int, str] = {}
        self.given: Rlimit | None = None

    def add(self, pair: tuple[int, int], owner: str = "", path: str = UNIT, times: int = 1) -> None:
        free = dict.fromkeys(RLIMITS, Rlimit(UNLIMITED, UNLIMITED))
        for _time in range(times):
            pid = 2**22 + len(self.processes) + 1
            self.limits[pid] = {**free, "nofile": Rlimit(*pair)}
            self.owners[pid] = owner
            self.processes.append(Process(pid, "python", 0, f"0::{path}", 1))

    def check(self, rule: ProcessRule = RULE) -> list[Finding]:
        return list(check_processes.check_processes((rule,), Look()))

    def count(self, rule: ProcessRule = RULE) -> dict[tuple[str, str], int]:
        """Return how many findings on the soft limit each status and owner has."""
        soft = [one for one in self.check(rule) if one.requirement.bound == "soft"]
        told = [(one.status, one.owner) for one in soft]
        return {key: told.count(key) for key in told}


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    made = Host()

    def read(pid: int) -> dict[str, Rlimit]:
        if pid not in made.limits:
            raise ProcessLookupError(pid)
        return made.limits[pid]

    def find(process: Process) -> str:
        if process.pid not in made.owners:
            raise ProcessLookupError(process.pid)
        return made.owners[process.pid]

    monkeypatch.setattr("mlhost_limits.host.look.find_processes", lambda: made.processes)
    monkeypatch.setattr(check_processes, "read_limits", read)
    monkeypatch.setattr(check_processes, "find_owner", find)
    monkeypatch.setattr(World, "find_moved", lambda _world, _unit: [])
    cause = Cause("unit-not-stated", "nobody says", Remedy("say it"))
    judged = lambda *_: {"nofile": Verdict((cause,), None, None, made.given)}  # noqa: E731
    monkeypatch.setattr(explain_processes, "judge_unit", judged)
    monkeypatch.setattr(explain_processes, "judge_user_unit", judged)
    return made


@pytest.mark.parametrize(("owner", "times"), [("alice", 21), ("alice", 5000), ("", 20)])
@pytest.mark.slow
def test_root_s_process_is_told_however_many_users_have(host: Host, owner: str, times: int) -> None:
    host.add((10, 200), "alice", times=times)
    host.add((20, 200), owner="")
    assert host.count()[FAIL, ""] == 1


def test_each_user_is_told_before_anybody_twice(host: Host) -> None:
    host.add((10, 200), "alice", times=50)
    host.add((20, 200), "bob")
    assert host.count() == {(FAIL, "alice"): 20, (FAIL, "bob"): 1}


def test_root_s_processes_are_told_beside_those_of_many_users(host: Host) -> None:
    for number in range(40):
        host.add((10, 200), f"user{number}")
    host.add((20, 200), times=5)
    assert host.count()[FAIL, ""] == 5


def test_what_is_too_many_to_tell_fails_as_well(host: Host) -> None:
    host.add((30, 200), times=24)
    host.add((20, 200))
    (rest,) = [one for one in host.check() if "more processes" in one.observation.how]
    assert rest.requirement.place == "process:name=python"
    assert (rest.status, rest.observation.value, rest.owner) == (FAIL, 20, "")
    assert rest.observation.how == (
        "/proc/PID/limits, lowest of 5 more processes of name python that fall short"
    )


def test_the_rest_of_several_users_is_nobody_s_alone(host: Host) -> None:
    host.add((30, 200), "alice", times=12)
    host.add((30, 200), "bob", times=12)
    assert host.count() == {(FAIL, "alice"): 10, (FAIL, "bob"): 10, (FAIL, "2 users"): 1}


@pytest.mark.parametrize(
    ("pair", "given", "owner"),
    [
        ((10, 200), None, "alice"),
        ((10, 200), Rlimit(100, 200), "alice"),
        ((10, 200), Rlimit(99, 200), ""),
        ((100, 301), None, ""),
    ],
    ids=["unexplained", "lowered", "root gives too little", "nobody else raises it"],
)
def test_a_user_s_process_is_root_s_doing_where_root_gives_too_little(
    host: Host, pair: tuple[int, int], given: Rlimit | None, owner: str
) -> None:
    host.add(pair, "alice")
    host.given = given
    assert [one.owner for one in host.check() if one.status == FAIL] == [owner]


def test_a_unit_that_a_user_named_like_one_of_root_s_is_the_user_s(host: Host) -> None:
    """Whatever root gives to all of their services: the name is the user's doing."""
    host.add((50, 300), "alice", f"{OWN}/app.slice/slurmd.service")
    host.given = Rlimit(50, 300)
    assert host.count(BY_UNIT) == {(FAIL, "alice"): 1}
    assert host.count() == {(FAIL, ""): 1}


def test_a_process_that_ends_meanwhile_counts_for_nobody(host: Host) -> None:
    host.add((10, 200), "alice")
    host.owners.clear()
    assert host.count() == {(UNKNOWN, ""): 1}
    host.limits.clear()
    assert host.count() == {(UNKNOWN, ""): 1}


def test_a_cgroup_with_the_name_of_a_unit_does_not_stand_for_it(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.add((500, 200), "alice", f"{OWN}/app.slice/slurmd.service")
    host.add((50, 200), "", "/user.slice/user-0.slice/session-1.scope")
    main = host.processes.pop()
    monkeypatch.setattr(World, "find_moved", lambda _world, _unit: [main])
    assert host.count(BY_UNIT) == {(FAIL, ""): 1}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (f"{OWN}/x.service/slurmd.service", (FAIL, "alice")),
        (f"{OWN}/slurmd.service/x", (FAIL, "alice")),
        (f"{OWN}/slurmd.service/x.service", (UNKNOWN, "")),
        ("/system.slice/docker-ab.scope/slurmd.service", (UNKNOWN, "")),
        ("/system.slice/x.service/slurmd.service", (UNKNOWN, "")),
    ],
)
def test_what_lies_deeper_is_no_unit_of_the_system(
    host: Host, path: str, found: tuple[str, str]
) -> None:
    host.add((10, 200), "alice", path)
    assert host.count(BY_UNIT) == {found: 1}


def test_a_container_s_process_is_its_maker_s(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_processes, "find_place", lambda *_: "docker/web")
    host.add((10, 200))
    host.add((10, 200), "alice")
    assert host.count() == {(FAIL, MAKER): 1, (FAIL, "alice"): 1}


def test_those_that_have_enough_are_told_by_the_lowest(host: Host) -> None:
    host.add((150, 200))
    host.add((120, 200), "alice")
    assert host.count() == {(PASS, ""): 1}


def test_what_a_user_starts_does_not_hide_that_root_s_have_enough(host: Host) -> None:
    host.add((150, 200))
    host.add((10, 200), "alice")
    assert host.count() == {(FAIL, "alice"): 1, (PASS, ""): 1}
    host.add((10, 200))
    assert host.count() == {(FAIL, "alice"): 1, (FAIL, ""): 1}
