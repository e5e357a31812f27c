# SPDX-License-Identifier: GPL-3.0-or-later
"""Print every text of the collection that a person may read: ``python -m tests.project.messages``.

A line for each, with file and line; what is filled in stands in braces. ``--errors`` prints those
alone that are raised.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TOP = Path(__file__).parents[2]
PLUGINS = TOP / "plugins"
_FEWEST = 3
"""Words that make a sentence; fewer are names and keys."""
_DOCUMENTS = ("DOCUMENTATION", "EXAMPLES", "RETURN")


class Text(NamedTuple):
    """A text with the place where it is written."""

    path: Path
    line: int
    text: str
    is_error: bool = False

    @property
    def place(self) -> str:
        return f"{self.path.relative_to(TOP)}:{self.line}"


def find_messages(path: Path) -> Iterator[Text]:
    """Yield the sentences in a file of Python that are neither docstrings nor documentation."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    passed = {id(one) for one in _find_docstrings(tree)} | set(_find_documents(tree))
    for node, is_error in _walk(tree, False):
        if id(node) not in passed:
            text = " ".join((_read_text(node) or "").split())
            if len(re.findall(r"[A-Za-z]{2,}", re.sub(r"\{[^}]*\}", "", text))) >= _FEWEST:
                yield Text(path, node.lineno, text, is_error)


def find_docstrings(path: Path) -> Iterator[Text]:
    """Yield what a file of Python says of itself: docstrings, and a module's documentation."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documents = set(_find_documents(tree))
    for node in ast.walk(tree):
        if id(node) in documents and isinstance(node, ast.Constant):
            yield Text(path, node.lineno, str(node.value))
    for one in _find_docstrings(tree):
        yield Text(path, one.lineno, str(one.value))


def find_documents(path: Path) -> Iterator[Text]:
    """Yield the documentation of a module, which people read."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documents = set(_find_documents(tree))
    for node in ast.walk(tree):
        if id(node) in documents and isinstance(node, ast.Constant):
            yield Text(path, node.lineno, str(node.value))


def _walk(node: ast.AST, is_error: bool) -> Iterator[tuple[ast.expr, bool]]:
    """Yield every text as a whole, and whether an exception is made of it."""
    is_error = is_error or isinstance(node, ast.Raise)
    if isinstance(node, ast.expr) and _read_text(node) is not None:
        yield node, is_error
        return
    for below in ast.iter_child_nodes(node):
        yield from _walk(below, is_error)


def _read_text(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(_read_part(part) for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        sides = [_read_text(side) for side in (node.left, node.right)]
        if sides != [None, None]:
            return "".join(side or "{...}" for side in sides)
    return None


def _read_part(part: ast.expr) -> str:
    if isinstance(part, ast.FormattedValue):
        return "{" + re.sub(r"[{}]", "", ast.unparse(part.value)) + "}"
    return str(part.value) if isinstance(part, ast.Constant) else ""


def _find_docstrings(tree: ast.AST) -> Iterator[ast.Constant]:
    """Yield the texts that stand alone as a statement, those below a name too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


def _find_documents(tree: ast.Module) -> Iterator[int]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in _DOCUMENTS:
            yield id(node.value)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.project.messages", description=__doc__)
    parser.add_argument("--errors", action="store_true", help="those that are raised")
    errors = parser.parse_args().errors
    for path in sorted(PLUGINS.rglob("*.py")):
        for one in find_messages(path):
            if one.is_error or not errors:
                print(f"{one.place}: {one.text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
