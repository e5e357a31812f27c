# SPDX-License-Identifier: BSD-2-Clause
"""Walk what a file of JSON or YAML holds, each value with its line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..core.policy_tree import Located
from ..core.values import NamedTuple


class Leaf(NamedTuple):
    """One value: the keys that lead to it, its line, and itself. An index counts as a key."""

    path: tuple[str, ...]
    value: object
    line: int

    @property
    def name(self) -> str:
        """Return the keys with dots, as a command line would spell them, without indices."""
        return ".".join(part for part in self.path if not part.isdigit())


def list_leaves(root: object) -> Iterator[Leaf]:
    """Yield every value, in the order of the file."""
    waiting: list[tuple[tuple[str, ...], object]] = [((), root)]
    while waiting:
        path, node = waiting.pop()
        if isinstance(node, Located):
            yield Leaf(path, node.value, node.line)
        elif isinstance(node, dict):
            waiting += [((*path, str(key)), one) for key, one in reversed(list(node.items()))]
        elif isinstance(node, list):
            below = [((*path, str(index)), one) for index, one in enumerate(node)]
            waiting += reversed(below)


def find(root: object, *path: str) -> Any:
    """Return what stands below these keys; ``None`` where nothing does."""
    for part in path:
        root = root.get(part) if isinstance(root, dict) else None
    return root


def read_scalar(node: object) -> tuple[object, int]:
    """Return a value and its line; ``None`` and 0 of what is not a single value."""
    return (node.value, node.line) if isinstance(node, Located) else (None, 0)


def read_line(node: object) -> int:
    """Return the first line of what stands there."""
    return next((leaf.line for leaf in list_leaves(node)), 0)
