# SPDX-License-Identifier: GPL-3.0-or-later
"""A policy's file is bounded before it is read, and every refusal names the line."""

from __future__ import annotations

import pytest
from mlhost_limits.core.policy_shape import DEEPEST, LONGEST_NUMBER, MOST_VALUES
from mlhost_limits.core.policy_tree import (
    Located,
    Tree,
    decode_policy,
    locate,
    parse_json,
    read_number,
)
from mlhost_limits.core.reader import PolicyError

PATH = "/p.json"


def refusal(text: str) -> list[str]:
    try:
        parse_json(text, PATH)
    except PolicyError as exc:
        return list(exc.problems)
    return []


@pytest.mark.parametrize(("begin", "end"), [("[", "]"), ('{"a":', "}")])
def test_values_may_lie_so_deep_in_each_other(begin: str, end: str) -> None:
    assert refusal(f"{begin * DEEPEST}1{end * DEEPEST}") == []
    assert refusal(f"\n{begin * (DEEPEST + 1)}1{end * (DEEPEST + 1)}") == [
        f"{PATH}:2: is nested deeper than {DEEPEST} levels"
    ]
    half = DEEPEST // 2
    assert (
        refusal(f'{"[" * half}{chr(123)}"a":{"[" * (half - 1)}{"]" * (half - 1)}}}{"]" * half}')
        == []
    )


@pytest.mark.parametrize("sign", ["", "-"])
def test_a_number_has_so_many_digits(sign: str) -> None:
    longest = LONGEST_NUMBER - len(sign)
    assert parse_json(f'{{"a": {sign}{"9" * longest}}}', PATH).root == {
        "a": int(sign + "9" * longest)
    }
    assert refusal(f'\n{{"a":\n {sign}{"9" * (longest + 1)}}}') == [
        f"{PATH}:3: a number has {LONGEST_NUMBER + 1} digits; at most {LONGEST_NUMBER} are accepted"
    ]
    assert read_number("1.5", PATH, 1) == 1.5
    assert read_number("-7", PATH, 1) == -7


def test_a_key_that_is_stated_again_is_told_with_both_lines() -> None:
    found = parse_json('\n{"a": 1,\n"b": {"a": 2,\n"a": 3},\n"a": 4}', PATH)
    assert found == Tree(
        {"a": 4, "b": {"a": 3}},
        (
            f"{PATH}:4: b.a is stated a second time; the first is in line 3",
            f"{PATH}:5: a is stated a second time; the first is in line 2",
        ),
    )


def test_scalars_may_keep_their_lines() -> None:
    found = parse_json('\n{"a": [true,\n"x"]}', PATH, locate).root
    assert found == {"a": [Located(True, 2), Located("x", 3)]}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", f"{PATH}: is empty, so nothing would be required"),
        (b" \n", f"{PATH}: is empty, so nothing would be required"),
        (b"\xff", f"{PATH}:1: 0xff is not UTF-8 there"),
        (b"\na\n\xff", f"{PATH}:3: 0xff is not UTF-8 there"),
        (b"\xef\xbb\xbfa: 1", f"{PATH}:1: begins with a byte order mark; save it without"),
        (b"\na\x1b", f"{PATH}:2: holds the character U+001B"),
    ],
)
def test_what_is_not_the_text_of_a_policy_is_refused(content: bytes, problem: str) -> None:
    with pytest.raises(PolicyError) as caught:
        decode_policy(content, PATH)
    assert caught.value.problems == [problem]


def test_a_file_holds_so_many_values() -> None:
    """The list counts, and its end."""
    assert refusal(f"[{'1,' * (MOST_VALUES - 3)}1]") == []
    assert refusal(f"[{'1,' * (MOST_VALUES - 1)}\n1]") == [
        f"{PATH}:2: holds more than {MOST_VALUES} values"
    ]
