# SPDX-License-Identifier: GPL-3.0-or-later
"""What a Markdown file tells its reader to type, as data: blocks, spans, commands. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_FENCE = re.compile(r"^(?P<indent> *)(?P<mark>`{3,}|~{3,})(?P<language>.*)$")
_SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_COMMENT = re.compile(r"(?:^|\s)#(?=\s|$)")
_HERE_DOCUMENT = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_OPTIONAL = re.compile(r" \[(?!\{)(?! )([^\[\]]+)\]")
_PLACEHOLDER = re.compile(r"(?<![\w$-])[A-Z]+(?![\w=(])")
_FILE_NAME = re.compile(r"# ([\w./-]+\.[a-z]+)\b")
PROMPT = "$ "
SHELL = ("sh", "console")
"""Languages of what a reader types: all of it, or what stands behind prompts."""


class Block(NamedTuple):
    """A fenced block; ``line`` is that of its fence."""

    line: int
    language: str
    text: str

    @property
    def file_name(self) -> str:
        """Return the name of the file that this block is, which its first line states."""
        match = _FILE_NAME.match(self.text)
        return match[1] if match else ""


class Command(NamedTuple):
    """What is typed, in a block or within a sentence, and what is shown to come of it."""

    line: int
    text: str
    shown: str = ""
    is_span: bool = False

    @property
    def program(self) -> str:
        """Return the first word that is not an assignment."""
        words = self.text.split()
        return next((word for word in words if not re.match(r"\w+=", word)), "")


def find_blocks(text: str) -> list[Block]:
    """Return the fenced blocks of a document.

    :raises ValueError: If one is not closed.
    """
    blocks = []
    lines = iter(enumerate(text.splitlines(), 1))
    for number, line in lines:
        opening = _FENCE.match(line)
        if opening:
            inner = "\n".join(_read_fenced(lines, opening["mark"], len(opening["indent"]), number))
            blocks.append(Block(number, opening["language"].strip(), inner))
    return blocks


def _read_fenced(
    lines: Iterator[tuple[int, str]], mark: str, indent: int, opened: int
) -> Iterator[str]:
    for _number, line in lines:
        if line.strip() == mark:
            return
        yield line[indent:] if not line[:indent].strip() else line
    raise ValueError(f"the block that begins in line {opened} has no end")


def find_indented(text: str) -> list[int]:
    """Return the lines of blocks made by indentation, which state no language.

    Below a list, an indented paragraph belongs to its point and is none.
    """
    found, fenced, in_list, before = [], "", False, ""
    for number, line in enumerate(text.splitlines(), 1):
        fence = _FENCE.match(line)
        if fence and fenced in ("", line.strip()):
            fenced = "" if fenced else fence["mark"]
        elif not fenced and line.strip():
            is_indented = line.startswith("    ")
            if is_indented and not before.strip() and not in_list:
                found.append(number)
            in_list = re.match(r" *([-*+]|\d+[.)]) ", line) is not None or (
                in_list and (line.startswith(" ") or bool(before.strip()))
            )
        before = line
    return found


def find_spans(text: str, programs: Mapping[str, object]) -> list[Command]:
    """Return the commands within sentences: of these programs, with a word at least behind."""
    prose = _blank_blocks(text)
    found = []
    for match in _SPAN.finditer(prose):
        command = " ".join(match[1].split())
        number = prose.count("\n", 0, match.start()) + 1
        candidate = Command(number, command, is_span=True)
        if candidate.program in programs and command != candidate.program:
            found.append(candidate)
    return found


def _blank_blocks(text: str) -> str:
    lines = text.splitlines()
    for block in find_blocks(text):
        end = block.line + len(block.text.splitlines()) + (0 if block.text else 1)
        lines[block.line - 1 : end + 1] = [""] * (end + 2 - block.line)
    return "\n".join(lines)


def find_commands(block: Block) -> list[Command]:
    """Return what a block tells to type, each command whole, without comments.

    :raises ValueError: If a command does not end within the block.
    """
    prompted = block.language == "console"
    found: list[Command] = []
    lines = iter(enumerate(block.text.splitlines(), block.line + 1))
    for number, line in lines:
        if prompted and not line.startswith(PROMPT):
            if found:
                found[-1] = found[-1]._replace(shown=f"{found[-1].shown}{line}\n")
            continue
        command = _read_command(line[len(PROMPT) :] if prompted else line, lines, number)
        if command:
            found.append(Command(number, command))
    return found


def _read_command(line: str, lines: Iterator[tuple[int, str]], number: int) -> str:
    """Read on until quotes are closed, nothing is continued, and what was begun has its end."""
    command = strip_comment(line)
    while command is None or command.endswith("\\"):
        following = next(lines, None)
        if following is None:
            raise ValueError(f"the command of line {number} has no end")
        line = f"{line}\n{following[1]}"
        command = strip_comment(line)
    ends = [match[2] for match in _HERE_DOCUMENT.finditer(command)]
    if command.endswith("{"):  # A function, up to the brace that stands alone.
        ends.append("}")
    for end in ends:
        command = f"{command}\n{_read_until(end, lines, number)}"
    return command


def _read_until(end: str, lines: Iterator[tuple[int, str]], number: int) -> str:
    inner = []
    for _number, line in lines:
        inner.append(line)
        if line == end:
            return "\n".join(inner)
    raise ValueError(f"the command of line {number} has no end")


def strip_comment(line: str) -> str | None:
    """Return a line of shell without its comment; none where a quote is open at its end."""
    for match in _COMMENT.finditer(line):
        before = line[: match.start()]
        if _is_closed(before):
            return before.rstrip()
    return line.rstrip() if _is_closed(line) else None


def _is_closed(text: str) -> bool:
    try:
        shlex.split(text.rstrip("\\"))
    except ValueError:
        return False
    return True


def expand_options(command: str) -> list[str]:
    """Return a command without what it may have (`` [--json]``), and with all of that."""
    shorter, longer = _OPTIONAL.sub("", command), _OPTIONAL.sub(r" \1", command)
    return [shorter] if shorter == longer else [shorter, longer]


def fill(command: str, values: Mapping[str, str]) -> str:
    """Put values in the place of words such as FILE, or of paths.

    :raises ValueError: If a word in capitals is left that nothing is known of.
    """
    ends = {match[2] for match in _HERE_DOCUMENT.finditer(command)}
    unknown = set(_PLACEHOLDER.findall(command)) - set(values) - ends
    if unknown:
        raise ValueError(f"what stands for {', '.join(sorted(unknown))}?")
    if not values:
        return command
    names = "|".join(re.escape(name) for name in sorted(values, key=len, reverse=True))
    return re.sub(rf"(?<![\w$-])({names})(?![\w=(])", lambda match: values[match[1]], command)
