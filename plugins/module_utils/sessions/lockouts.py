# SPDX-License-Identifier: BSD-2-Clause
"""Know the limits with which nobody, or nobody who matters, could log in any more.

Each figure was measured on Debian 12 with ssh, su, sudo and cron; docs/lockouts.md has them all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from ..core.reader import Limit
from ..core.values import ITEMS, NamedTuple, User, format_quantity
from .limits_conf import LimitsLine, parse_value
from .policy import SessionRule
from .rules import find_limits


class Floor(NamedTuple):
    """The least of an item that is accepted, in the kernel's unit, and what happens below."""

    least: int
    breaks: str


_MIB = 2**20

FLOORS = {
    "nofile": Floor(64, "sshd ends a login that has fewer than 14"),
    "nproc": Floor(32, "a login through ssh takes 5 tasks"),
    "as": Floor(128 * _MIB, "sshd ends a login that has less than 32MiB"),
    "data": Floor(64 * _MIB, "sshd ends a login that has less than 2MiB, Python needs 16MiB"),
    "stack": Floor(_MIB, "a login shell dies with less than 128KiB"),
    "fsize": Floor(_MIB, "root's logins end when they reach it in wtmp, and Ansible writes more"),
    "cpu": Floor(60, "the kernel takes 0 for one second, and then kills the login"),
    "maxlogins": Floor(1, "every login but root's is refused"),
    "maxsyslogins": Floor(1, "every login but root's is refused"),
}
"""Below the middle figure of each sentence logins were seen to fail; the rest is margin."""


class Logins(NamedTuple):
    """What decides, on this host and now, whether logins go on to open.

    ``tasks`` are the threads that run, by user. ``connecting`` is who runs us, ``None`` if root.
    ``wtmp`` is the size in bytes of the file that records logins. ``bare`` are the folders named
    by ``chroot`` that are absent or hold no shell.
    """

    tasks: Mapping[User, int] = {}
    connecting: User | None = None
    wtmp: int = 0
    bare: Collection[str] = ()


def find_small_limits(rules: Sequence[SessionRule]) -> Iterator[str]:
    """Yield the limits with which no login works on any host."""
    for index, rule in enumerate(rules):
        path = f"sessions[{index}].limits"
        for item, limit in rule.limits.items():
            value = _find_lowest(limit)
            if item in FLOORS and value is not None and value < FLOORS[item].least:
                yield f"{path}.{item}: {_describe(item, value)}"
        if "*" in rule.users and _is_set(rule.limits.get("nonewprivs")):
            yield (
                f"{path}.nonewprivs: 1 for '*' takes sudo and su from everyone but root;"
                " users and groups by name are accepted"
            )


def _describe(item: str, value: int) -> str:
    unit, floor = ITEMS[item].unit, FLOORS[item]
    least = format_quantity(floor.least, unit)
    return (
        f"{format_quantity(value, unit)} is too little to log in: {floor.breaks};"
        f" {least} or more is accepted"
    )


def _find_lowest(limit: Limit) -> int | None:
    return min((value for value in (limit.soft, limit.hard) if value is not None), default=None)


def _is_set(limit: Limit | None) -> bool:
    return limit is not None and limit.hard == 1


def find_small_lines(lines: Iterable[LimitsLine]) -> Iterator[str]:
    """Yield the lines of others that mean too little to PAM: it reads ``1e6`` as 1."""
    for line in lines:
        floor = FLOORS.get(line.item)
        if floor is None or len(line.fields) < 4 or not line.types or line.domain.startswith("%"):
            continue
        value = parse_value(line.item, line.fields[3])
        if value is not None and value < floor.least:
            seen = format_quantity(value, ITEMS[line.item].unit)
            yield (
                f'{line.path}:{line.line} "{line.text.strip()}" means {seen} to PAM: {floor.breaks}'
            )


def find_login_lockouts(rules: Sequence[SessionRule], logins: Logins) -> Iterator[str]:
    """Yield the limits with which logins of this host would stop, as it is now."""
    for user, running in logins.tasks.items():
        yield from _find_full(rules, user, running)
    root = find_limits(rules, User("root", 0, 0)).get("fsize")
    size = _find_lowest(root) if root else None
    if root and size is not None and FLOORS["fsize"].least <= size < logins.wtmp + _MIB:
        yield (
            f"{_locate(rules, 'fsize', root)}: {format_quantity(size, 'bytes')} is less than"
            f" /var/log/wtmp holds ({logins.wtmp} bytes) and 1MiB more, so a login of root ends"
            " when it is recorded"
        )
    admin = logins.connecting
    privileges = find_limits(rules, admin).get("nonewprivs") if admin else None
    if admin and privileges and _is_set(privileges):
        yield (
            f"{_locate(rules, 'nonewprivs', privileges)}: 1 takes sudo and su from {admin.name},"
            " through whom this host is managed"
        )
    yield from _find_bare_folders(rules, logins.bare)


def _find_full(rules: Sequence[SessionRule], user: User, running: int) -> Iterator[str]:
    """Yield why a user has no task left for a login; root is exempt from nproc (fork(2))."""
    limit = find_limits(rules, user).get("nproc") if user.uid else None
    value = _find_lowest(limit) if limit else None
    least = running + FLOORS["nproc"].least
    if limit and value is not None and FLOORS["nproc"].least <= value < least:
        yield (
            f"{_locate(rules, 'nproc', limit)}: {value} is too little for {user.name}, who runs"
            f" {running} tasks now; {least} or more is accepted"
        )


def _find_bare_folders(rules: Sequence[SessionRule], bare: Collection[str]) -> Iterator[str]:
    for index, rule in enumerate(rules):
        folder = rule.limits["chroot"].text if "chroot" in rule.limits else None
        if folder in bare:
            yield (
                f"sessions[{index}].limits.chroot: {folder} is not a directory with a /bin/sh in"
                " it, so every login would end"
            )


def _locate(rules: Sequence[SessionRule], item: str, limit: Limit) -> str:
    """Return the key path of a limit that some rule holds."""
    found = (index for index, rule in enumerate(rules) if rule.limits.get(item) is limit)
    return f"sessions[{next(found)}].limits.{item}"
