# SPDX-License-Identifier: BSD-2-Clause
"""Put in the specifiers of systemd.unit(5) where a unit names a key, a file or an argument."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..core.systemd_text import expand_name
from .boot_units import Script, mark

_FEW = 20  # Instances of a template.
_OF_SYSTEM = {
    "t": "/run", "S": "/var/lib", "C": "/var/cache", "L": "/var/log", "E": "/etc", "h": "/root",
    "D": "/usr/share", "T": "/tmp", "V": "/var/tmp",  # noqa: S108
    "u": "root", "U": "0", "g": "root", "G": "0",
}  # fmt: skip
"""What they stand for in a unit of the system's own manager."""
_DROP_IN = re.compile(r".*/([^/]+)\.d/[^/]+")
_PLACED = r"%[A-Za-z%]"
_LETTER = "%[a-zA-EGHIJL-PS-WYy]"
_LEFT = (
    rf"^\s*Exec\w+\s*=[-@:+!|\s]*[^\s%]*{_LETTER}|\bsysctl\b.*{_LETTER}|/proc/sys/\S*{_LETTER}"
    rf"|(?:>|\b(?:(?:ba|da)?sh|tee|source)\s)\s*(?:-\S+\s+)*[^\s%]*{_LETTER}"
)


def put_specifiers(path: str, text: str, started: Iterable[str]) -> str:
    """Return a unit's text as its specifiers have it, each line once for each instance of it.

    Lines keep their numbers. Those that may run what no specifier of ours tells are unread.
    """
    units = _list_units(path, started) if "%" in text else []
    if not units:
        return text
    is_short = len(units) <= _FEW and not any("@." in one for one in units)
    whole = [_put(line, units if is_short else ()) or line for line in text.split("\n")]
    unread = {
        number
        for number, line in enumerate(whole, 1)
        if not _is_comment(line) and re.search(_LEFT if is_short else _LETTER, line)
    }
    found = mark("\n".join(whole).replace("\0", "%"), text, unread=unread)
    found.written = str(text)
    return found


def _list_units(path: str, started: Iterable[str]) -> list[str]:
    """Return the units that a file is of: of a template those instances that are started.

    The template stands for instances that nobody can name.
    """
    drop_in = _DROP_IN.fullmatch(path)
    name = drop_in[1] if drop_in else path.rpartition("/")[2]
    stem, dot, end = name.rpartition(".")
    if end not in ("service", "socket") or not dot:
        return []
    if not stem.endswith("@"):
        return [name]
    instances = {one.rpartition(".")[0] for one in started if one.startswith(stem)}
    return [f"{one}.{end}" for one in sorted(instances)]


def _put(line: str, units: Iterable[str]) -> str:
    """Return a line for each of the units; a percent sign of its own is held apart."""
    if "%" not in line or _is_comment(line):
        return line
    return " ; ".join(dict.fromkeys(_put_one(line, unit) for unit in units))


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith(("#", ";"))


def _put_one(line: str, unit: str) -> str:
    def put(found: re.Match[str]) -> str:
        if found[0] == "%%":
            return "\0"
        return _OF_SYSTEM.get(found[0][1], "") or expand_name(found[0], unit)

    return re.sub(_PLACED, put, line)


def find_written(text: str, number: int, line: str) -> str:
    """Return a line as the file has it."""
    if not (isinstance(text, Script) and text.written):
        return line
    return text.written.split("\n")[number - 1]
