# SPDX-License-Identifier: BSD-2-Clause
"""Tell whether a script changes the files of sysctl.d, so that they may not stay as they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from .boot_shell import find_commands, find_comment, find_targets, is_talk
from .sysctl_conf import SYSCTL_CONF, SYSCTL_DIRECTORIES

_PLACES = tuple(folder.replace("/usr/lib", "/lib") for folder in SYSCTL_DIRECTORIES)
_OF_BOOT = (*dict.fromkeys(_PLACES), SYSCTL_CONF)
_LONGEST = 4096  # Characters of a line that is taken apart.
_IS_UNIT = r"(?m)^\[(?:Unit|Service|Socket)\]"
_STATES = r"^\s*(?:(?:export|readonly|local|declare)\s+)?(\w+)=(\S*|\"[^\"]*\"|'[^']*')\s*$"
_LOOPS = r"\bfor\s+(\w+)\s+in\s([^;]*)"
_NAMED = r"\$(?:(\w+)|\{(\w+)\})"
_BEFORE = r"^\s*(?:Exec\w+\s*=\s*[-@:+!|]*|(?:if|then|else|elif|while|until|do|!|\{|sudo|exec)\s+)+"
_REMOVES = r"(?:\S*/)?(?:rm|tee|sed|perl)\b"
_READS = r"(?:\S*/)?(?:systemd-)?sysctl\b"
_SAYS = r"(?:\S*/)?(?:(?:echo|printf)\s[^$`]*$|cat\s[^$`]*<<)"
_COPIES = r"(?:\S*/)?(?:cp|rsync|install)\s"


@lru_cache(maxsize=8)
def find_change(text: str) -> int:
    """Return the line in which a script may change what a boot reads, or 0.

    What it says itself names the keys, and is judged where it does.
    """
    if not _is_named(text):
        return 0
    is_unit = re.search(_IS_UNIT, text) is not None
    names: set[str] = set()
    for number, line in _list_lines(text):
        if not _counts(line) or (is_unit and not line.lstrip().startswith("Exec")):
            continue
        whole = line[: find_comment(line)]
        if len(whole) > _LONGEST and _is_named(whole):
            return number
        commands = [whole[start:end] for start, end in find_commands(whole)]
        names.update(name for one in commands for name in _find_names(one))
        if any(_changes(one, names) for one in commands):
            return number
    return 0


def _list_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines, those joined that go on in the next, with the number of the first."""
    held, first = "", 0
    for number, line in enumerate(f"{text}\n".split("\n"), 1):
        first = first or number
        if line.endswith("\\"):
            held += f"{line[:-1]} "
            continue
        yield first, held + line
        held, first = "", 0


def _counts(line: str) -> bool:
    return (_is_named(line) or "$" in line) and not line.lstrip().startswith("#")


def _is_named(text: str) -> bool:
    return any(name in text for name in _OF_BOOT)


def _find_names(command: str) -> list[str]:
    """Return the variables to which a command gives the name of such a file."""
    pairs = [*re.findall(_STATES, command), *re.findall(_LOOPS, command)]
    return [name for name, value in pairs if _is_named(value)]


def _is_about(text: str, names: set[str]) -> bool:
    used = {one or other for one, other in re.findall(_NAMED, text)} if names else set()
    return _is_named(text) or not names.isdisjoint(used)


def _changes(command: str, names: set[str]) -> bool:
    """Tell whether a command changes such a file, or may: what only reads them is known."""
    if not _is_about(command, names) or re.match(_STATES, command) or re.search(_LOOPS, command):
        return False
    stem = re.sub(_BEFORE, "", command).strip()
    if any(_is_about(one, names) for one in find_targets(stem)):
        return not re.match(_SAYS, stem)
    if re.match(_COPIES, stem):
        return _is_about(stem.split()[-1], names)
    if re.match(_REMOVES, stem):
        return not (stem.lstrip().startswith("sed") and is_talk(stem))
    return not (re.match(_READS, stem) or is_talk(stem))
