# SPDX-License-Identifier: BSD-2-Clause
"""Part a shell's script into commands, and find what its here documents are for; sh(1)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from ..core.values import NamedTuple
from .job_options import skip_shell_options, split_job
from .shell_text import replace_substituted, strip_comments

_HERE = re.compile(r"<<(-?)\s*([\"'\\]?)([A-Za-z_][\w-]*)[\"']?")
_SUM = re.compile(r"\(\(.*?\)\)")
_ARRAY = re.compile(
    r"\s*(?:(?:export|local|readonly|declare|typeset)\s+(?:-\w+\s+)*)?[A-Za-z_]\w*\+?=\("
)
_TARGET = re.compile(r"(?:(?<![0-9&>])>{1,2}\s*|\btee\s+(?:-a\s+)?)([^\s<>|;&-][^\s<>|;&]*)")
_SHELLS = ("bash", "sh", "zsh", "dash", "ksh")
MOST_LINES = 20_000
_MOST_JOINED = 200


class Line(NamedTuple):
    """One command, its continued lines joined, with the number of its first.

    ``body`` is its here document, which begins behind line ``last``; ``expands`` tells whether
    variables count in it.
    """

    number: int
    text: str
    body: str = ""
    last: int = 0
    expands: bool = True


def find_target(text: str) -> str:
    """Return the file that a command with a here document writes: ``cat > FILE <<EOF``."""
    found = _TARGET.search(text)
    return found[1].strip("\"'") if found else ""


def is_script(words: Sequence[str]) -> bool:
    """Tell whether a command takes its script from a here document: ``srun bash <<EOF``."""
    for at, word in enumerate(words):
        name, rest = word.rpartition("/")[2], words[at + 1 :]
        if name == "sbatch":
            return split_job([*rest, ""], "").script == [""]
        if name in _SHELLS:
            return not [one for one in skip_shell_options(rest) if one != "-s"]
    return False


def split_lines(text: str) -> Iterator[Line]:
    """Yield commands without comments, each with its here document."""
    lines = text.splitlines()[:MOST_LINES]
    at = 0
    while at < len(lines):
        start, line = at, lines[at]
        at += 1
        if line.lstrip().startswith("#"):
            continue
        whole = [line]
        while at < len(lines) and (whole[-1].endswith("\\") or _is_open(whole)):
            if not lines[at].lstrip().startswith("#"):
                whole.append(lines[at])
            at += 1
        here = None if "<<<" in line else _HERE.search(_SUM.sub("", line))
        plain = strip_comments("\n".join(whole)).replace("\\\n", " ")
        first, body = at, ""
        if here:
            at = _find_end(lines, at, here[3], bool(here[1]))
            body = "\n".join(one.lstrip("\t") if here[1] else one for one in lines[first : at - 1])
            plain = _HERE.sub("", plain, count=1)
        if plain.strip():
            text = replace_substituted(plain)
            yield Line(start + 1, text, body, first, not (here and here[2]))


def _find_end(lines: Sequence[str], at: int, word: str, is_indented: bool) -> int:
    """Return where the lines go on behind a here document."""
    for number in range(at, len(lines)):
        line = lines[number].rstrip()
        if (line.lstrip("\t") if is_indented else line) == word:
            return number + 1
    return len(lines) + 1


def find_close(text: str, at: int) -> int:
    """Return where the bracket closes that opens in a text; its length where none does."""
    depth, quote = 0, ""
    while at < len(text):
        char = text[at]
        if char == "\\" and quote != "'":
            at += 2
            continue
        if char in "\"'" and quote in ("", char):
            quote = "" if quote else char
        elif not quote:
            depth += (char == "(") - (char == ")")
            if char == ")" and not depth:
                return at
        at += 1
    return len(text)


def _is_open(lines: list[str]) -> bool:
    """Tell whether an array has begun and not ended, ``ARGS=(``, or a quotation has."""
    if len(lines) > _MOST_JOINED:
        return False
    text = "\n".join(lines)
    array = _ARRAY.match(lines[0])
    if array:
        plain = strip_comments(text)
        return find_close(plain, array.end() - 1) == len(plain)
    if text.count('"') % 2 == 0 and text.count("'") % 2 == 0:
        return False
    try:
        shlex.split(text, comments=True)
    except ValueError:
        return True
    return False
