# SPDX-License-Identifier: GPL-3.0-or-later
"""What another process tells comes back as it was, or is refused."""

from __future__ import annotations

from typing import Any

import pytest
from mlhost_limits.core.finding import Observation, Requirement, judge
from mlhost_limits.core.packed import pack, unpack

KINDS = {"Requirement": Requirement, "Observation": Observation}


@pytest.mark.parametrize(
    "value",
    [
        Requirement("kernel", "x", "value", 1, None, None, ""),
        Observation("text", "how", ""),
        (1, "a", None, True, ()),
        {"a": Observation(1, ""), "b": (1, 2)},
    ],
)
def test_a_value_comes_back(value: object) -> None:
    assert unpack(pack(value), KINDS) == value
    assert type(unpack(pack(value), KINDS)) is type(value)


def deep(levels: int) -> Any:
    found: Any = []
    for _level in range(levels):
        found = [found]
    return found


def deep_mapping(levels: int) -> Any:
    found: Any = {"items": []}
    for _level in range(levels):
        found = {"items": [["a", found]]}
    return found


def deep_kinds(levels: int) -> Any:
    found: Any = 1
    for _level in range(levels):
        found = {"kind": "Observation", "fields": [found, "", ""]}
    return found


def test_what_is_nested_as_deep_as_may_be_comes_back() -> None:
    """A mapping takes three levels, with its list and each pair; a named tuple two."""
    assert unpack(deep_mapping(6), KINDS)
    assert unpack(deep_kinds(10), KINDS)
    assert unpack("x" * 2**18, KINDS) == "x" * 2**18


def test_what_is_nested_a_little_comes_back() -> None:
    assert unpack([[[5]]], KINDS) == (((5,),),)
    assert unpack(deep(20), KINDS)
    assert unpack(deep_mapping(2), KINDS) == {"a": {"a": {}}}


@pytest.mark.parametrize(
    "told",
    [
        pack(judge(Requirement("x", "y", "z"), Observation(1, ""))),
        {"kind": "Observation", "fields": [1]},
        {"kind": "Observation", "fields": [1, "", "", ""]},
        {"kind": ["Observation"], "fields": [1, "", ""]},
        {"kind": "Observation", "fields": 5},
        {"fields": [1]},
        {"items": [1]},
        {"items": [[[], 1, 2]]},
        {"items": [[{"items": []}, 1]]},
        {"items": None},
        1.5,
        "x" * (2**18 + 1),
        deep(21),
        [deep(20)],
        deep_mapping(7),
        deep_kinds(11),
    ],
)
def test_what_has_another_form_is_refused(told: Any) -> None:
    with pytest.raises(ValueError, match=r"^it (has|holds|is) "):
        unpack(told, KINDS)
