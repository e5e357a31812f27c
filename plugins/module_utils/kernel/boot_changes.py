# SPDX-License-Identifier: BSD-2-Clause
"""Tell whether a script changes the files of sysctl.d, so that they may not stay as they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from .boot_shell import find_commands, find_comment, find_targets, is_talk, put_folders

_NAMES = r"sysctl[\"']*(?:[?*\[{]|\.(?!service\b))"
"""A folder or a file of them, by whatever path, and as patterns write it; not their unit."""

_LONGEST = 4096  # Characters of a line that is taken apart.
_IS_UNIT = r"(?m)^\[(?:Unit|Service|Socket)\]"
_OF_UNIT = r"\s*(?:Exec|Environment=|WorkingDirectory=|Standard(?:Output|Error)=)"
_IN_UNIT = r"\s*(?:WorkingDirectory|Standard(?:Output|Error))="
_VALUE = r"(?:[^\s\"'$`]|\$\w|\$\{[\w%/*.-]+\}|\"[^\"`(]*\"|'[^']*')*"
_STATED = rf"(\w+)=({_VALUE})"
_STATES = (
    r"\s*(?:(?:export|readonly|local|declare)\s+(?:-\w+\s+)?)?"
    rf"(?:{_STATED}(?:\s+|$))+$"
)
_DEFAULT = r"\$\{(\w+):?[=-]([^{}]*)\}"
_LOOPS = r"\s*for\s+(\w+)\s+in\s+([^;$`(]*)$"
_USED = r"\$\{?(\w+)"
_BEFORE = (
    r"^\s*(?:Exec\w+\s*=\s*[-@:+!|]*|(?:if|then|else|elif|while|until|do|!|\{|sudo|exec|nice|ionice"
    rf"|nohup|time|env|command)\s+|{_STATED}\s+(?=\S))+"
)
_GOES_ON = (
    r"\b(?:while|until)\s+(?:\w+=\S*\s+)?read\b|\b(?:xargs|parallel)\b(?!.*\bsysctl\s)"
    r"|\bfor\s+\w+\s+in\s+[^;]*(?:`|\$\()"
)
_READS = (
    r"(?:\S*/)?(?:(?:systemd-)?sysctl|md5sum|sha\d+sum|restorecon|done|stat|ls)(?=\s|$)"
    r"|(?:\S*/)?find(?=\s)(?!.*\s-(?:exec|ok|delete|fprint|fls))"
    r"|(?:\S*/)?sed(?=\s)(?!.*(?:\s-(?:-in-place|\w*i)|\bw\s*[/\"$]))"
    r"|(?:\S*/)?awk(?=\s)(?!.*(?:inplace|>|system|print\s*\|))|(?:\S*/)?tar\s+-?-?c"
)
_MAY_CHANGE = r"(?:\S*/)?(?:rm|tee|sed|perl|sort|touch|awk)\b"
_SAYS = r"(?:\S*/)?(?:(?:echo|printf)\s[^$`]*=[^$`]*$|cat\s[^$`]*<<)"
_HEREDOC = r"<<-?\s*([\"'\\]?)(\w+)"
_REDIRECTED = r"\s*\d?>{1,2}\s*\S+|\s*\d?>&\d"


@lru_cache(maxsize=8)
def find_change(text: str) -> int:
    """Return the line in which a script may change what a boot reads, or 0.

    What it says itself names the keys, and is judged where it does.
    """
    if not _is_named(text):
        return 0
    text = put_folders("", text)
    is_unit = re.search(_IS_UNIT, text) is not None
    names: set[str] = set()
    for number, line in _list_lines(text):
        if not _counts(line) or (is_unit and not re.match(_OF_UNIT, line)):
            continue
        whole = line[: find_comment(line)]
        if len(whole) > _LONGEST and _is_named(whole):
            return number
        commands = [whole[start:end] for start, end in find_commands(whole)]
        names.update(name for one in (whole, *commands) for name in _find_names(one))
        goes_on = re.search(_GOES_ON, whole) and _is_about(whole, names)
        if (
            goes_on
            or _says_more(whole, text, names)
            or any(_changes(one, names) for one in commands)
        ):
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
    return "sysctl" in text and re.search(_NAMES, text) is not None


def _find_names(command: str) -> list[str]:
    """Return the variables to which a command gives the name of such a file."""
    if command.lstrip().startswith("Environment="):
        command = command.partition("=")[2].strip("\"' ")
    pairs = re.findall(_STATED, command) if re.match(_STATES, command) else []
    loop = re.match(_LOOPS, command)
    pairs += [*re.findall(_DEFAULT, command), *([(loop[1], loop[2])] if loop else [])]
    return [name for name, value in pairs if _is_named(value)]


def _is_about(text: str, names: set[str]) -> bool:
    return _is_named(text) or not names.isdisjoint(re.findall(_USED, text))


def _says_more(line: str, text: str, names: set[str]) -> bool:
    """Tell whether a text over lines goes into such a file that its script does not say plainly."""
    found = re.search(_HEREDOC, line)
    if not found or found[1] or not any(_is_about(one, names) for one in find_targets(line)):
        return False
    body = text.partition(line)[2].partition(f"\n{found[2]}")[0]
    return "$" in body or "`" in body or "=" not in body


def _changes(command: str, names: set[str]) -> bool:
    """Tell whether a command changes such a file, or may: what only reads them is known."""
    if re.match(_IN_UNIT, command):
        return _is_about(command, names)
    if command.lstrip().startswith("Environment="):
        return False
    if not _is_about(command, names) or re.match(_STATES, command) or re.match(_LOOPS, command):
        return False
    stem = re.sub(_BEFORE, "", command).strip()
    if any(_is_about(one, names) for one in find_targets(stem)):
        return not re.match(_SAYS, stem)
    words = re.sub(_REDIRECTED, "", stem).split()
    if re.match(r"(?:\S*/)?cp$", words[0] if words else ""):
        aims = any(one.startswith(("-t", "--target")) for one in words)
        return aims or words[-1].startswith("-") or _is_about(words[-1], names)
    is_read = re.match(_READS, stem) is not None
    return not (is_read or (is_talk(stem) and not re.match(_MAY_CHANGE, stem)))
