# SPDX-License-Identifier: BSD-2-Clause
"""Say why processes of sessions and of jobs fall short: their session is older, or too low."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.cause import Cause
from ..core.finding import Requirement
from ..core.reader import Limit
from ..core.values import Declaration, NamedTuple, Rlimit
from ..host.files import read_change
from ..host.look import Look, Process, format_time, read_limits, read_process, read_start_time
from ..host.users import name_user, read_user
from ..kernel.host_read import find_nr_open_at_boot
from ..sessions.base_read import find_login_daemon
from ..sessions.diagnose import find_home, gather_session
from ..sessions.facts import SessionFacts, find_ending, predict_session
from ..sessions.host_read import SessionsRead
from ..sessions.measure import SessionResult
from ..sessions.pam_limits import LIMITS_D
from ..sessions.shell_causes import find_shell_causes
from ..sessions.shell_clock_measure import ShellClock
from ..sessions.shell_limits import ShellLine
from ..sessions.shell_limits_measure import measure_shells
from ..systemd.read import Seen, World
from ..systemd.want import is_enough
from .causes import Moment, Verdict, find_both_causes, finish
from .old_session_causes import Login, Server, find_login_cause, raise_login
from .read import find_main, find_terminal_server, read_login

_DAEMONS = {
    "ssh.service": "sshd",
    "sshd.service": "sshd",
    "cron.service": "cron",
    "crond.service": "crond",
    "atd.service": "atd",
}
"""Services whose processes, but for the first, belong to sessions that they opened."""

_SWITCHES = ("su", "sudo", "runuser")


class Way(NamedTuple):
    """How a process came to be: who logged in, or has a job, through which service, and when.

    ``again`` says how there will be a new one.
    """

    user: str
    service: str
    who: str
    opened: float
    again: str = "start it again"


def find_job(process: Process, ancestors: Sequence[Process], unit: str) -> Way | None:
    """Return the session of a process that lives in a service: a job, or what su has started."""
    main = find_main(process, ancestors)
    if not unit or main.pid == process.pid:
        return None
    inside = [one for one in ancestors if one.cgroup == process.cgroup]
    between = inside[: inside.index(main)]  # Where the unit starts su itself, PAM is its own.
    switch = next((one for one in between if one.comm in _SWITCHES), None)
    user = name_user(process.uid)
    if switch:
        who = f"what {switch.comm} (pid {switch.pid}) started for {user}"
        return Way(user, switch.comm, who, read_start_time(switch))
    if unit not in _DAEMONS:
        return None
    first = [process, *inside][-2]
    who = f"the job of {user} (pid {first.pid})"
    return Way(user, _DAEMONS[unit], who, read_start_time(first))


def find_login(process: Process, ancestors: Sequence[Process], session: str) -> Way | None:
    """Return the login of a process, or the su or sudo by which it changed to another user."""
    login, user = read_login(session), name_user(process.uid)
    if login is None:
        return None
    service, opened = login.service, login.opened
    if user != login.user:
        switch = next((one for one in ancestors if one.comm in _SWITCHES), None)
        if switch is None and read_user(user) is None:
            return None
        # What outlives the su or sudo that started it was started by one of them all the same.
        service, opened = switch.comm if switch else "su", read_start_time(switch or process)
    who = f"session {login.id} of {user} ({service})"
    return Way(user, service, who, opened, "log in again (in a play: meta: reset_connection)")


def judge_login(
    seen: Seen, way: Way, ancestors: Sequence[Process], world: World
) -> dict[str, Verdict]:
    """Compare a process with what a session opened now gets, limit by limit."""
    if world.probe == "predict":
        return {}  # No session may be opened.
    result = world.open_session(way.service, way.user)
    facts = gather_session(result, world.look) if result.limits else None
    if facts is None or result.limits is None:
        return {}
    told = {}
    for item, limit in seen.wanted.items():
        if item in result.limits and predict_session(facts)[item] == result.limits[item]:
            login = _read_login(item, seen, way, (ancestors, facts), world.look)
            told[item] = _explain(item, limit, login, (result, facts), world)
    return told


def _explain(
    item: str, limit: Limit, login: Login, fresh: tuple[SessionResult, SessionFacts], world: World
) -> Verdict:
    """Say why a process has too little, and what the next session has."""
    result, facts = fresh
    start = facts.start._replace(nr_open=find_nr_open_at_boot(world.look))
    booted = facts._replace(start=start)
    boot = Rlimit(0, 0) if find_ending(booted) else predict_session(booted)[item]
    gets = result.limits[item] if result.limits else login.limits[item]
    causes = find_both_causes(item, limit, facts)
    shells = measure_shells([result], [item], clock=world.look.at(ShellClock))
    shell = shells.get((result.service, result.user))
    if shell and shell.limits and shell.limits[item] != gets:
        gets = boot = shell.limits[item]
        if not is_enough(limit, gets):
            causes += _blame_shell(item, limit, gets, (result.user, shell.lines))
    if not causes and is_enough(limit, gets):
        causes = [find_login_cause(item, limit, login, gets)]
    else:
        causes = list(finish(causes, raise_login(item, limit, login)))
    return Verdict(tuple(causes), gets, boot, result.limits[item] if result.limits else None)


def _blame_shell(
    item: str, limit: Limit, gets: Rlimit, found: tuple[str, Sequence[ShellLine]]
) -> list[Cause]:
    """Blame the lines of a user's shell."""
    user, lines = found
    is_hard = gets.hard < (limit.hard or 0)
    wanted = Requirement("", item, "hard" if is_hard else "soft", 0)
    observed = gets.hard if is_hard else gets.soft
    return find_shell_causes(wanted, observed, lines, user, find_home(user))


def _read_login(
    item: str, seen: Seen, way: Way, around: tuple[Sequence[Process], SessionFacts], look: Look
) -> Login:
    """Return the session of a process, and what changed since it was opened."""
    ancestors, facts = around
    what, changed = _find_change(way.service, way.opened, look)
    line = _find_newer_line(item, seen, facts, way.opened)
    if line:
        changed = read_change(line.path)
    server = find_terminal_server(seen.process, ancestors)
    return Login(
        seen.process.pid,
        way.who,
        way.again,
        seen.limits,
        Moment(way.opened, format_time(way.opened)),
        Moment(changed, format_time(changed)),
        what,
        line,
        _describe_server(server) if server else None,
    )


def _describe_server(server: Process) -> Server:
    return Server(server.pid, server.comm.partition(":")[0], read_limits(server.pid))


def _find_newer_line(
    item: str, seen: Seen, facts: SessionFacts, opened: float
) -> Declaration | None:
    """Return the line that counts for a new session, if it was written since."""
    soft = seen.wanted[item].soft
    bound = "hard" if soft is None or seen.limits[item].soft >= soft else "soft"
    found = facts.resolution.bounds.get((item, bound))
    line = found.winner if found else None
    return line if line and read_change(line.path) > opened else None


def _find_change(service: str, opened: float, look: Look) -> tuple[str, float]:
    """Return what decides sessions and changed last since one was opened, or its daemon's start."""
    path, changed = find_session_change(look, opened)
    daemon = find_login_daemon(service)
    if not changed and daemon:
        path, changed = f"{service} (pid {daemon})", read_start_time(read_process(daemon))
    return path, changed


def find_session_change(look: Look, since: float) -> tuple[str, float]:
    """Return which file that decides sessions changed last, and when; nothing before a time."""
    paths = [*look.at(SessionsRead).limits_files, LIMITS_D, *look.at(SessionsRead).pam_files]
    changed, path = max((read_change(one), one) for one in paths)
    return (path, changed) if changed > since else ("", 0.0)
