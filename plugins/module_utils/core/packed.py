# SPDX-License-Identifier: BSD-2-Clause
"""Turn results into what JSON carries and back, in a strict form: another process tells them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_DEEPEST = 20
_LONGEST = 2**18
_KIND, _FIELDS, _ITEMS = "kind", "fields", "items"


def pack(value: object) -> Any:
    """Return named tuples, tuples and mappings as what JSON can carry."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {_KIND: type(value).__name__, _FIELDS: [pack(one) for one in value]}
    if isinstance(value, (tuple, list)):
        return [pack(one) for one in value]
    if isinstance(value, dict):
        return {_ITEMS: [[pack(key), pack(one)] for key, one in value.items()]}
    return value


def unpack(value: Any, kinds: Mapping[str, type], deepest: int = _DEEPEST) -> Any:
    """Return what :func:`pack` was given, with tuples for lists.

    :param kinds: The named tuples that may occur, by name.
    :raises ValueError: If it has another form, is deeper, or holds a text that is too long.
    """
    if deepest < 0:
        raise ValueError("it is nested too deeply")
    if isinstance(value, list):
        return tuple(unpack(one, kinds, deepest - 1) for one in value)
    if isinstance(value, dict):
        return _unpack_mapping(value, kinds, deepest)
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str) and len(value) <= _LONGEST:
        return value
    raise ValueError("it holds a value of no known form")


def _unpack_mapping(value: Any, kinds: Mapping[str, type], deepest: int) -> Any:
    try:
        if _ITEMS in value:
            return dict(unpack(value[_ITEMS], kinds, deepest - 1))
        return kinds[value[_KIND]](*unpack(value[_FIELDS], kinds, deepest - 1))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"it has another form: {error}") from None
