# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a program can be broken by one small change, and how: no test may pass after it."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
}


class Point(NamedTuple):
    """One change of a source: the text from ``start`` to ``end`` gives way to ``after``.

    :param start: An offset in the bytes of the source, as ``end`` is.
    """

    line: int
    start: int
    end: int
    before: str
    after: str


def find_points(source: str) -> list[Point]:
    """Return every change that can be made, in the order of the source."""
    lines = [len(line.encode()) for line in source.splitlines(keepends=True)]
    starts = [sum(lines[:number]) for number in range(len(lines))]
    return sorted(
        point for part in ast.parse(source).body for point in _find_in(part, source, starts)
    )


def _find_in(part: ast.stmt, source: str, starts: list[int]) -> Iterator[Point]:
    """Yield the changes in one statement of the file; it alone is read again after each."""
    raw = source.encode()

    def find_span(node: ast.expr | ast.stmt) -> tuple[int, int]:
        end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        return starts[node.lineno - 1] + node.col_offset, end

    first, last = find_span(part)
    old = ast.dump(ast.parse(raw[first:last]))
    found = set()
    for node in _nodes([part]):
        begin, end = find_span(node)
        for after in _changes(node):
            new = raw[first:begin] + after.encode() + raw[end:last]
            if _is_other(new, old):
                found.add(Point(node.lineno, begin, end, raw[begin:end].decode(), after))
    yield from found


def change(source: str, point: Point) -> str:
    """Return the source with one change made."""
    raw = source.encode()
    return (raw[: point.start] + point.after.encode() + raw[point.end :]).decode()


def _is_other(source: bytes, old: str) -> bool:
    """Tell whether a source is a program, and another than the one that was there."""
    try:
        return ast.dump(ast.parse(source)) != old
    except SyntaxError:
        return False


def _nodes(roots: Iterable[ast.AST]) -> Iterator[ast.expr | ast.stmt]:
    """Yield what runs: no annotation, no text with fields, nothing that types alone read."""
    for node in roots:
        if isinstance(node, ast.JoinedStr) or _is_for_types(node):
            continue
        if isinstance(node, (ast.expr, ast.stmt)):
            yield node
        if isinstance(node, ast.AnnAssign):
            yield from _nodes([node.value] if node.value else [])
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield from _nodes(node.body)
        else:
            yield from _nodes(ast.iter_child_nodes(node))


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _changes(node: ast.expr | ast.stmt) -> Iterator[str]:
    """Yield what this node may give way to, as source."""
    if isinstance(node, ast.stmt):
        yield from _changes_of_statement(node)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _SWAPS:
        yield _with(node, ops=[_SWAPS[type(node.ops[0])]()])
    elif isinstance(node, (ast.BoolOp, ast.BinOp)) and type(node.op) in _SWAPS:
        yield f"({_with(node, op=_SWAPS[type(node.op)]())})"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield f"({ast.unparse(node.operand)})"
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        # bool is an int too.
        yield str(not node.value if isinstance(node.value, bool) else node.value + 1)
    elif isinstance(node, ast.IfExp):
        yield f"({_with(node, body=node.orelse, orelse=node.body)})"


def _changes_of_statement(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.Return) and node.value and ast.unparse(node.value) != "None":
        yield "return None"
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield "pass"
    elif isinstance(node, ast.Continue):
        yield "break"


def _with(node: ast.AST, **fields: object) -> str:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return ast.unparse(changed)
