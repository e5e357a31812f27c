# SPDX-License-Identifier: BSD-2-Clause
"""Read the file of a policy, JSON or, where PyYAML is installed, YAML.

Of YAML only the parser is used. What a scalar means is said here: ``true``, ``false``, ``null``
and whole decimal numbers are themselves, and everything else is the text that stands there. So
YAML 1.1 does not turn ``1:30:00`` into 5400, ``010`` into 8 or ``no`` into false.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import partial
from json import JSONDecodeError
from typing import Any

from .core.policy_shape import find_misshapes
from .core.policy_tree import (
    CLOSE,
    LIST,
    MAPPING,
    MERGE,
    SCALAR,
    Event,
    Tree,
    build_tree,
    decode_policy,
    locate,
    parse_json,
    read_number,
    refuse,
)
from .core.profiles import PROFILE
from .core.quote import quote
from .core.reader import PolicyError, name_kind
from .host.children import run_in_children
from .host.policy_file import LARGEST, STDIN, read_policy_file

_NUMBER = r"[+-]?(0|[1-9][0-9]*)"
_WORDS = {"null": None, "~": None, "": None, "true": True, "false": False}
_KINDS = {"MappingStartEvent": MAPPING, "SequenceStartEvent": LIST}
_ENDS = ("MappingEndEvent", "SequenceEndEvent")
_DIRECTIVE = "(?m)^%"
_LONGEST = 30.0
_DOCUMENT = r"(?m)^---(?=\s|$)"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Keep = Callable[[Event], Event]


def read_policy(path: str, accepts_yaml: bool = True) -> Tree:
    """Return the policy in a file, and the problems that its values no longer show.

    :raises ValueError: If it is not a policy at all: no regular file, neither JSON nor YAML, empty,
        too deep or too long. Each in one sentence, with the line where there is one.
    """
    return parse_policy(decode_policy(read_policy_file(path), path), path, accepts_yaml)


def read_policy_within(path: str, seconds: float) -> Tree:
    """Return what :func:`read_policy` does; a child reads the file, for what it is on can hang.

    A child has no standard input, which has a time of its own.

    A policy whose profile is the name of a file, from its own folder, is merged over that policy.

    :raises OSError: If the file cannot be read.
    :raises ValueError: If it is not a policy, or reading it takes longer.
    """
    if not path:
        raise ValueError("--policy: the name of a file is empty")
    trees, names = [_read_one(path, seconds)], [os.path.realpath(path)]
    while isinstance(trees[-1].root, dict) and "/" in str(trees[-1].root.get(PROFILE)):
        stated = str(trees[-1].root[PROFILE])
        if "\0" in stated:
            raise ValueError(f"{names[-1]}: profile: {stated!r} is not the name of a file")
        base = os.path.join(os.path.dirname(names[-1]), stated)
        if os.path.realpath(base) in names:
            raise ValueError(f"{names[-1]}: profile: {base} stands on this file itself")
        trees.append(_read_one(base, seconds))
        names.append(os.path.realpath(base))
    return _merge_trees(trees, names) if len(trees) > 1 else trees[0]


def _merge_trees(trees: Sequence[Tree], names: Sequence[str]) -> Tree:
    """Return policies as one, each merged over the one behind it."""
    from .schema import merge_policies  # Few have a profile of their own.

    roots = []
    for tree, name in zip(trees, names):
        if not isinstance(tree.root, dict):
            raise ValueError(f"{name}: {name_kind(tree.root)} was given; a mapping is accepted")
        misshapes = find_misshapes(tree.root)
        if misshapes:
            raise PolicyError([f"{name}: {one}" for one in misshapes])
        roots.append(tree.root)
    try:
        merged = merge_policies(roots)
    except PolicyError as error:
        raise PolicyError([f"{names[-1]}: {one}" for one in error.problems]) from None
    problems = [f"{name}: {one}" for tree, name in zip(trees, names) for one in tree.problems]
    return Tree(merged, tuple(problems))


def _read_one(path: str, seconds: float) -> Tree:
    if path == STDIN:
        return parse_policy(decode_policy(read_policy_file(path, seconds), path), path)
    [report] = run_in_children([partial(_read, path)], min(seconds, _LONGEST), 8 * LARGEST)
    if report.problem:
        raise ValueError(f"{path}: could not be read: {report.problem}")
    if "refused" in report.value:
        raise OSError(*report.value["refused"])
    return parse_policy(decode_policy(report.value["content"].encode("latin-1"), path), path)


def _read(path: str) -> dict[str, Any]:
    try:
        return {"content": read_policy_file(path).decode("latin-1")}
    except OSError as error:
        return {"refused": [*error.args[:2], *filter(None, [error.filename])]}


def parse_policy(text: str, path: str, accepts_yaml: bool = True) -> Tree:
    """Return the policy in a text; see :func:`read_policy`."""
    tree = _parse(text, path, accepts_yaml)
    if tree.root is None:
        raise ValueError(f"{path}: is empty, so nothing would be required")
    return tree


def parse_documents(text: str, path: str) -> list[Tree]:
    """Return what each document of a text holds, every scalar as a :class:`Located`.

    A file whose name ends with ``.json`` is JSON and one document.

    :raises ValueError: If it is neither JSON nor YAML, too deep or too long.
    """
    if path.endswith(".json"):
        return [_parse_json(text, path)]
    if not re.search(_DOCUMENT, text):
        return [_parse(text, path, True, locate)]
    starts = [0, *(one.start() for one in re.finditer(_DOCUMENT, text)), len(text)]
    parts = [
        (text.count("\n", 0, start), text[start:end]) for start, end in zip(starts, starts[1:])
    ]
    return [
        _parse("\n" * line + part, path, True, locate) for line, part in parts if part.strip("- \n")
    ]


def _parse_json(text: str, path: str) -> Tree:
    try:
        return parse_json(text, path, locate)
    except PolicyError:
        raise
    except ValueError as exc:
        line = exc.lineno if isinstance(exc, JSONDecodeError) else 1
        told = exc.msg if isinstance(exc, JSONDecodeError) else exc
        raise ValueError(f"{path}:{line}: is not JSON: {told}") from None


def _parse(text: str, path: str, accepts_yaml: bool, keep: Keep | None = None) -> Tree:
    try:
        return parse_json(text, path, keep)
    except PolicyError:
        raise
    except ValueError as exc:
        if not accepts_yaml:
            raise ValueError(f"{path}: is not JSON ({exc})") from None
        return _parse_yaml(text, path, exc, keep)


def _parse_yaml(text: str, path: str, not_json: ValueError, keep: Keep | None) -> Tree:
    try:
        import yaml
    except ImportError:
        raise ValueError(
            f"{path}: is not JSON ({not_json}), and PyYAML is not installed to read YAML"
        ) from None
    directive = re.search(_DIRECTIVE, text)
    if directive:
        refuse(path, text.count("\n", 0, directive.start()) + 1, "a directive is not accepted")
    try:
        steps = _Steps(path).read(yaml.parse(text, yaml.SafeLoader))
        return build_tree(map(keep, steps) if keep else steps, path)
    except yaml.MarkedYAMLError as exc:
        if path.endswith(".json") and isinstance(not_json, JSONDecodeError):
            line = min(not_json.lineno, _count_lines(text))
            raise ValueError(f"{path}:{line}: is not JSON: {not_json.msg}") from None
        mark = exc.problem_mark or exc.context_mark
        told = " ".join(filter(None, (exc.context, exc.problem)))
        told = told.replace("'<stream end>'", "the end of the file")
        line = min(mark.line + 1, _count_lines(text)) if mark else 1
        raise ValueError(f"{path}:{line}: is neither JSON nor YAML: {told}") from None
    except (yaml.YAMLError, OverflowError) as exc:  # An escape as "\UFFFFFFFF" overflows.
        raise ValueError(f"{path}: is neither JSON nor YAML: {exc}") from None


def _count_lines(text: str) -> int:
    return max(1, len(text.splitlines()))


class _Steps:
    """Turns what PyYAML's parser yields into steps; what an alias names is stepped again."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.done: list[Event] = []
        self.open: list[tuple[str, int]] = []
        self.anchors: dict[str, tuple[int, int]] = {}
        self.documents = 0

    def read(self, found: Iterator[Any]) -> Iterator[Event]:
        """Yield one step after the other, each kept for an alias that may name it."""
        for event in found:
            for step in self._take(event, type(event).__name__, event.start_mark.line + 1):
                self.done.append(step)
                yield step
            self._close(type(event).__name__)

    def _take(self, event: Any, kind: str, line: int) -> Iterator[Event]:
        if getattr(event, "tag", None) is not None:
            refuse(self.path, line, f"the tag {quote(event.tag)} is not accepted")
        if kind == "DocumentStartEvent":
            self.documents += 1
            if self.documents > 1:
                refuse(self.path, line, "begins a second document; one is accepted")
        elif kind == "AliasEvent":
            yield from self._repeat(event.anchor, line)
        elif kind == "ScalarEvent":
            self.open.append((event.anchor or "", len(self.done)))
            yield self._read_scalar(event, line)
        elif kind in _KINDS:
            self.open.append((event.anchor or "", len(self.done)))
            yield Event(_KINDS[kind], line)
        elif kind in _ENDS:
            yield Event(CLOSE, line)

    def _close(self, kind: str) -> None:
        """Remember where the steps of what has an anchor stand, once it is whole."""
        if kind in _ENDS or kind == "ScalarEvent":
            anchor, start = self.open.pop()
            self.anchors[anchor] = start, len(self.done)

    def _repeat(self, anchor: str, line: int) -> Iterator[Event]:
        if anchor not in self.anchors:
            refuse(self.path, line, f"*{anchor} names nothing that is whole before it")
        for index in range(*self.anchors[anchor]):
            yield self.done[index]

    def _read_scalar(self, event: Any, line: int) -> Event:
        """Return a scalar; only what is not quoted can be something else than a text."""
        text = event.value
        if event.style is not None:
            return Event(SCALAR, line, text, text)
        if text == MERGE:
            return Event(MERGE, line, text, text)
        if re.fullmatch(_NUMBER, text):
            return Event(SCALAR, line, read_number(text, self.path, line), text)
        value = _WORDS.get(text.lower() if text.istitle() or text.isupper() else text, text)
        return Event(SCALAR, line, value, text)
