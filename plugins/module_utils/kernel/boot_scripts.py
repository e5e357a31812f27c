# SPDX-License-Identifier: BSD-2-Clause
"""Find where units, cron and rc.local set a sysctl after the files of sysctl.d were read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ..core.declaration import Declaration
from .sysctl_conf import parse_sysctl_number

_CALL = re.compile(r"\bsysctl\b[^#;&|]*")
_LOADS = re.compile(r"\s(?:-[a-oq-z]*p|--load|--system)\b")
_EXEC = re.compile(r"[ \t]*Exec(?:Start|StartPre|StartPost|Condition)[ \t]*=")
_CALLED = re.compile(r"(?<![\w/])/(?:etc|opt|root|srv|usr/local)/[\w./-]+")
_UNITS = (".service", ".conf")


class ScriptWrite(NamedTuple):
    """A line that runs at boot or later and sets a key; ``matched`` is the part that does so.

    The value of ``at`` is what it sets: a number as text, or nothing where that is not plain.
    ``loads`` says that it has procps read the files again instead.
    """

    at: Declaration
    matched: str = ""
    loads: bool = False


def find_script_writes(key: str, texts: Mapping[str, str]) -> Iterator[ScriptWrite]:
    """Yield the lines that set a key, in the order of the files.

    :param texts: Text of what runs at boot, by path; of units, the whole file.
    """
    by_call, by_echo = map(re.compile, _describe_writes(key))
    for path, text in texts.items():
        for number, line in _list_running(path, text):
            for written, matched in _find_writes(line, by_call, by_echo):
                value = written if parse_sysctl_number(written) is not None else ""
                yield ScriptWrite(Declaration(path, number, line, value), matched)
            if any(_LOADS.search(call[0]) for call in _CALL.finditer(line)):
                yield ScriptWrite(Declaration(path, number, line, ""), loads=True)


def _find_writes(
    line: str, by_call: re.Pattern[str], by_echo: re.Pattern[str]
) -> Iterator[tuple[str, str]]:
    """Yield each value that a line sets, and the part of the line that does so."""
    for call in _CALL.finditer(line):
        found = by_call.search(line, call.start(), call.end())
        whole = by_call.match(line, found.start()) if found else None  # A value may hold a '#'.
        if whole:
            yield whole["value"], line[call.start() : whole.end()]
    echo = by_echo.search(line)
    if echo:
        yield echo["value"], echo[0]


def is_about_sysctls(text: str) -> bool:
    """Tell whether a script may set any key at all."""
    return "sysctl" in text or "/proc/sys" in text


def find_called(path: str, text: str) -> list[str]:
    """Return the files of the administrator that a file has run at boot."""
    return [name for _number, line in _list_running(path, text) for name in _CALLED.findall(line)]


def _list_running(path: str, text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.split("\n"), 1):
        if _runs(path, line):
            yield number, line


def _runs(path: str, line: str) -> bool:
    """Tell whether a line is carried out."""
    if line.lstrip().startswith("#"):
        return False
    return not path.endswith(_UNITS) or _EXEC.match(line) is not None


def _describe_writes(key: str) -> Iterator[str]:
    """Yield patterns of the two ways to set a key: sysctl(8), and its file."""
    name = "[./]".join(re.escape(part) for part in key.split("."))
    value = r"[\"']?(?P<value>[^\s\"';&|]*)"
    yield rf"[\s\"']{name}\s*=\s*{value}"
    path = re.escape("/proc/sys/" + key.replace(".", "/"))
    into = r"[\"']?\s*(?:>|\|\s*(?:sudo\s+)?tee)\s*[\"']?"
    yield rf"\becho\s+(?:-\S+\s+){{0,3}}{value}{into}{path}(?![\w/.-])"
