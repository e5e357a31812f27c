# SPDX-License-Identifier: GPL-3.0-or-later
"""A process is explained by what it lives in, and what stands for many tells the worst of any."""

from __future__ import annotations

import os

import pytest
from mlhost_limits.core.cause import Cause, Outlook, Remedy
from mlhost_limits.core.finding import judge_limits
from mlhost_limits.core.reader import Limit
from mlhost_limits.core.values import Rlimit
from mlhost_limits.host.look import Look, Process
from mlhost_limits.host.users import name_user
from mlhost_limits.processes import diagnose as explain_processes
from mlhost_limits.processes import logins_read as explain_logins
from mlhost_limits.processes.causes import Verdict
from mlhost_limits.processes.diagnose import explain_process, explain_representative, tell
from mlhost_limits.processes.logins_read import Way, find_job, find_login
from mlhost_limits.processes.read import Login
from mlhost_limits.processes.units_diagnose import Scene, _doubt_starts
from mlhost_limits.systemd.read import Seen, World, _find_switch

from tests.worlds.unit_world import UNIT as UNIT_FILE
from tests.worlds.unit_world import service, unit

WANTED = {"nofile": Limit(65536, 131072)}
GOOD, LOW = Rlimit(65536, 131072), Rlimit(1024, 131072)
CAUSE = Cause("unit-not-stated", "nobody says", Remedy("say it"))
UNIT, SESSION = "0::/system.slice/x.service", "0::/user.slice/user-0.slice/session-5.scope"
DOUBT = CAUSE._replace(code="unit-start-sets-limit")
CONTAINER = f"0::/system.slice/docker-{'ab' * 32}.scope"


def see(pair: Rlimit, cgroup: str = UNIT, pid: int = 2**30) -> Seen:
    limits = {"nofile": pair}
    findings = judge_limits(f"process:{pid} (x)", WANTED, limits, "/proc")
    return Seen(Process(pid, "x", os.getuid(), cgroup, 1), limits, WANTED, findings)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    verdict = {"nofile": Verdict((CAUSE,), LOW, None)}
    monkeypatch.setattr(explain_processes, "judge_unit", lambda *_args: verdict)
    monkeypatch.setattr(explain_processes, "judge_login", lambda *_args: verdict)
    monkeypatch.setattr(explain_processes, "find_login", lambda *_args: Way("a", "b", "c", 0))
    return World(Look())


def test_a_service_s_process_is_told_of_the_next_restart(world: World) -> None:
    soft, hard = explain_process(see(LOW), world)
    assert soft.causes == (CAUSE,)
    assert soft.outlook == Outlook("", "fail", "unknown")
    assert (hard.causes, hard.outlook) == ((), Outlook("", "pass", "unknown"))


def test_a_doubt_of_the_next_start_is_told_of_what_passes() -> None:
    soft, _hard = see(GOOD).findings
    told = tell(soft, {"nofile": Verdict((CAUSE,), None, None, doubts=(DOUBT,))})
    assert (told.status, told.causes) == ("pass", (DOUBT,))
    assert told.outlook == Outlook("", "unknown", "unknown")


@pytest.mark.parametrize(
    ("limits", "unseen", "outlook"),
    [
        ({"nofile": GOOD}, False, Outlook("", "fail", "pass")),
        ({"nofile": GOOD}, True, Outlook("", "fail", "pass")),
        (None, False, Outlook()),
        (None, True, Outlook("", "fail", "pass")),
    ],
)
def test_what_was_not_seen_is_foretold_where_it_is_asked_for(
    limits: dict[str, Rlimit] | None, unseen: bool, outlook: Outlook
) -> None:
    soft = judge_limits("p", WANTED, limits, "/proc", "" if limits else "it does not run")[0]
    told = tell(soft, {"nofile": Verdict((CAUSE,), LOW, GOOD)}, unseen=unseen)
    assert told.outlook == outlook
    assert told.causes == ((CAUSE,) if outlook.next_restart else ())
    assert tell(soft, {}, unseen=unseen) == soft


@pytest.mark.parametrize(("command", "is_known"), [("x", True), ("sh -c 'ulimit -n 9; x'", False)])
def test_what_a_unit_starts_is_asked_where_all_else_is_well(command: str, is_known: bool) -> None:
    facts = unit({UNIT_FILE: service("LimitNOFILE=65536:131072", f"ExecStart=/bin/{command}")})
    own = Process(os.getpid(), "x", os.getuid(), UNIT, 1)
    seen = see(GOOD)._replace(process=own)
    verdict = Verdict((), GOOD, GOOD)
    (told,) = _doubt_starts({"nofile": verdict}, seen, Scene(facts, facts, (), ())).values()
    assert (told == verdict) is is_known
    assert bool(told.doubts) is not is_known


def test_a_session_s_process_is_told_of_the_next_session(world: World) -> None:
    soft, _hard = explain_process(see(LOW, SESSION), world)
    assert soft.outlook == Outlook("fail", "", "unknown")
    assert explain_process(see(GOOD, SESSION), world)[0].outlook == Outlook()


@pytest.mark.parametrize("cgroup", [CONTAINER, "0::/init.scope", ""])
def test_others_have_no_cause_here(world: World, cgroup: str) -> None:
    seen = see(LOW, cgroup)
    assert explain_process(seen, world) == seen.findings


def test_what_cannot_be_read_is_not_explained(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: object) -> None:
        raise OSError("gone")

    monkeypatch.setattr(explain_processes, "judge_unit", fail)
    seen = see(LOW)
    assert explain_process(seen, world) == seen.findings


def test_what_stands_for_many_has_the_worst_of_any(world: World) -> None:
    members = [see(GOOD), see(GOOD), see(GOOD, SESSION)]
    (soft, hard) = explain_representative(members[0].findings, members, world)
    assert (soft.causes, soft.outlook) == ((CAUSE,), Outlook("", "fail", "unknown"))
    assert soft.fails_later
    assert (hard.causes, hard.outlook) == ((), Outlook("", "pass", "unknown"))


DAEMON = Process(8, "cron", 0, "0::/system.slice/cron.service", 1)
OUTSIDE = Process(1, "systemd", 0, "0::/init.scope", 0)


def child(pid: int, comm: str, of: Process = DAEMON) -> Process:
    return of._replace(pid=pid, comm=comm, uid=os.getuid())


def test_a_job_is_the_first_below_its_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explain_logins, "read_start_time", lambda process: process.pid)
    job, shell, fork = child(11, "python3"), child(10, "sh"), child(9, "cron")
    way = find_job(job, [shell, fork, DAEMON, OUTSIDE], "cron.service")
    assert way
    assert (way.service, way.opened) == ("cron", 9)
    assert find_job(DAEMON, [OUTSIDE], "cron.service") is None
    assert find_job(job, [shell, fork, DAEMON, OUTSIDE], "") is None
    assert find_job(job, [shell, fork, DAEMON, OUTSIDE], "x.service") is None


def test_su_inside_a_service_opens_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explain_logins, "read_start_time", lambda process: process.pid)
    way = find_job(child(11, "x"), [child(10, "runuser"), DAEMON, OUTSIDE], "x.service")
    assert way
    assert (way.service, way.opened) == ("runuser", 10)
    main = child(9, "runuser")
    assert find_job(child(11, "x"), [child(10, "sh"), main, OUTSIDE], "x.service") is None


def test_a_login_is_its_user_s_unless_su_came_between(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explain_logins, "read_start_time", lambda process: process.pid)
    monkeypatch.setattr(explain_logins, "read_login", lambda _id: None)
    process = Process(11, "x", os.getuid(), SESSION, 1)
    assert find_login(process, [], "5") is None
    login = Login("5", name_user(os.getuid()), "sshd", 70.0)
    monkeypatch.setattr(explain_logins, "read_login", lambda _id: login)
    way = find_login(process, [], "5")
    assert way
    assert way[:4] == (login.user, "sshd", f"session 5 of {login.user} (sshd)", 70.0)
    other = process._replace(uid=2**20)
    assert find_login(other, [], "5") is None
    way = find_login(other, [process._replace(pid=10, comm="su")], "5")
    assert way
    assert way[:4] == ("1048576", "su", "session 5 of 1048576 (su)", 10)
    way = find_login(process._replace(uid=1), [], "5")  # Who started it is gone.
    assert way
    assert way[:4] == ("daemon", "su", "session 5 of daemon (su)", 11)


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("/sbin/runuser -u alice -- /usr/bin/d", ("runuser", "alice")),
        ("-/bin/su - alice -c 'x y'", ("su-l", "alice")),
        ("runuser -l alice -c x", ("runuser-l", "alice")),
        ("runuser --user=alice -- x", ("runuser", "alice")),
        ("/usr/bin/sum x", None),
        ("", None),
    ],
)
def test_a_unit_that_starts_su_runs_through_pam(
    command: str, found: tuple[str, str] | None
) -> None:
    assert _find_switch(command) == found


@pytest.mark.parametrize("command", ["su -c x alice", "/usr/bin/sudo -u alice x", "su"])
def test_a_user_that_cannot_be_told_makes_it_unknown(command: str) -> None:
    with pytest.raises(ValueError, match="starts a session of an unknown user"):
        _find_switch(command)
