# SPDX-License-Identifier: BSD-2-Clause
"""Find where units, cron and rc.local set a sysctl after the files of sysctl.d were read."""

from __future__ import annotations

import re
from typing import NamedTuple

from .declaration import Declaration
from .sysctl_conf import parse_sysctl_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LOADS = re.compile(r"\bsysctl\b[^#;&|]*?\s(?:-[a-oq-z]*p|--load|--system)\b")
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
    patterns = [re.compile(pattern) for pattern in _describe_writes(key)]
    for path, text in texts.items():
        for number, line in _list_running(path, text):
            for match in filter(None, (pattern.search(line) for pattern in patterns)):
                value = match["value"] if parse_sysctl_number(match["value"]) is not None else ""
                yield ScriptWrite(Declaration(path, number, line.strip(), value), match[0])
            if _LOADS.search(line):
                yield ScriptWrite(Declaration(path, number, line.strip(), ""), loads=True)


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
    yield rf"\bsysctl\b[^#;&|]*?[\s\"']{name}\s*=\s*{value}"
    path = re.escape("/proc/sys/" + key.replace(".", "/"))
    into = r"[\"']?\s*(?:>|\|\s*(?:sudo\s+)?tee)\s*[\"']?"
    yield rf"\becho\s+(?:-\S+\s+)*{value}{into}{path}(?![\w/.-])"
