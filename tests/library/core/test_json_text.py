# SPDX-License-Identifier: GPL-3.0-or-later
"""One member of a JSON object is edited, and every other byte stays as it was."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mlhost_limits.core.json_text import (
    Member,
    byte_order_mark,
    find_items,
    find_member,
    find_members,
    is_blank,
    line_of,
    remove_member,
    set_member,
)

QUIET = settings(deadline=None)  # A busy machine is not a failure.

NESTED = {"nofile": {"Name": "nofile", "Hard": 2, "Soft": 1}, "core": {"Name": "core", "Hard": 0}}

SET = {
    "no text": ("", '{\n  "k": "v"\n}\n'),
    "blank": (" \r\n ", '{\r\n  "k": "v"\r\n}\r\n'),
    "byte order mark alone": ("\ufeff", '\ufeff{\n  "k": "v"\n}\n'),
    "empty object": ("{}", '{\n  "k": "v"\n}'),
    "empty object, newline": ("{}\n", '{\n  "k": "v"\n}\n'),
    "empty object, CRLF": ("{}\r\n", '{\r\n  "k": "v"\r\n}\r\n'),
    "a line end at its begin and half of one at its end": ("\n{}\r", '\n{\n  "k": "v"\n}\r'),
    "space inside": ("{ }", '{ "k": "v" }'),
    "newline inside": ("{\n}\n", '{\n    "k": "v"\n}\n'),
    "one line": ('{"a": 1}\n', '{"a": 1, "k": "v"}\n'),
    "one line, tight": ('{"a":1,"b":2}', '{"a":1,"b":2,"k": "v"}'),
    "four spaces": ('{\n    "a": 1\n}\n', '{\n    "a": 1,\n    "k": "v"\n}\n'),
    "tabs, CRLF": ('{\r\n\t"a": 1\r\n}', '{\r\n\t"a": 1,\r\n\t"k": "v"\r\n}'),
    "blank line between": ('{"a": 1,\n\n "b": 2}', '{"a": 1,\n\n "b": 2,\n "k": "v"}'),
    "space before the comma": ('{"a": 1 ,\n "b": 2 }', '{"a": 1 ,\n "b": 2,\n "k": "v" }'),
    "in place": ('{\n "k" : [1,\n 2] , "a": 1}', '{\n "k" : "v" , "a": 1}'),
    "the last duplicate": ('{"k": 1, "k": 2}', '{"k": 1, "k": "v"}'),
    "byte order mark": ('\ufeff{"a": 1}', '\ufeff{"a": 1, "k": "v"}'),
    "byte order mark in latin-1": ('\xef\xbb\xbf{"a": 1}', '\xef\xbb\xbf{"a": 1, "k": "v"}'),
}


@pytest.mark.parametrize(("text", "expected"), SET.values(), ids=SET.keys())
def test_set_follows_the_layout_of_the_file(text: str, expected: str) -> None:
    """A member is replaced where it stands, or appended as its neighbors are written."""
    assert set_member(text, "k", "v") == expected


@pytest.mark.parametrize(("text", "expected"), SET.values(), ids=SET.keys())
def test_removal_undoes_an_append(text: str, expected: str) -> None:
    """Removing what was appended gives the original bytes; a blank file becomes an object."""
    if is_blank(text):
        assert find_members(remove_member(expected, "k")) == []
    elif '"k"' not in text:
        assert remove_member(expected, "k") == text


def test_a_mapping_of_mappings_is_laid_out_by_line() -> None:
    """A mapping of mappings takes a line per entry in a file of many lines, and none in another."""
    assert set_member('{\r\n\t"a": 1\r\n}', "k", NESTED) == (
        '{\r\n\t"a": 1,\r\n\t"k": {\r\n'
        '\t\t"nofile": {"Name": "nofile", "Hard": 2, "Soft": 1},\r\n'
        '\t\t"core": {"Name": "core", "Hard": 0}\r\n\t}\r\n}'
    )
    assert set_member('{"a": 1}', "k", {"x": {}}) == '{"a": 1, "k": {"x": {}}}'
    assert set_member('{\n  "k": 1\n}', "k", {"x": {}}) == '{\n  "k": {\n    "x": {}\n  }\n}'


REMOVED = {
    "first": ('{\n "k": 1,\n "a": 2\n}', '{\n "a": 2\n}'),
    "middle": ('{"a": 1, "k": {"x": 1}, "b": 2}', '{"a": 1, "b": 2}'),
    "last": ('{\n "a": 2 ,\n "k": 1\n}', '{\n "a": 2\n}'),
    "only one": ('{\n\t"k": 1\n}', "{\n}"),
    "only one, one line": ('{"k": 1}', "{}"),
    "every duplicate": ('{"k": 1, "a": 2, "k": 3}', '{"a": 2}'),
    "absent": ('{ "a": "k" }', '{ "a": "k" }'),
    "escaped": ('{"\\u006b": 1}', "{}"),
}


@pytest.mark.parametrize(("text", "expected"), REMOVED.values(), ids=REMOVED.keys())
def test_remove(text: str, expected: str) -> None:
    """A member goes with its comma, every duplicate of it too."""
    assert remove_member(text, "k") == expected


REFUSED = {
    "nothing": ("", "f:1:1: Expecting an object"),
    "list": ("[]", "f:1:1: Expecting an object"),
    "list, behind an empty line": ("\n []", "f:2:2: Expecting an object"),
    "list, byte order mark": ("\ufeff[]", "f:1:2: Expecting an object"),
    "trailing comma": ('{\n  "a": 1,\n}', "f:3:1: Expecting a property name in double quotes"),
    "missing comma": ('{"a": 1 "b": 2}', "f:1:9: Expecting ',' or '}'"),
    "missing colon": ('{"a" 1}', "f:1:6: Expecting ':'"),
    "missing value": ('{"a": }', "f:1:7: Expecting value"),
    "end in a value": ('{"a": ', "f:1:7: Expecting value"),
    "end after a value": ('{"a": 1', "f:1:8: Expecting ',' or '}'"),
    "end in a string": ('{"a": "', "f:1:7: Unterminated string starting at"),
    "end in a key": ('{"a', "f:1:2: Unterminated string starting at"),
    "bare key": ("{a: 1}", "f:1:2: Expecting a property name in double quotes"),
    "comment": ('{"a": 1} // x', "f:1:10: Expecting nothing after the object"),
    "one letter after nothing": ("{}x", "f:1:3: Expecting nothing after the object"),
    "one letter": ('{"a": 1}x', "f:1:9: Expecting nothing after the object"),
    "second object": ("{} {}", "f:1:4: Expecting nothing after the object"),
    "NaN": ('{\r\n"a": NaN}', "f:2:6: NaN is not a JSON number"),
    "Infinity": ('{"a": [-Infinity]}', "f:1:7: -Infinity is not a JSON number"),
    "a long number": (
        '{"a": 1e' + "9" * 18 + "}",
        f"f:1:7: 1e{'9' * 18} is beyond every number that Go reads",
    ),
    "a longer number": (
        '{"a": 1e' + "9" * 19 + "}",
        "f:1:7: a number of 21 digits is beyond every number that Go reads",
    ),
    "a long whole number": (
        '{"a": ' + "9" * 309 + "}",
        "f:1:7: a number of 309 digits is beyond every number that Go reads",
    ),
    "too deep": ('{"a":' + "[" * 10**5 + "]" * 10**5 + "}", "f:1:1: Too many nested values"),
}


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_refuses_what_is_no_object(text: str, message: str) -> None:
    """What is not a JSON object is refused with file, line and column."""
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        find_members(text, "f")


def test_members_have_their_offsets() -> None:
    """Offsets are those of the whole text, in a nested object too; its rest does not matter."""
    text = '{"a": {"b" : [1], "b": 2}, "c": 3}'
    assert find_members(text)[0] == Member("a", {"b": 2}, 1, 6, 25)
    inner = find_members(text, start=6)
    assert inner == [Member("b", [1], 7, 13, 16), Member("b", 2, 18, 23, 24)]
    assert find_member(inner, "b") == inner[1]
    assert find_member(inner, "x") is None


@pytest.mark.parametrize("value", [0, -1, 10**308, 0.5, -1.5e300])
def test_numbers_are_read_as_they_are(value: float) -> None:
    (member,) = find_members(json.dumps({"a": value}))
    assert member.value == value


@pytest.mark.parametrize(
    ("text", "offsets"),
    [
        ("[]", []),
        ("[ ]", []),
        ("[1]", [1]),
        ("[ 1 ,22,[3, 4] , {}]", [2, 5, 8, 17]),
        ("{}", []),
        ("[1", [1]),
    ],
)
def test_items_of_a_list_have_their_offsets(text: str, offsets: list[int]) -> None:
    assert find_items(f"x{text}", 1) == [offset + 1 for offset in offsets]
    assert find_items(text, -1) == []
    assert find_items(text, 0) == offsets


def test_lines_and_marks() -> None:
    """A line is counted by its line feeds; both spellings of the mark are known."""
    assert [line_of("a\r\nb\n", offset) for offset in (0, 2, 3, 5)] == [1, 1, 2, 3]
    assert [byte_order_mark(text) for text in ("{}", "\ufeff{}")] == ["", "\ufeff"]
    assert is_blank("\ufeff \r\n")
    assert not is_blank("{}")


BLANKS = st.sampled_from(["", " ", "\n", "\n  ", "\r\n\t", "\n\n    ", "  \n"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda children: (
        st.lists(children, max_size=2) | st.dictionaries(st.text(max_size=2), children)
    ),
    max_leaves=4,
)
KEYS = st.text(max_size=3)


@st.composite
def objects(draw: st.DrawFn) -> str:
    """Write an object with any white space between its tokens."""
    members = draw(st.lists(st.tuples(KEYS, VALUES), max_size=4))
    written = [
        "".join(
            (
                draw(BLANKS),
                json.dumps(key),
                draw(BLANKS),
                ":",
                draw(BLANKS),
                json.dumps(value, ensure_ascii=draw(st.booleans())),
                draw(BLANKS),
            )
        )
        for key, value in members
    ]
    inside = ",".join(written) or draw(BLANKS)
    mark = draw(st.sampled_from(["", "\ufeff"]))
    return f"{mark}{draw(BLANKS)}{{{inside}}}{draw(BLANKS)}"


@QUIET
@given(objects(), KEYS, VALUES, KEYS, VALUES, st.booleans())
def test_append_then_remove_is_nothing(
    text: str, key: str, value: object, second: str, other: object, turned: bool
) -> None:
    """Two members, appended and removed in either order, leave no trace."""
    known = {member.key for member in find_members(text)}
    assume(key not in known and second not in known and key != second)
    both = set_member(set_member(text, key, value), second, other)
    for gone in (second, key) if turned else (key, second):
        both = remove_member(both, gone)
    assert both == text


@QUIET
@given(objects(), KEYS, VALUES)
def test_set_changes_one_member_only(text: str, key: str, value: object) -> None:
    """After a set the member has its value, and all others have their bytes, order and place."""
    before, after = find_members(text), set_member(text, key, value)
    members = find_members(after)
    changed = find_member(members, key)
    assert changed is not None
    assert json.loads(json.dumps(value)) == changed.value
    at = members.index(changed)
    others = [text[m.start : m.end] for i, m in enumerate(before) if i != at]
    assert others == [after[m.start : m.end] for i, m in enumerate(members) if i != at]
    assert set_member(after, key, value) == after


@QUIET
@given(objects(), KEYS)
def test_remove_leaves_the_others(text: str, key: str) -> None:
    """After a removal no such key is left, and the others have their bytes and their order."""
    after = remove_member(text, key)
    others = [text[m.start : m.end] for m in find_members(text) if m.key != key]
    assert others == [after[m.start : m.end] for m in find_members(after)]


@QUIET
@given(st.text(alphabet='{}[]":,ab1 \n\\e-.'))
def test_agrees_with_the_json_module(text: str) -> None:
    """What the json module reads as an object is read alike, and nothing else is."""
    try:
        expected = json.loads(text)
    except ValueError:
        expected = None
    if isinstance(expected, dict):
        assert {m.key: m.value for m in find_members(text)} == expected
    else:
        with pytest.raises(ValueError, match=r"^JSON:\d+:\d+: "):
            find_members(text)
