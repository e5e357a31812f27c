# SPDX-License-Identifier: BSD-2-Clause
"""The files of an image, which nobody has booted: each place reads its own of them, once."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

from .files import under

Reader = TypeVar("Reader")


class Tree:
    """One look at one tree, which hands the same readers to all who ask."""

    def __init__(self, root: str) -> None:
        """:raises NotADirectoryError: If there is no such folder."""
        if not os.path.isdir(root):
            raise NotADirectoryError(f"{root}: is no folder")
        self.root = root
        self._made: dict[Any, Any] = {}

    def at(self, reader: Callable[[str], Reader]) -> Reader:
        """Return the reader of a class, made with the root when it is first asked for, and kept."""
        if reader not in self._made:
            self._made[reader] = reader(self.root)
        made: Reader = self._made[reader]
        return made

    def has(self, *paths: str) -> bool:
        """Tell whether the tree has one of these files."""
        return any(os.path.exists(under(path, self.root)) for path in paths)
