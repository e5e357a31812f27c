# SPDX-License-Identifier: GPL-3.0-or-later
"""The ways to break a program by one small change are found, and each changes that alone."""

from __future__ import annotations

import pytest

from tests.mutants.points import change, find_points


@pytest.mark.parametrize(
    ("source", "changed"),
    [
        ("a < b", ["a <= b"]),
        ("a in b and c", ["(a in b or c)", "a not in b and c"]),
        ("x = 4", ["x = 5"]),
        ("x = True", ["x = False"]),
        ("x = 1 if y else z", ["x = (z if y else 1)", "x = 2 if y else z"]),
        ("while not a:\n    tell(b)", ["while (a):\n    tell(b)", "while not a:\n    pass"]),
        ("for a in b:\n    continue", ["for a in b:\n    break"]),
        ("def f():\n    return g()", ["def f():\n    return None"]),
        ("def f():\n    return None", []),
        ("é = '…' + a", ["é = ('…' - a)"]),
        ("a: Tuple[1] = 2", ["a: Tuple[1] = 3"]),
        ("if TYPE_CHECKING:\n    a = 1", []),
        ("f'{a + 1}'", []),
    ],
)
def test_each_change_is_one_of_the_source(source: str, changed: list[str]) -> None:
    assert sorted(change(source, point) for point in find_points(source)) == sorted(changed)
