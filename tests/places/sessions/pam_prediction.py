# SPDX-License-Identifier: GPL-3.0-or-later
"""What our resolution of limits files means for a session, once the kernel has had its word."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from mlhost_limits.core.distribution import Dialect
from mlhost_limits.core.values import UNLIMITED, Bound, Rlimit, User, parse_proc_limits
from mlhost_limits.host.users import read_user
from mlhost_limits.sessions.limits_conf import LimitsLine
from mlhost_limits.sessions.model import Start, find_refused, predict_limits
from mlhost_limits.sessions.pam_limits import resolve_limits, resolve_settings

from tests.places.sessions.limits_files import LOGGED_IN
from tests.places.sessions.pam_world import NR_OPEN

INHERITED = {"nofile": Rlimit(900, 2000), "locks": Rlimit(300, 2**40), "core": Rlimit(0, 2**30)}
MEMORY = ("as", "data", "stack")
LITTLE = 2**22
"""Bytes of memory with less of which libpam may or may not come to an end."""
FEW = 16
"""Descriptors with less of which it may or may not read a file."""

_CAP_SYS_NICE, _CAP_SYS_RESOURCE = 23, 24

Session = dict[str, Any]
"""What a session is like: ``opens`` (``None`` for either), a pair for each limit, ``priority``,
``nonewprivs``, and ``chroot`` as the device and number of its root folder."""


class Kernel(NamedTuple):
    """What a session starts from, and what it may do."""

    inherited: dict[str, Rlimit]
    of_pid_1: dict[str, Rlimit]
    nr_open: int
    may_raise: bool
    may_hurry: bool


def read_kernel(nr_open: int) -> Kernel:
    """Return what this process may do, which has opened no session yet."""
    of_pid_1 = parse_proc_limits(Path("/proc/1/limits").read_text())
    status = Path("/proc/self/status").read_text()
    capabilities = int(status.partition("CapEff:")[2].split()[0], 16)
    may = [bool(capabilities >> bit & 1) for bit in (_CAP_SYS_RESOURCE, _CAP_SYS_NICE)]
    return Kernel({**of_pid_1, **INHERITED}, of_pid_1, nr_open, *may)


def predict_untouched(kernel: Kernel, opens: bool) -> Session:
    """Return the session that pam_limits does nothing to."""
    session: Session = {name: list(limit) for name, limit in kernel.inherited.items()}
    session.update(priority=0, nonewprivs=0, chroot=identify("/"), opens=opens)
    return session


def predict(lines: list[LimitsLine], user: User, dialect: Dialect, kernel: Kernel) -> Session:
    """Return the session that these lines give a user."""
    resolution = resolve_limits(lines, user, dialect, NR_OPEN)
    if resolution.stopped_by:
        return predict_untouched(kernel, opens=True)
    start = Start(
        kernel.inherited, kernel.of_pid_1, kernel.nr_open, dialect.resets, kernel.may_raise
    )
    limits = predict_limits(resolution, start)
    ended = dialect.ends_sessions and find_refused(resolution, start)
    session = predict_untouched(kernel, opens=not ended)
    session.update({name: list(limit) for name, limit in limits.items()})
    settings = resolve_settings(lines, user, dialect)
    _apply_settings(session, settings, user, dialect, kernel)
    counts = "maxlogins" in settings or "maxsyslogins" in settings
    if counts and limits["nofile"].soft < FEW:
        session.update(opens=None, chroot=None)  # Who is logged in stands in a file.
    if any(limits[item].soft < LITTLE for item in MEMORY):
        session["opens"] = None
    return session


def _apply_settings(
    session: Session, settings: dict[str, Bound], user: User, dialect: Dialect, kernel: Kernel
) -> None:
    """Add what is not a limit, in the order of ``setup_limits()`` in pam_limits.c."""
    if "priority" in settings:
        nice = int(settings["priority"].winner.value)
        if nice >= 0 or kernel.may_hurry or 20 - nice <= session["nice"][0]:
            session["priority"] = nice
        else:
            session["opens"] = False
    for item in ("maxlogins", "maxsyslogins"):
        if (
            item in settings
            and user.uid != 0
            and _are_too_many(item, settings[item], user, asks_logind=asks_logind())
        ):
            session["opens"] = False
    if "nonewprivs" in settings:
        session["nonewprivs"] = int(settings["nonewprivs"].winner.value)
    if "chroot" in settings and session["opens"]:
        # The module goes there first, and sees a relative path from there.
        there = str(settings["chroot"].winner.value)
        path = Path("/", there, there)
        session["opens"] = Path("/", there).is_dir() and path.is_dir()
        session["chroot"] = identify(str(path) if session["opens"] else "/")


@lru_cache(maxsize=1)
def asks_logind() -> bool:
    """Tell whether the pam_limits of this system counts logins by logind, not by utmp(5)."""
    found = sorted(Path("/usr/lib").glob("**/security/pam_limits.so"))
    return any(b"sd_session_get_class" in path.read_bytes() for path in found)


def _are_too_many(item: str, bound: Bound, user: User, asks_logind: bool) -> bool:
    """Tell whether one more login is one too many; what the domain names is counted.

    Debian 13 asks logind for those that there are, leaves out the new one where all are counted,
    and cannot tell whether there is but one.
    """
    limit = int(bound.winner.value)
    domain = bound.winner.text.split()[0]
    if limit in (0, UNLIMITED):
        return limit == 0
    if asks_logind and limit == 1:
        return False
    if item == "maxsyslogins":
        return len(LOGGED_IN) + (not asks_logind) > limit
    if domain == "%":
        return 1 + len(LOGGED_IN) > limit
    if domain.startswith("%"):
        return 1 + sum(_is_member(name, domain[1:]) for name in LOGGED_IN) > limit
    return 1 + LOGGED_IN.count(user.name) > limit


def _is_member(name: str, group: str) -> bool:
    user = read_user(name)
    assert user
    return group in user.groups or group in {f":{gid}" for gid in user.gids}


def identify(path: str) -> list[int]:
    """Return what tells a folder from every other."""
    found = os.stat(path)
    return [found.st_dev, found.st_ino]
