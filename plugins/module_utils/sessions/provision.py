# SPDX-License-Identifier: BSD-2-Clause
"""What logins need on this host, why that would lock it, and what open sessions go on with."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from ..core.finding import judge_limits
from ..core.plan import Section, SectionPlan
from ..core.report import format_failures
from ..core.values import NamedTuple, User
from ..host.door import find_paths, list_pids, read_kernel_text
from ..host.look import read_limits
from ..host.users import find_connecting_user, read_user
from .dialect_read import read_dialect
from .limits_conf import list_nofiles, parse_limits_conf
from .limits_read import find_broken_files, read_limits_files
from .lockouts import Logins, find_login_lockouts, find_small_limits
from .measure import has_shell
from .pam_limits import LIMITS_CONF
from .pam_read import read_pam_files
from .pam_stack import find_pam_limits, flatten, read_limits_options
from .plan import SessionsOptions, plan_sessions
from .rules import find_limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.values import Rlimit
    from ..kernel.policy import KernelValue
    from .policy import SessionRule

_ROOTS = ("/sys/fs/cgroup", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified")
_SCOPES = ("session-*.scope", "user@*.service/init.scope")


class OpenSession(NamedTuple):
    """One open login session or user manager, and the limits of its first process."""

    unit: str
    user: str
    pid: int
    limits: dict[str, Rlimit]


def prepare_sessions(
    rules: tuple[SessionRule, ...], options: SessionsOptions, nr_open: int | None
) -> Section:
    """Return what the section needs here; what would lock the host is a problem of its plan.

    :param nr_open: The lowest fs.nr_open that will be in force.
    """
    dialect = read_dialect()
    plan = plan_sessions(rules, read_limits_files(), dialect, nr_open, options)
    if options.absent:
        return Section(plan, in_effect=("sessions",))
    locks = find_session_lockouts(rules, plan, options.target)
    return Section(
        plan._replace(problems=(*plan.problems, *locks)),
        find_old=partial(find_old_sessions, rules),
        in_effect=("sessions",),
    )


def find_old_sessions(rules: Sequence[SessionRule]) -> Iterator[str]:
    """Yield the open sessions that go on with less than the rules ask for until they end."""
    for session in find_open_sessions():
        user = read_user(session.user)
        wanted = find_limits(rules, user) if user else {}
        place = f"{session.unit} of {session.user} (pid {session.pid})"
        how = f"/proc/{session.pid}/limits"
        yield from format_failures(judge_limits(place, wanted, session.limits, how))


def find_open_sessions(proc: str = "/proc") -> Iterator[OpenSession]:
    """Yield every session that logind knows, by the cgroup it made for it."""
    for root in _ROOTS:
        for pattern in _SCOPES:
            for folder in find_paths(f"{root}/user.slice/user-*.slice/{pattern}"):
                session = _read_session(folder, proc)
                if session:
                    yield session


def _read_session(folder: str, proc: str) -> OpenSession | None:
    match = re.search(r"/user-([0-9]+)\.slice/([^/]+)", folder)
    try:
        pid = min(map(int, read_kernel_text(f"{folder}/cgroup.procs").split()), default=0)
        limits = read_limits(pid, proc)
    except (OSError, ValueError):
        return None  # It ended, or holds nothing any more.
    if match is None or pid == os.getpid():
        return None
    try:
        user = pwd.getpwuid(int(match[1])).pw_name
    except KeyError:
        user = match[1]
    return OpenSession(match[2], user, pid, limits)


def find_session_lockouts(
    rules: Sequence[SessionRule], plan: SectionPlan, target: str
) -> Iterator[str]:
    """Yield why logins would not open, or do not open now.

    What takes a look at every process is looked at only where something would be written.

    :param target: The limits file that the plan writes.
    """
    yield from find_small_limits(rules)
    for path, reason in find_broken_files(read_dialect().needs_files):
        if path != LIMITS_CONF or target != LIMITS_CONF or reason != "is missing":
            yield f"{path}: {reason}, so no session opens here, not even root's"
    if not plan.edits and not plan.problems:
        return

    for place, conf, service in find_missing_conf():
        yield f"{place}: conf={conf} is missing, so no session of {service} opens here"
    folders = [rule.limits["chroot"].text for rule in rules if "chroot" in rule.limits]
    yield from find_login_lockouts(rules, read_logins(filter(None, folders)))


def find_kernel_lockouts(wanted: Mapping[str, KernelValue], sessions: SectionPlan) -> Iterator[str]:
    """Yield why the kernel's new values would lock this host.

    :param sessions: What will be written of limits files, which may state a nofile.
    """
    from ..kernel.lockouts import find_locking_values
    from ..kernel.use_read import find_largest_nofile, read_kernel_use

    nofiles: list[tuple[int, str]] = []
    if "fs.nr_open" in wanted and wanted["fs.nr_open"].exact is not None:
        nofiles = [find_largest_nofile(), *_find_stated_nofiles(sessions)]
    yield from find_locking_values(wanted, read_kernel_use(nofiles))


def _find_stated_nofiles(sessions: SectionPlan) -> Iterator[tuple[int, str]]:
    """Yield every nofile that the limits files will state: above fs.nr_open, PAM may refuse."""
    edited = {edit.path: (edit.after or b"").decode("latin-1") for edit in sessions.edits}
    for path, text in {**read_limits_files(), **edited}.items():
        yield from list_nofiles(parse_limits_conf(text, path))


_SERVICES = ("sshd", "su", "su-l", "sudo", "sudo-i", "cron", "crond", "login", "systemd-user")
_WTMP = "/var/log/wtmp"


def read_logins(folders: Iterable[str]) -> Logins:
    """Return what there is to know about this host's logins.

    :param folders: Those that the policy names as ``chroot``.
    """
    admin = find_connecting_user()
    return Logins(
        tasks=dict(_find_tasks()),
        connecting=read_user(admin) if admin else None,
        wtmp=os.stat(_WTMP).st_size if os.path.exists(_WTMP) else 0,
        bare=[folder for folder in folders if not os.access(f"{folder}/bin/sh", os.X_OK)],
    )


def _find_tasks() -> Iterator[tuple[User, int]]:
    """Yield every user who may log in and runs something, with how many tasks."""
    for uid, running in sorted(count_tasks().items()):
        try:
            entry = pwd.getpwuid(uid)
        except KeyError:
            continue
        user = read_user(entry.pw_name) if has_shell(entry) else None
        if user:
            yield user, running


def count_tasks(proc: str = "/proc") -> dict[int, int]:
    """Return the threads that run, by real user id, which is how the kernel counts nproc.

    The owner of /proc/PID would not do: it is root where a program may not be traced.
    """
    counts: dict[int, int] = {}
    for pid in list_pids(proc):
        try:
            text = read_kernel_text(f"{proc}/{pid}/status")
            fields = dict(line.partition(":")[::2] for line in text.splitlines())
            uid = int(fields["Uid"].split()[0])
            counts[uid] = counts.get(uid, 0) + int(fields["Threads"])
        except (OSError, KeyError):
            continue  # It ended between the listing and the look.
    return counts


def find_missing_conf() -> Iterator[tuple[str, str, str]]:
    """Yield the pam.d lines whose ``conf=`` file is absent: place, file and service."""
    files = read_pam_files()
    seen = set()
    for service in _SERVICES:
        try:
            lines = find_pam_limits(flatten(service, "session", files))
        except ValueError:
            continue  # libpam refuses this service whatever the limits are.
        for line in lines:
            conf = read_limits_options(line).conf
            if conf and line.place not in seen and not os.path.exists(conf):
                seen.add(line.place)
                yield line.place, conf, service
