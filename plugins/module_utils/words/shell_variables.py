# SPDX-License-Identifier: BSD-2-Clause
"""Put the values of variables into a text of a shell, as far as they are known."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping

_COUNT = re.compile(r"\$\{#([A-Za-z_]\w*)\[[@*]\]\}")
_VARIABLE = re.compile(
    r"\$(?:\{([A-Za-z_]\w*|[\d@*#])(?:\[[@*]\])?(?:(:?[-=+])([^{}]*))?\}|([A-Za-z_]\w*|[\d@*#]))",
    re.ASCII,
)
_ALL = re.compile(r"\"(\$(?:\{[A-Za-z_]\w*\[@\]\}|@|\{@\}))\"")
_ALL_IF_SET = re.compile(r"\$\{([A-Za-z_]\w*)\[@\]\+\"?\$\{\1\[@\]\}\"?\}")
"""As scripts write an array that may be empty, with ``set -u``."""
_ARITHMETIC = re.compile(r"\$\(\(((?:[^()]|\([^()]*\)){1,200})\)\)")
_NAME = re.compile(r"\$?\{?([A-Za-z_]\w*)\}?", re.ASCII)
_NUMBERS: Mapping[type, Callable[[int, int], int]] = {
    ast.Add: lambda one, two: one + two,
    ast.Sub: lambda one, two: one - two,
    ast.Mult: lambda one, two: one * two,
    ast.Div: lambda one, two: one // two,
    ast.Mod: lambda one, two: one % two,
}
_LARGEST, _LONGEST_SUM = 2**63, 500
LONGEST = 2**16


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Return a text with the variables that are known; what is not known stays as it stands."""

    def replace(match: re.Match[str]) -> str:
        value, sign, other = variables.get(match[1] or match[4]), match[2] or "", match[3]
        if value is None or len(value) > LONGEST or (sign.startswith(":") and not value):
            return match[0] if not sign else "" if sign.endswith("+") else other
        return other if sign.endswith("+") else value

    if len(text) > LONGEST:
        raise ValueError(f"it has {len(text)} characters; at most {LONGEST} are read")
    counted = _COUNT.sub(
        lambda one: str(len(variables[one[1]].split())) if one[1] in variables else one[0], text
    )
    counted = _ARITHMETIC.sub(lambda one: _count(one[1], variables), counted)
    counted = _ALL_IF_SET.sub(lambda one: variables.get(one[1], ""), counted)
    done = _VARIABLE.sub(replace, _ALL.sub(r"\1", counted))
    if len(done) > LONGEST:
        raise ValueError(f"it has more than {LONGEST} characters with its variables")
    return done


def _count(text: str, variables: Mapping[str, str]) -> str:
    """Return what ``$((text))`` comes to; where that is not known, the same as one word.

    >>> _count("N * 2", {"N": "4"})
    '8'
    >>> _count("N * 2", {})
    '$((N*2))'
    """
    known = _NAME.sub(lambda one: variables.get(one[1], one[0]), text).strip()
    try:
        return str(_evaluate(ast.parse(known[:_LONGEST_SUM], mode="eval").body))
    except (ValueError, SyntaxError, ArithmeticError, RecursionError, MemoryError):
        return "$((" + "".join(text.split()) + "))"


def _evaluate(node: ast.AST) -> int:
    """Return the value of a sum of whole numbers from 0 on.

    :raises ValueError: If it is something else.
    """
    value = node.value if isinstance(node, ast.Constant) else None
    if isinstance(value, int) and not isinstance(value, bool) and value < _LARGEST:
        return value
    if isinstance(node, ast.BinOp) and type(node.op) in _NUMBERS:
        number = _NUMBERS[type(node.op)](_evaluate(node.left), _evaluate(node.right))
        if 0 <= number < _LARGEST:
            return number
    raise ValueError("no whole number")
