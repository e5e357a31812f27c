# SPDX-License-Identifier: BSD-2-Clause
"""Measure the limits that fresh sessions get, by opening them through libpam in child processes."""

from __future__ import annotations

import os
import pwd
from collections.abc import Collection, Mapping, Sequence
from functools import partial

from ..core.values import UNLIMITED, NamedTuple, Rlimit
from ..host.children import Report, run_in_children
from ..host.own_limits import set_own_limits
from .base_read import Base, has_locked_password, read_base_limits, read_use_pam, sets_limits
from .libpam_measure import Libpam, PamCall, PamOutcome
from .pam_read import PamServices, name_here, prepared_services
from .selinux_reset_read import find_soft_reset
from .soft_reset import SoftReset, apply_reset

TIME_LIMIT = 20.0
"""Seconds that all sessions of one round may take together."""

FD_SETSIZE = 1024
"""How many descriptors ``select(2)`` can watch (``sys/select.h``)."""

_ITEMS = {
    "sshd": {"tty": "ssh", "rhost": "127.0.0.1"},
    "cron": {"tty": "cron"},
    "crond": {"tty": "cron"},
    "login": {"tty": "tty1"},
    "su": {"ruser": "root"},
    "su-l": {"ruser": "root"},
    "sudo": {"ruser": "root"},
    "sudo-i": {"ruser": "root"},
}
_CALLED_BY_ROOT = ("su", "su-l", "runuser", "runuser-l", "sudo", "sudo-i")
_CALLER = ("sshd", "root")
_RESET_BY_SU = ("su", "su-l", "runuser", "runuser-l")
_OWN_ACCOUNT = ("sudo", "sudo-i")
_SET_AFTER_PAM = {"sudo": ("core",), "sudo-i": ("core",)}
"""Limits that the service itself changes last: sudo's ``rlimit_core`` is 0 (sudoers(5))."""

_STARTS_SHELL = ("sshd", "login", "su", "su-l")
_NO_SHELLS = ("nologin", "false", "true", "sync")


class SessionRequest(NamedTuple):
    """One session to open: a user, a service (a name in pam.d), and the limits it inherits.

    ``base`` says where ``base_limits`` come from, or why there are none: then only whether the
    session opens is found out.
    """

    service: str
    user: str
    base_limits: Mapping[str, Rlimit] | None
    base: str


class SessionResult(NamedTuple):
    """What one session gets.

    ``limits`` is ``None`` where that is unknown or no session opens; ``reason`` then says why.
    A single limit that cannot be known is absent from it (``core`` in sudo's sessions).
    ``opens`` is ``None`` where that was not found out. ``how`` says how ``limits`` were measured.
    ``base`` holds the limits that the session inherited, where they are known. ``cgroup`` is
    /proc/PID/cgroup inside of it. ``reset`` is what SELinux took of what PAM had set.
    """

    service: str
    user: str
    limits: dict[str, Rlimit] | None
    how: str
    reason: str = ""
    opens: bool | None = None
    base: Mapping[str, Rlimit] | None = None
    cgroup: str = ""
    reset: SoftReset | None = None


def pick_users(count: int = 1) -> list[str]:
    """Return login users of this host, lowest user id first, to stand for everybody.

    Login users have an id from 1000 to 65533 and a real shell.
    """
    people = (
        entry for entry in pwd.getpwall() if 1000 <= entry.pw_uid < 65534 and has_shell(entry)
    )
    return [entry.pw_name for entry in sorted(people, key=lambda entry: entry.pw_uid)[:count]]


def has_shell(entry: pwd.struct_passwd) -> bool:
    return opens_session(entry.pw_shell)


def opens_session(shell: str) -> bool:
    """Tell whether a shell of passwd(5) lets its user in."""
    return os.path.basename(shell) not in _NO_SHELLS


def measure_sessions(
    wanted: Sequence[tuple[str, str]],
    mode: str = "quiet",
    time_limit: float = TIME_LIMIT,
    besides: Collection[str] = (),
    pam_files: Mapping[str, str] | None = None,
) -> list[SessionResult]:
    """Return what fresh sessions get, each inheriting what its real starter would pass on.

    :param wanted: Pairs of service and user; the results keep their order, and have the name that
        the service has here.
    :param mode: ``quiet`` runs the real modules that decide on entry and on limits, and leaves
        out those that leave a trace; ``full`` runs the real service with all its effects, as a
        login would. Where libpam is older than 1.4, quiet falls back to full.
    :param besides: Names of PAM modules that run although they leave a trace.
    :param pam_files: The files of PAM's services, where they were read.
    """
    wanted = [(name_here(service), user) for service, user in wanted]
    first = [pair for pair in wanted if pair[0] not in _CALLED_BY_ROOT]
    later = [pair for pair in wanted if pair[0] in _CALLED_BY_ROOT]
    if later and _CALLER not in first:
        first.append(_CALLER)
    bases = {service: read_base_limits(service) for service, dummy in first}
    with prepared_services(
        {service for service, dummy in first + later}, mode == "quiet", besides, pam_files
    ) as services:
        results = _measure_round(first, bases, services, time_limit)
        if later:
            bases = {
                service: _read_callers_base(service, results[_CALLER])
                for service in _CALLED_BY_ROOT
            }
            results.update(_measure_round(later, bases, services, time_limit))
    return [results[pair] for pair in wanted]


def _read_callers_base(service: str, caller: SessionResult) -> Base:
    if caller.limits is None:
        return Base(None, f"the limits of the calling root session are unknown: {caller.reason}")
    if service in _RESET_BY_SU and sets_limits(service.partition("-")[0]):
        how = f"called from a session of root through sshd, reset by {service.partition('-')[0]}"
        return Base(_reset_as_su_does(caller.limits), how)
    return Base(caller.limits, "called from a session of root through sshd")


def _reset_as_su_does(limits: Mapping[str, Rlimit]) -> dict[str, Rlimit]:
    """Return what su and runuser make of their caller's limits before they start PAM.

    They do so since util-linux 2.38: su(1), ``sanitize_prlimits()`` in su-common.c. Where the hard
    nofile is below the soft one that they ask for, the kernel refuses, and both stay.
    """
    none, no_limit, nofile = Rlimit(0, 0), Rlimit(UNLIMITED, UNLIMITED), limits["nofile"]
    if nofile.hard >= FD_SETSIZE:
        nofile = Rlimit(FD_SETSIZE, nofile.hard)
    return {
        **limits,
        "nice": none,
        "rtprio": none,
        "fsize": no_limit,
        "as": no_limit,
        "nofile": nofile,
    }


def _measure_round(
    pairs: Sequence[tuple[str, str]],
    bases: Mapping[str, Base],
    services: PamServices,
    time_limit: float,
) -> dict[tuple[str, str], SessionResult]:
    bypass = _find_bypass(bases["sshd"]) if "sshd" in dict(pairs) else None
    results, requests = {}, []
    for service, user in pairs:
        reason = _find_refusal(service, user)
        if reason:
            results[service, user] = SessionResult(service, user, None, "", reason, opens=False)
        elif service == "sshd" and bypass:
            results[service, user] = _start_shell(_bypass_for(user, bypass), bases[service].pid)
        else:
            base = bases[service]
            requests.append(SessionRequest(service, user, base.limits, base.how))
    for result in _probe_all(requests, services, time_limit):
        results[result.service, result.user] = _start_shell(result, bases[result.service].pid)
    return {pair: result._replace(base=bases[pair[0]].limits) for pair, result in results.items()}


def _start_shell(result: SessionResult, pid: int) -> SessionResult:
    """Return a session as SELinux leaves it once a daemon has started the user's shell."""
    if result.limits is None:
        return result
    try:
        reset = find_soft_reset(result.service, result.user, pid)
    except OSError as error:
        return result._replace(limits=None, reason=str(error))
    if reset is None:
        return result
    how = f"{result.how}, whose soft limits SELinux reset"
    return result._replace(limits=apply_reset(result.limits, reset), how=how, reset=reset)


def _find_refusal(service: str, user: str) -> str:
    """Return why a login ends before or after PAM whatever the limits are, or nothing."""
    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        return f"no user {user!r} on this host"
    if service in _STARTS_SHELL and not has_shell(entry):
        return f"{user} has the shell {entry.pw_shell}, which opens no session"
    return ""


def _find_bypass(base: Base) -> SessionResult | None:
    """Return what every session of sshd gets where sshd does not use PAM."""
    if base.limits is None:
        return None
    try:
        use_pam = read_use_pam(base.pid)
    except (OSError, ValueError) as error:
        return SessionResult("sshd", "", None, "", f"sshd's configuration: {error}")
    if use_pam.value == "yes":
        return None
    how = f"{base.how}; sshd does not use PAM ({use_pam.text}, {use_pam.place})"
    return SessionResult("sshd", "", dict(base.limits), how)


def _bypass_for(user: str, bypass: SessionResult) -> SessionResult:
    """Return the answer for one user: without PAM, sshd refuses accounts with a locked password."""
    if bypass.limits is not None and has_locked_password(user):
        reason = f"the password of {user} is locked, and sshd does not use PAM"
        return SessionResult("sshd", user, None, "", reason, opens=False)
    return bypass._replace(user=user)


def _probe_all(
    requests: Sequence[SessionRequest], services: PamServices, time_limit: float
) -> list[SessionResult]:
    obstacles = [services.obstacles.get(request.service, "") for request in requests]
    tried = [request for request, obstacle in zip(requests, obstacles) if not obstacle]
    pam, folder = services.pam, services.folder
    tasks = [partial(_open_session, pam, request, folder) for request in tried if pam]
    reports = iter(run_in_children(tasks, time_limit))
    return [
        SessionResult(request.service, request.user, None, "", obstacle)
        if obstacle
        else _read_report(request, next(reports), services)
        for request, obstacle in zip(requests, obstacles)
    ]


def _open_session(pam: Libpam, request: SessionRequest, folder: str | None) -> PamOutcome:
    """Open one session. Runs in a child."""
    account = "root" if request.service in _OWN_ACCOUNT else request.user
    call = PamCall(request.service, request.user, account, _ITEMS.get(request.service, {}), folder)
    try:
        set_own_limits(request.base_limits or {})
        return pam.open_session(call)
    except (OSError, ValueError, MemoryError) as error:
        return PamOutcome(None, str(error), None)


def _read_report(request: SessionRequest, report: Report, services: PamServices) -> SessionResult:
    outcome = (
        PamOutcome(None, report.problem, None) if report.problem else PamOutcome(*report.value)
    )
    if outcome.opens and request.base_limits is None:
        return SessionResult(request.service, request.user, None, "", request.base, opens=True)
    limits = outcome.limits and {
        name: Rlimit(*pair)
        for name, pair in outcome.limits.items()
        if name not in _SET_AFTER_PAM.get(request.service, ())
    }
    full = "full " if services.folder is None else ""
    how = f"{full}libpam session of {request.service}, {request.base}"
    skipped = services.skipped.get(request.service)
    if skipped:
        how += f"; not run: {', '.join(skipped)}"
    told = SessionResult(request.service, request.user, limits, how, outcome.reason, outcome.opens)
    return told._replace(cgroup=outcome.cgroup)
