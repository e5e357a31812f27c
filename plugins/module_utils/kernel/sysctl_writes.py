# SPDX-License-Identifier: BSD-2-Clause
"""Predict which line of sysctl.d(5) wins each key: at boot, and after ``sysctl --system``.

Sources: ``apply_all()`` in sysctl.c of systemd; ``write_setting_list()`` and
``settinglist_findpath()`` in sysctl.c of procps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from ..core.distribution import Distribution
from ..core.values import Bound, NamedTuple
from .sysctl_conf import (
    SysctlLine,
    find_boot_default,
    find_number,
    order_files,
    parse_procps3_conf,
    parse_procps_conf,
    parse_sysctl_conf,
    parse_sysctl_number,
    with_slashes,
)
from .sysctl_index import Index


def _list_writes_of_systemd(index: Index, name: str) -> list[SysctlLine]:
    """Return the lines that are written to a file, in this order.

    Of one spelling only the last line counts, at the place of the first of those that state the
    same. A pattern leaves alone what another line names, be it only to exclude it.
    """
    named = index.find_named(name)[-1:] or list(filter(None, [index.find_pattern(name)]))
    return [line for line in named or index.find_last_patterns(name) if line.value is not None]


def _list_writes_of_procps(index: Index, name: str) -> list[SysctlLine]:
    """Return the lines that are written to a file, in this order: every line that names it.

    A pattern leaves alone what another line names, be it only to exclude it. Names are compared
    as they are spelled. Patterns that exclude do nothing up to 4.0.4.
    """
    covering = [
        number
        for number in index.whole.find(name)
        if _spell(index.lines[number].name, name) not in index.spellings
    ]
    numbers = sorted([*covering, *index.find_resolved(name)])
    return [index.lines[one] for one in numbers if index.lines[one].value is not None]


def _spell(pattern: str, name: str) -> str:
    """Return a matched name with the empty parts of its pattern, as glob(3) returns it."""
    parts = iter(name.split("/"))
    return "/".join(part if part in ("", ".") else next(parts) for part in pattern.split("/"))


class Reader(NamedTuple):
    """A program that reads sysctl.d: how it reads a file, and what it then writes."""

    name: str
    parse: Callable[[str, str], list[SysctlLine]]
    list_writes: Callable[[Index, str], list[SysctlLine]]
    is_procps: bool = True

    def read(self, files: Mapping[str, str]) -> list[SysctlLine]:
        """Return the lines of all files that count, in the order in which they are read."""
        order = order_files(files, self.is_procps)
        return [line for path in order for line in self.parse(files[path], path)]

    def arrange(self, files: Mapping[str, str]) -> Index:
        """Return the same lines by what they name."""
        order = order_files(files, self.is_procps)
        return _arrange(self.parse, tuple((path, files[path]) for path in order))


@lru_cache(maxsize=2)
def _arrange(
    parse: Callable[[str, str], list[SysctlLine]], files: tuple[tuple[str, str], ...]
) -> Index:
    """Keep what was made of files: a check asks for key after key."""
    return _index(tuple(line for path, text in files for line in parse(text, path)))


_index = lru_cache(maxsize=2)(Index)  # Both programs read most files alike.


SYSTEMD = Reader("systemd", parse_sysctl_conf, _list_writes_of_systemd, is_procps=False)
PROCPS = Reader("procps", parse_procps_conf, _list_writes_of_procps)
PROCPS_3 = Reader("procps 3", parse_procps3_conf, _list_writes_of_procps)


def find_procps(vendor: Distribution) -> Reader:
    """Return the procps of a distribution; an unknown one is taken for new."""
    return PROCPS_3 if vendor.knows_patterns is False else PROCPS


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
    index = reader.arrange(files)
    found = ((key, resolve_key(index, key, reader, is_taken)) for key in keys)
    return {key: bound for key, bound in found if bound}


def resolve_key(
    index: Index,
    key: str,
    reader: Reader = SYSTEMD,
    is_taken: Callable[[str, str], bool] | None = None,
) -> Bound | None:
    """Return the winning line of one key, as :func:`resolve_sysctl` does of several."""
    name = with_slashes(key)
    only = index.find_only(name)
    if only:
        return Bound(only.declaration)
    writes = reader.list_writes(index, name)
    taken = [one for one in writes if is_taken is None or is_taken(key, one.value or "")]
    ranked = [*index.find_covering(name), *index.find_named(name)]
    last = (taken or writes or [line for line in ranked if line.value is None])[-1:]
    if not last:
        return None
    shadowed = tuple(line.declaration for line in ranked if line is not last[0])
    return Bound(last[0].declaration, shadowed)


def find_lowest_nr_open(files: Mapping[str, str], running: Mapping[str, str | None]) -> int | None:
    """Return the lowest fs.nr_open from now on: the running one, or what a boot gives."""
    now = parse_sysctl_number(running.get("fs.nr_open") or "")
    stated = resolve_sysctl(files, ["fs.nr_open"]).get("fs.nr_open")
    at_boot = find_number(stated.winner) if stated else None
    default = find_boot_default("fs.nr_open", now)
    known = [now, default if at_boot is None else at_boot]
    return min((value for value in known if value is not None), default=None)
