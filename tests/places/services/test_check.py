# SPDX-License-Identifier: GPL-3.0-or-later
"""A service is judged by the worst of its processes, and what does not run is never a pass."""

from __future__ import annotations

import os

import pytest
from mlhost_limits.core.finding import FAIL, PASS, UNKNOWN
from mlhost_limits.core.reader import Limit
from mlhost_limits.core.values import RLIMITS, UNLIMITED, Rlimit
from mlhost_limits.host.look import Look, Process
from mlhost_limits.host.manager_read import Shown
from mlhost_limits.services import check as check_services
from mlhost_limits.services import diagnose as explain_services
from mlhost_limits.services import logind_check as check_logind
from mlhost_limits.services import measure as service_canary
from mlhost_limits.services.policy import ServicesPolicy, UnitRule
from mlhost_limits.systemd.model import Files
from mlhost_limits.systemd.read import World
from mlhost_limits.systemd.tasks import Level

from tests.worlds.distributions import DEBIAN

UNIT = "mlhost-nobody.service"
RULE = UnitRule({"nofile": Limit(100, 200, 300)}, 50)

OWNERS = {2**22 + 8: "alice", 2**22 + 9: "bob"}


def limits(soft: int, hard: int) -> dict[str, Rlimit]:
    free = dict.fromkeys(RLIMITS, Rlimit(UNLIMITED, UNLIMITED))
    return {**free, "nofile": Rlimit(soft, hard)}


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> dict[int, dict[str, Rlimit]]:
    """Return what processes of our unit have, by pid, for a test to fill in."""
    held: dict[int, dict[str, Rlimit]] = {}
    monkeypatch.setattr(
        "mlhost_limits.host.look.find_processes",
        lambda: [Process(pid, "x", 0, f"0::/system.slice/{UNIT}", pid) for pid in held],
    )

    def read(pid: int) -> dict[str, Rlimit]:
        if not held[pid]:
            raise OSError(f"{pid} is gone")
        return held[pid]

    monkeypatch.setattr(check_services, "read_limits", read)
    monkeypatch.setattr(check_services, "find_owner", lambda one: OWNERS.get(one.pid, ""))
    level = Level(UNIT, "/sys/x/pids.max", 40)
    monkeypatch.setattr(check_services, "read_levels", lambda _cgroup: [level])
    monkeypatch.setattr(service_canary, "is_booted", lambda: False)
    shown = Shown(limits(100, 200), 1, False, 0.0)
    monkeypatch.setattr("mlhost_limits.systemd.read.show_unit", lambda _unit: shown)
    monkeypatch.setattr(World, "find_moved", lambda _world, _unit: [])
    return held


def check(policy: ServicesPolicy, canary: str = "auto") -> dict[str, tuple[str, object, str]]:
    """Return status, value, and how it was seen or why not, by item and bound."""
    found = check_services.check_services(policy, canary, Look())
    return {
        f"{one.requirement.place} {one.requirement.item} {one.requirement.bound}": (
            one.status,
            one.observation.value,
            one.observation.reason or one.observation.how,
        )
        for one in found
    }


def test_the_worst_process_counts_for_each_bound(host: dict[int, dict[str, Rlimit]]) -> None:
    held = {os.getpid(): limits(150, 200), 2**22 + 1: limits(90, 250), 2**22 + 2: {}}
    host.update(held)
    path = f"/proc/{2**22 + 1}/limits, lowest of 3 processes; systemctl show says 100:200"
    own = f"/proc/{os.getpid()}/limits, lowest of 3 processes; systemctl show says 100:200"
    assert check(ServicesPolicy(units={UNIT: RULE})) == {
        f"service:{UNIT} nofile soft": (FAIL, 90, path),
        f"service:{UNIT} nofile hard": (PASS, 200, own),
        f"service:{UNIT} tasks value": (FAIL, 40, "/sys/x/pids.max"),
    }


def test_too_much_is_worse_than_little(host: dict[int, dict[str, Rlimit]]) -> None:
    host.update({2**22 + 1: limits(100, 200), 2**22 + 2: limits(100, 301)})
    assert check(ServicesPolicy(units={UNIT: RULE}))[f"service:{UNIT} nofile hard"][:2] == (
        FAIL,
        301,
    )


@pytest.mark.parametrize(
    ("held", "found"),
    [
        ({1: 150, 8: 90}, [(PASS, 150, ""), (FAIL, 90, "alice")]),
        ({1: 90, 8: 10}, [(FAIL, 90, ""), (FAIL, 10, "alice")]),
        ({1: 90, 8: 200}, [(FAIL, 90, "")]),
        ({8: 20, 9: 10}, [(FAIL, 10, "bob")]),
        ({1: 150, 8: 200}, [(PASS, 150, "")]),
    ],
    ids=["the user's", "both", "root's", "users'", "nobody's"],
)
def test_a_user_s_process_in_a_service_hides_and_adds_nothing_of_root(
    host: dict[int, dict[str, Rlimit]], held: dict[int, int], found: list[tuple[str, int, str]]
) -> None:
    host.update({2**22 + pid: limits(soft, 200) for pid, soft in held.items()})
    policy = ServicesPolicy(units={UNIT: UnitRule({"nofile": Limit(100)}, None)})
    told = check_services.check_services(policy, "never", Look())
    assert sorted((one.status, one.observation.value, one.owner) for one in told) == sorted(found)


LEVELS = [
    Level("x.service", "/x", 5),
    Level("app.slice", "/a", 300),
    Level("user@1000.service", "/m", 300),
    Level("user-1000.slice", "/u", 400),
]


@pytest.mark.parametrize(
    ("tasks", "levels", "uid", "owner"),
    [
        (100, LEVELS, 1000, "1000"),
        (350, LEVELS, 1000, ""),
        (100, LEVELS[:2], 1000, "1000"),
        (100, LEVELS, 0, ""),
        (5, LEVELS, 1000, ""),
    ],
)
def test_tasks_are_a_user_s_own_below_the_manager(
    monkeypatch: pytest.MonkeyPatch, tasks: int, levels: list[Level], uid: int, owner: str
) -> None:
    monkeypatch.setattr(explain_services, "name_user", str)
    finding = check_services._judge_tasks("new-service:x", tasks, levels)
    assert explain_services.own_tasks(finding, levels, uid).owner == owner


def test_a_main_process_that_pam_moved_to_a_session_is_the_unit_s(
    host: dict[int, dict[str, Rlimit]], monkeypatch: pytest.MonkeyPatch
) -> None:
    scope = "0::/user.slice/user-1001.slice/session-c1.scope"
    main = Process(2**22 + 1, "trainer", 1001, scope, 5)
    monkeypatch.setattr(World, "find_moved", lambda _world, _unit: [main])
    monkeypatch.setattr(check_services, "read_limits", lambda _pid: limits(90, 200))
    assert not host
    found = check(ServicesPolicy(units={UNIT: RULE}))
    assert {key: one[:2] for key, one in found.items()} == {
        f"service:{UNIT} nofile soft": (FAIL, 90),
        f"service:{UNIT} nofile hard": (PASS, 200),
        f"service:{UNIT} tasks value": (FAIL, 40),
    }


@pytest.mark.parametrize(
    ("unit", "reason"),
    [
        (UNIT, f"there is no {UNIT} on this host"),
        ("mlhost-x.slice", "no slice of that name has a process"),
    ],
)
def test_what_does_not_run_is_unknown(
    host: dict[int, dict[str, Rlimit]], unit: str, reason: str
) -> None:
    assert not host
    rule = RULE if unit == UNIT else UnitRule({}, 50)
    for status, value, why in check(ServicesPolicy(units={unit: rule})).values():
        assert (status, value, why) == (UNKNOWN, None, reason)


@pytest.mark.parametrize(
    ("canary", "reason"),
    [
        ("never", "no service was started (canary: never)"),
        ("auto", "systemd does not run here, so no service can be started"),
    ],
)
def test_a_new_service_that_was_not_seen_is_unknown(
    host: dict[int, dict[str, Rlimit]], canary: str, reason: str
) -> None:
    assert not host
    found = check(ServicesPolicy(default=RULE, user_default=RULE), canary)
    assert found == {
        f"new-service:system {item}": (UNKNOWN, None, reason)
        for item in ("nofile soft", "nofile hard", "tasks value")
    }


def test_of_new_services_only_what_is_asked_is_looked_at(
    host: dict[int, dict[str, Rlimit]],
) -> None:
    assert not host
    tasks = UnitRule({}, 50)
    assert list(check(ServicesPolicy(default=tasks))) == ["new-service:system tasks value"]
    nofile = UnitRule({"nofile": Limit(100)}, None)
    assert list(check(ServicesPolicy(default=nofile))) == ["new-service:system nofile soft"]


@pytest.mark.parametrize("canary", ["auto", "never"])
def test_no_service_is_started_that_nobody_asks_about(
    monkeypatch: pytest.MonkeyPatch, host: dict[int, dict[str, Rlimit]], canary: str
) -> None:
    assert not host
    monkeypatch.setattr(check_services, "find_user_managers", lambda _processes: {1000: None})
    monkeypatch.setattr(check_services, "start_service", lambda _uid: pytest.fail("it started"))
    assert check(ServicesPolicy(), canary) == {}


@pytest.mark.parametrize(
    ("runs", "said", "status", "value"),
    [
        (True, (0, "b false\n"), PASS, "no"),
        (True, (0, "b true\n"), FAIL, "yes"),
        (True, (1, "Access denied\n"), UNKNOWN, None),
        (False, (0, "b false\n"), UNKNOWN, None),
    ],
)
def test_what_logind_says(
    monkeypatch: pytest.MonkeyPatch,
    runs: bool,
    said: tuple[int, str],
    status: str,
    value: str | None,
) -> None:
    monkeypatch.setattr(check_logind, "run_systemd", lambda *_: said)
    monkeypatch.setattr(check_logind, "read_owner", lambda _: Files(None, vendor=DEBIAN))
    finding = check_logind.check_logind(False, runs)
    assert (finding.status, finding.observation.value) == (status, value)
    assert finding.outlook.after_boot == FAIL
    assert [cause.code for cause in finding.causes] == ["logind-not-stated"]
