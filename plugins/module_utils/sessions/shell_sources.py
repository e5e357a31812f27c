# SPDX-License-Identifier: BSD-2-Clause
"""Find what a shell's startup file has the shell read or become: it may set limits there.

Source: ``source``, ``exec`` and BASH_ENV in bash(1), zsh(1) and tcsh(1).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from ..core.values import Declaration, NamedTuple
from .shell_commands import Command, list_commands
from .shell_evals import find_evals

_WORD = r"((?:\$\{[^{}\s]*\}|[^\s;&|\"')}])+)"
_SOURCE = re.compile(rf"(?:^|[\s;&|({{])\\?(?:\.|source)\s+[\"']?{_WORD}")
_OF_SCRIPTS = rf"(?:^|[\s;&|({{])BASH_ENV=[\"']?{_WORD}"
"""What each script reads first that is started from here on."""
_EXEC = r"(?:^|[\s;&|({])exec\s+(?![-\d]*[<>&]|\{)"
_ASSIGNED = re.compile(rf"(?:^|[\s;&|({{])(\w+)=[\"']?(?=[/~$]){_WORD}")
_LOOP = r"\bfor\s+(\w+)\s+in\s+([^;\n]*)"
_NAMED = re.compile(r"(?:~|\$\w+|\$\{\w+\})?/[\w.*?/\[\]-]+")
_LISTS = re.compile(r"\b(?:run-parts|ls|find)\b")
_VARIABLE = re.compile(r"\$\{(?P<braced>\w+)(?::?[-=](?P<default>[^{}]*))?\}|\$(?P<bare>\w+)")
_DEEPEST = 4  # Variables that hold variables.
_LONGEST = 4096  # PATH_MAX of the kernel.
_MOST = 200  # Names of files of one line.
_MOST_OF_ALL = 20_000  # Of all lines of a file; the rest is not followed.


class Sources(NamedTuple):
    """What one file names: files and patterns, each with its line; and lines that no look follows.

    ``unclear`` have a shell read what their names do not tell, ``becomes`` become a program.
    """

    named: tuple[tuple[str, Declaration], ...]
    unclear: tuple[Declaration, ...]
    becomes: tuple[Declaration, ...]


def find_sources(text: str, path: str, home: str) -> Sources:
    """Return what a startup file has the shell read, variables of its own put in."""
    commands = list(list_commands(text))
    known = _find_variables(commands, home)
    named: list[tuple[str, Declaration]] = []
    unclear = [_declare(command, found, path) for command, found in find_evals(commands)]
    becomes: list[Declaration] = []
    left = _MOST_OF_ALL
    for command in commands:
        for found in (*_SOURCE.finditer(command.text), *_find_first(command.text)):
            at = _declare(command, found, path)
            names = list(islice(_expand(found[1], known, home), min(_MOST, left)))
            left -= len(names)
            plain = [
                name for name in names if name.startswith("/") and not re.search("[$`<]", name)
            ]
            named += [(name, at) for name in plain]
            unclear += [at] if len(plain) < len(names) or not names else []
        program = re.search(_EXEC, command.text) if "exec" in command.text else None
        becomes += [_declare(command, program, path)] if program else []
    return Sources(tuple(named), tuple(dict.fromkeys(unclear)), tuple(becomes))


def _declare(command: Command, found: re.Match[str], path: str) -> Declaration:
    row = command.find_row(found.end() - 1)
    return Declaration(path, row.number, row.text, "")


def _find_first(content: str) -> Iterator[re.Match[str]]:
    """Yield what a line has each script read first."""
    return re.finditer(_OF_SCRIPTS, content) if "BASH_ENV" in content else iter(())


def _find_variables(commands: Iterable[Command], home: str) -> dict[str, list[str]]:
    """Return what variables may hold, as far as a file assigns them plain names of files."""
    known: dict[str, list[str]] = {"HOME": [home]}
    for command in commands:
        for name, word in _ASSIGNED.findall(command.text):
            known.setdefault(name, []).append(word)
        for name, words in re.findall(_LOOP, command.text) if "for" in command.text else ():
            end = "/*" if _LISTS.search(words) else ""
            found = [word + end for word in _NAMED.findall(words)]
            known.setdefault(name, []).extend(found or [words])
    return known


def _expand(word: str, known: Mapping[str, list[str]], home: str, deep: int = 0) -> Iterator[str]:
    """Yield a word with each value that its variables may have; as it is where one is unknown."""
    if len(word) > _LONGEST:
        yield "$"  # It is not a path: nobody knows what is read.
        return
    word = re.sub(r"^~(?=/)", lambda _match: home, word)
    found = _VARIABLE.search(word)
    values = _find_values(found, known) if found and deep < _DEEPEST else []
    if not found or not values:
        yield word
        return
    for value in values:
        yield from _expand(
            word[: found.start()] + value + word[found.end() :], known, home, deep + 1
        )


def _find_values(found: re.Match[str], known: Mapping[str, list[str]]) -> list[str]:
    default = found["default"]
    values = known.get(found["braced"] or found["bare"], [])
    return [*values, default] if default is not None else values
