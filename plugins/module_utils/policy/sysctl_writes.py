# SPDX-License-Identifier: BSD-2-Clause
"""Predict which line of sysctl.d(5) wins each key: at boot, and after ``sysctl --system``.

Sources: ``apply_all()`` in sysctl.c of systemd; ``write_setting_list()`` and
``settinglist_findpath()`` in sysctl.c of procps.
"""

from __future__ import annotations

from typing import NamedTuple

from .glob_pattern import expand_braces, matches_path
from .pam_limits import Bound
from .sysctl_conf import (
    SysctlLine,
    find_boot_default,
    find_number,
    order_files,
    parse_procps3_conf,
    parse_procps_conf,
    parse_sysctl_conf,
    parse_sysctl_number,
    simplify,
    with_slashes,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def _list_writes_of_systemd(lines: Sequence[SysctlLine], name: str) -> list[SysctlLine]:
    """Return the lines that are written to a file, in this order.

    Of one spelling only the last line counts, at the place of the first of those that state the
    same. A pattern leaves alone what another line names, be it only to exclude it.
    """
    options: dict[str, SysctlLine] = {}
    for line in lines:
        if line.name in options and options[line.name].value != line.value:
            del options[line.name]
        options[line.name] = line  # Where it states the same, it keeps the old one's place.
    if name in options:
        return [options[name]] if options[name].value is not None else []
    return [line for line in options.values() if line.value is not None and _covers(line, name)]


def _covers(line: SysctlLine, name: str) -> bool:
    return line.glob and any(matches_path(simplify(one), name) for one in expand_braces(line.name))


def _list_writes_of_procps(lines: Sequence[SysctlLine], name: str) -> list[SysctlLine]:
    """Return the lines that are written to a file, in this order: every line that names it.

    A pattern leaves alone what another line names, be it only to exclude it. Names are compared
    as they are spelled. Patterns that exclude do nothing up to 4.0.4.
    """
    spellings = {line.name for line in lines}
    return [
        line
        for line in lines
        if line.value is not None
        and (
            matches_path(simplify(line.name), name) and _spell(line.name, name) not in spellings
            if line.glob
            else _resolve_path(line.name) == name
        )
    ]


def _spell(pattern: str, name: str) -> str:
    """Return a matched name with the empty parts of its pattern, as glob(3) returns it."""
    parts = iter(name.split("/"))
    return "/".join(part if part in ("", ".") else next(parts) for part in pattern.split("/"))


def _resolve_path(name: str) -> str:
    """Return the file below /proc/sys that a path leads to; a slash ends that of a folder."""
    parts: list[str] = []
    for part in simplify(name).split("/"):
        parts = parts[:-1] if part == ".." else [*parts, part]
    return "/".join(parts) + "/" * name.endswith(("/", "/."))


class Reader(NamedTuple):
    """A program that reads sysctl.d: how it reads a file, and what it then writes."""

    name: str
    parse: Callable[[str, str], list[SysctlLine]]
    list_writes: Callable[[Sequence[SysctlLine], str], list[SysctlLine]]
    is_procps: bool = True

    def read(self, files: Mapping[str, str]) -> list[SysctlLine]:
        """Return the lines of all files that count, in the order in which they are read."""
        order = order_files(files, self.is_procps)
        return [line for path in order for line in self.parse(files[path], path)]


SYSTEMD = Reader("systemd", parse_sysctl_conf, _list_writes_of_systemd, is_procps=False)
PROCPS = Reader("procps", parse_procps_conf, _list_writes_of_procps)
PROCPS_3 = Reader("procps 3", parse_procps3_conf, _list_writes_of_procps)

_OLDEST_WITH_PROCPS_4 = {
    **dict.fromkeys(("rhel", "centos", "almalinux", "rocky", "ol"), 10),
    "debian": 12,
    "ubuntu": 23,
    "fedora": 39,
}


def find_procps(os_release: Mapping[str, str]) -> Reader:
    """Return the procps of a distribution; an unknown one is taken for new."""
    oldest = _OLDEST_WITH_PROCPS_4.get(os_release.get("ID", ""), 0)
    major = os_release.get("VERSION_ID", "").partition(".")[0]
    return PROCPS_3 if major.isdigit() and int(major) < oldest else PROCPS


def resolve_sysctl(
    files: Mapping[str, str],
    keys: Sequence[str],
    reader: Reader = SYSTEMD,
    is_taken: Callable[[str, str], bool] | None = None,
) -> dict[str, Bound]:
    """Return the winning line of each key that any file states, with what it shadows.

    Lines are written one after the other, and what the kernel refuses changes nothing. Where
    lines only keep others from being written, nothing is assigned: the value is the empty text.

    :param is_taken: Whether the kernel takes a value for a key; by default it takes all.
    """
    lines = reader.read(files)
    found = {}
    for key in keys:
        name = with_slashes(key)
        writes = reader.list_writes(lines, name)
        taken = [one for one in writes if is_taken is None or is_taken(key, one.value or "")]
        ranked = _rank(lines, name)
        excluding = [line for line in ranked if line.value is None]
        for winner in (taken or writes or excluding)[-1:]:
            shadowed = tuple(line.declaration for line in ranked if line is not winner)
            found[key] = Bound(winner.declaration, shadowed)
    return found


def _rank(lines: Sequence[SysctlLine], name: str) -> list[SysctlLine]:
    """Return the lines that concern a file, strongest last: a name beats every pattern."""
    named = [line for line in lines if not line.glob and simplify(line.name) == name]
    return [line for line in lines if _covers(line, name)] + named


def find_lowest_nr_open(files: Mapping[str, str], running: Mapping[str, str | None]) -> int | None:
    """Return the lowest fs.nr_open from now on: the running one, or what a boot gives."""
    now = parse_sysctl_number(running.get("fs.nr_open") or "")
    stated = resolve_sysctl(files, ["fs.nr_open"]).get("fs.nr_open")
    at_boot = find_number(stated.winner) if stated else None
    default = find_boot_default("fs.nr_open", now)
    known = [now, default if at_boot is None else at_boot]
    return min((value for value in known if value is not None), default=None)
