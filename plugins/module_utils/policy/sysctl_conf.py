# SPDX-License-Identifier: BSD-2-Clause
"""Predict which line of sysctl.d(5) wins each key at boot, as systemd-sysctl reads them."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import NamedTuple

from .declaration import Declaration
from .pam_limits import Bound
from .schema import normal_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SYSCTL_DIRECTORIES = (
    "/etc/sysctl.d",
    "/run/sysctl.d",
    "/usr/local/lib/sysctl.d",
    "/usr/lib/sysctl.d",
    "/lib/sysctl.d",
)
"""Where a file of the same name hides those of the folders after it."""

FILE_MAX_OF_SYSTEMD = 2**63 - 1
NR_OPEN_OF_SYSTEMD = 1073741816
NR_OPEN_OF_KERNEL = 1048576
MAX_MAP_COUNT_OF_KERNEL = 65530

_COMMENTS = ("#", ";")


class SysctlLine(NamedTuple):
    """One assignment; ``key`` with dots, ``value`` as written, ``glob`` if it names many keys.

    ``value`` is ``None`` for ``-key`` alone, which undoes what was assigned before it and keeps
    the globs away.
    """

    path: str
    line: int
    text: str
    key: str
    value: str | None
    glob: bool

    @property
    def declaration(self) -> Declaration:
        text = self.value or ""
        number = parse_sysctl_number(text)
        return Declaration(self.path, self.line, self.text, text if number is None else number)


def order_files(files: Mapping[str, str]) -> list[str]:
    """Return the files that count, by their names over all folders; the last line wins."""
    chosen: dict[str, str] = {}
    for folder in SYSCTL_DIRECTORIES:
        for path in files:
            head, name = path.rpartition("/")[::2]
            if head == folder and name.endswith(".conf") and not name.startswith("."):
                chosen.setdefault(name, path)
    return [chosen[name] for name in sorted(chosen)]


def parse_sysctl_conf(text: str, path: str) -> list[SysctlLine]:
    """Return every assignment of one file; other lines are ignored, as at boot."""
    found = []
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.strip()
        name, equals, value = line.partition("=")
        excludes = not equals and name.startswith("-")
        key = normal_key(name[name.startswith("-") :].strip())
        if line.startswith(_COMMENTS) or not key or not (equals or excludes):
            continue
        glob = any(mark in key for mark in "*?[")
        stated = None if excludes else value.strip()
        found.append(SysctlLine(path, number, line, key, stated, glob))
    return found


def parse_sysctl_number(text: str) -> int | None:
    """Read a value as the kernel's parser does: it stops at the first blank, and a leading zero
    makes a number octal (``proc_get_long()`` in kernel/sysctl.c)."""
    match = re.match(r"(0[xX][0-9a-fA-F]{1,39}|0[0-7]{0,39}|[1-9][0-9]{0,39})(?![^\s\0])", text)
    if match is None:
        return None
    base = 16 if match[0][:2] in ("0x", "0X") else 8 if match[0][0] == "0" else 10
    return int(match[0], base)


def resolve_sysctl(files: Mapping[str, str], keys: list[str]) -> dict[str, Bound]:
    """Return the winning line of each key that any file states, with what it shadows.

    A line that names the key beats every line that only matches it, wherever they stand. Where
    ``-key`` alone wins, nothing is assigned: its value is the empty text.
    """
    lines = [line for path in order_files(files) for line in parse_sysctl_conf(files[path], path)]
    found = {}
    for key in keys:
        named = [line.declaration for line in lines if not line.glob and line.key == key]
        matching = [
            line.declaration
            for line in lines
            if line.glob and line.value is not None and _matches(line.key, key)
        ]
        ranked = matching + named
        if ranked:
            found[key] = Bound(ranked[-1], tuple(ranked[:-1]))
    return found


def _matches(pattern: str, key: str) -> bool:
    """Match part by part: a ``*`` does not reach over a separator."""
    parts, wanted = pattern.split("."), key.split(".")
    return len(parts) == len(wanted) and all(map(fnmatchcase, wanted, parts))


def find_boot_default(key: str, running: int | None) -> int | None:
    """Return the value a key has at boot if no file states it; ``None`` where not known.

    systemd raises fs.file-max to its highest value before any file is read (since v240), and
    fs.nr_open on builds that allow it; the running value shows whether it did.
    """
    if key == "fs.file-max":
        return running if running == FILE_MAX_OF_SYSTEMD else None
    if key == "fs.nr_open":
        return NR_OPEN_OF_SYSTEMD if running == NR_OPEN_OF_SYSTEMD else NR_OPEN_OF_KERNEL
    return MAX_MAP_COUNT_OF_KERNEL if key == "vm.max_map_count" else None
