# SPDX-License-Identifier: BSD-2-Clause
"""Find where units, cron, udev and rc.local mount /dev/shm anew after fstab did."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from ..core.values import Declaration, NamedTuple
from ..kernel.boot_calls import list_running
from ..kernel.boot_units import is_doubtful, mark
from .model import SHM, find_default, parse_tmpfs_size

_NAMES = (SHM, "/run/shm", "shm")
_MENTION = re.compile(r"(?<![\w.-])shm(?![\w.-])")
_LIST = re.compile(r"[\"']\s*,\s*[\"']|[\[\]]")  # Of another language: words of one command.
_COMMENT = re.compile(r"(?:^|\s)#.*")
_APART = re.compile(r"[;&|()]+|\b(?:then|else|do)\b")
_PREFIX = re.compile(r"Exec\w+[ \t]*=[-@+!:]*")
_LONGEST = 4096  # Characters of a line in which an option is looked for.
_TELLERS = ("echo", "printf", "logger", "log")
_WITH_VALUE = {"-t", "-o", "-O", "-L", "-U", "-T", "-N", "--types", "--options", "--source"}


class Mount(NamedTuple):
    """A line that mounts it, with the size in bytes for value, or nothing where it is not plain.

    ``option`` is what gives the size and stands once in the line; empty where a person must look.
    """

    at: Declaration
    option: str = ""


class _Call(NamedTuple):
    """One call of mount(8) or umount(8): its options, and what it is about."""

    program: str
    options: tuple[str, ...]
    flags: tuple[str, ...]
    target: str


def is_about_shm(text: str) -> bool:
    """Tell whether a script may mount /dev/shm."""
    return "mount" in text and _MENTION.search(text) is not None


def find_mounts(texts: Mapping[str, str], memory: int) -> list[Mount]:
    """Return the lines that mount it, in the order of the files.

    A remount without a size leaves it what it is, and is left out. In a file that names it, a mount
    of what a variable says may be one of it.

    :param texts: Text of what runs at boot, by path; of units, the whole file.
    :param memory: The host's, in bytes.
    """
    return [found for path, text in texts.items() for found in _find(path, text, memory)]


def _find(path: str, text: str, memory: int) -> Iterator[Mount]:
    rows = text.split("\n")
    running = [
        (number, _COMMENT.sub("", line))
        for number, line in list_running(path, mark(_join(text), text))
    ]
    is_named = any(_MENTION.search(line) for _number, line in running)
    for number, line in running:
        row = rows[number - 1]
        for call in _find_calls(line):
            if call.target.rstrip("/") in _NAMES:
                size = _read_size(call, memory)
                if size is not None and is_doubtful(text, number):
                    yield Mount(Declaration(path, number, row, ""))
                elif size is not None:
                    option = next(filter(_gives_size, reversed(call.options)), "")
                    is_plain = size != "" and len(row) <= _LONGEST and row.count(option) == 1
                    at = Declaration(path, number, row, size)
                    yield Mount(at, option if is_plain else "")
            elif "$" in call.target and is_named:
                yield Mount(Declaration(path, number, row, ""))


def _join(text: str) -> str:
    """Return a text in which a line that a backslash continues holds all, and the next nothing."""
    rows: list[list[str]] = []
    head: list[str] | None = None
    for row in text.split("\n"):
        rows.append([])
        head = rows[-1] if head is None else head
        head.append(row.rstrip("\\"))
        if not row.endswith("\\"):
            head = None
    return "\n".join(map("".join, rows))


def _find_calls(line: str) -> Iterator[_Call]:
    for part in _APART.split(_LIST.sub(" ", _PREFIX.sub("", line))):
        words = re.sub(r"[\"'`]", " ", part).split()
        names = [word.rpartition("/")[2] for word in words]
        if names and names[0] in _TELLERS:
            continue
        for place, name in enumerate(names):
            if name in ("mount", "umount"):
                yield _read_call(name, words[place + 1 :])
                break


def _read_call(program: str, words: Sequence[str]) -> _Call:
    options: list[str] = []
    flags: list[str] = []
    target, rest = "", iter(words)
    for word in rest:
        if word in _WITH_VALUE:
            value = next(rest, "")
            options += value.split(",") if word in ("-o", "--options") else []
            flags.append(f"{word} {value}")
        elif word.startswith("-"):
            flags.append(word)
            options += word[2:].split(",") if word.startswith("-o") else []
            options += word[10:].split(",") if word.startswith("--options=") else []
        elif not word.startswith((">", "<", "2>")):
            target = word
    return _Call(program, tuple(options), tuple(flags), target)


def _gives_size(option: str) -> bool:
    return option.startswith(("size=", "nr_blocks="))


def _read_size(call: _Call, memory: int) -> int | str | None:
    """Return the size in bytes, nothing as a text where it is not plain; ``None``: no change."""
    stated = next(filter(_gives_size, reversed(call.options)), "")
    if call.program == "umount" or stated.startswith("nr_blocks="):
        return ""
    if stated:
        size = parse_tmpfs_size(stated.partition("=")[2], memory)
        return "" if size is None else size
    if "remount" in call.options:
        return None
    return find_default(memory) if {"-t tmpfs", "-ttmpfs"} & set(call.flags) else ""
