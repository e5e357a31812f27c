# SPDX-License-Identifier: BSD-2-Clause
"""Read a mapping of a file that starts a container: its values one by one, and its command."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from .facts import ARGUMENT, Words, join_words
from .launchers import read_command
from .options import read_arguments
from .tree import find, read_line, read_scalar

_VARIABLE = re.compile(
    r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?:(:?[-+?])([^}]*))?\}|\$([A-Za-z_][A-Za-z0-9_]*)"
)


class Node:
    """A mapping of a file whose values are read one by one; problems are gathered.

    ``environment`` is ``None`` where no variable is put in.
    """

    def __init__(self, node: object, path: str, environment: Mapping[str, str] | None) -> None:
        self.node, self.path, self.environment = node, path, environment
        self.problems: list[str] = []
        self.at: dict[str, str] = {}

    def text(self, *keys: str) -> tuple[str, str]:
        """Return a scalar as text, its variables filled in, and where it stands."""
        value, line = read_scalar(find(self.node, *keys))
        return ("" if value is None else self.fill(str(value))), f"{self.path}:{line}"

    def fill(self, text: str) -> str:
        known = self.environment
        if known is None:
            return text

        def replace(match: re.Match[str]) -> str:
            value = known.get(match[1] or match[4])
            sign, other = match[2] or "", match[3] or ""
            value = None if sign.startswith(":") and not value else value
            if sign.endswith("+"):
                return other if value is not None else ""
            return value if value is not None else other if sign.endswith("-") else match[0]

        return _VARIABLE.sub(replace, text.replace("$$", "\0")).replace("\0", "$")

    def number(self, name: str, parse: object, *keys: str) -> float | None:
        """Return a number under the name of a limit; anything else is a problem."""
        text, where = self.text(*keys)
        if not text:
            return None
        try:
            value: float | None = parse(text)  # type: ignore[operator]
        except ValueError as exc:
            self.problems.append(f"{where}: {'.'.join(keys)}: {exc}")
            return None
        if value:
            self.at[name] = where
        return value or None

    def first(self, name: str, parse: object, *paths: tuple[str, ...]) -> float | None:
        found = (self.number(name, parse, *keys) for keys in paths)
        return next((one for one in found if one is not None), None)


def whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def read_words(node: Node, key: str) -> list[tuple[list[str], str]]:
    """Return a command, a text or a list of words, with where it stands."""
    found = find(node.node, key)
    where = f"{node.path}:{read_line(found)}"
    if isinstance(found, list):
        words = [node.fill(str(read_scalar(one)[0])) for one in found]
        return [(words, where)] if words else []
    text, where = node.text(key)
    try:
        words = shlex.split(text)
    except ValueError as exc:
        node.problems.append(f"{where}: {key}: is not a command: {exc}")
        return []
    return [(words, where)] if words else []


def read_started(words: list[str], where: str) -> Words:
    """Return what a container starts; of options alone those of a script, which its image names."""
    if not words[0].startswith("-"):
        return read_command(words, where)
    told = f"{where}: only options: what the image starts of its own is not known"
    return join_words([read_arguments(words, where, ARGUMENT), Words(notes=(told,))])
