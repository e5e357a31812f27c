# SPDX-License-Identifier: GPL-3.0-or-later
"""TOML is read as Podman's own parser reads it, with the line of every value."""

from __future__ import annotations

import pytest
from mlhost_limits.core.toml_text import _DEEPEST, Node, Scalar, TomlError, find_key, read_toml


def plain(node: object) -> object:
    """Return a value without its lines."""
    assert isinstance(node, Node)
    if isinstance(node.value, list):
        return [plain(one) for one in node.value]
    if isinstance(node.value, dict):
        return {key: plain(one) for key, one in node.value.items()}
    return node.value


def read(text: str) -> dict[str, object]:
    return {".".join(entry.keys): plain(entry.node) for entry in read_toml(text)}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", {}),
        ("# nothing\n\n  \t# more", {}),
        ("a = 1", {"a": Scalar("1")}),
        ("[t]\na = 'x'\n[t.u]\nb = \"y\"\r\n", {"t.a": "x", "t.u.b": "y"}),
        ('t . "a b".c = true # why', {"t.a b.c": Scalar("true")}),
        ("\t[ t ]\n\ta\t=\tfalse\t", {"t.a": Scalar("false")}),
        ('a = "q\\"\\u0041\\U00000042\\t"', {"a": 'q"AB\t'}),
        ('a = """\nx\n"y" \\\n   z"""', {"a": 'x\n"y" z'}),
        ("a = '''\nx''y'''", {"a": "x''y"}),
        ("a = []", {"a": []}),
        ('a = [ # x\n "p", # y\n\n\'q\', ]', {"a": ["p", "q"]}),
        ("a = { x = 1 , y = { } }", {"a.x": Scalar("1")}),
        ("a = [ 1 , [ 2 ] ] ", {"a": [Scalar("1"), [Scalar("2")]]}),
        ('a = "\\uFFFF\\U0010FFFF\\uD7FF\\uE000"', {"a": "\uffff\U0010ffff\ud7ff\ue000"}),
        ("a = [1,[2,3],{x=1}]", {"a": [Scalar("1"), [Scalar("2"), Scalar("3")], {"x": Scalar("1")}]}),
        ("a = {}\nb = {x = 1, y.z = 2}", {"b.x": Scalar("1"), "b.y.z": Scalar("2")}),
        ("a=2024-01-01T00:00:00Z\nb=1e5\nc=-0.5\nd=0x1F\ne=+inf\nf=07:32:00",
         {"a": Scalar("2024-01-01T00:00:00Z"), "b": Scalar("1e5"), "c": Scalar("-0.5"),
          "d": Scalar("0x1F"), "e": Scalar("+inf"), "f": Scalar("07:32:00")}),
        ("[[t]]\na = 1\n[[t]]\na = 2\n[u]\nb = 3", {"u.b": Scalar("3")}),
    ],
)  # fmt: skip
def test_values(text: str, found: dict[str, object]) -> None:
    assert read(text) == found


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("a = 1 b = 2", 1, "more than one thing on a line"),
        ("a = 'x' y", 1, "more than one thing on a line"),
        ("\n[t\na = 1", 2, "']' is missing"),
        ("[[t]\n", 1, "']]' is missing"),
        ("[t]\n[t]", 2, "the table t for the second time"),
        ("a", 1, "'=' is missing"),
        ("= 1", 1, "no key"),
        ("a =", 1, "no value"),
        ("a = \n1", 1, "no value"),
        ("a = nothing", 1, "no value"),
        ('a = "x', 1, "no value"),
        ('a = "\\q"', 1, "no escape '\\\\q'"),
        ('a = "\\uD800"', 1, "no character \\uD800"),
        ('a = "\\uDFFF"', 1, "no character \\uDFFF"),
        ('a = "\\U00110000"', 1, "no character \\U00110000"),
        ('\n\na = """\n\n\\q"""', 3, "no escape '\\\\q'"),
        ("a = [1", 1, "']' is missing"),
        ("a = [\n1\n2]", 3, "']' is missing"),
        ("a = [,]", 1, "no value"),
        ("a = [1,,]", 1, "no value"),
        ("a = {x=1,}", 1, "no key"),
        ("a = {x=1", 1, "'}' is missing"),
        ("a = {x=1, x=2}", 1, "the key 'x' for the second time"),
        ("a = 1 # \x01", 1, "a control character"),
        ("b = 1\ra = 1", 1, "a control character"),
        ("a = " + "[" * 60 + "]" * 60, 1, "values too deep in each other"),
    ],
)
def test_what_is_no_toml(text: str, line: int, problem: str) -> None:
    with pytest.raises(TomlError) as caught:
        read_toml(text)
    assert (caught.value.line, str(caught.value)) == (line, problem)


def test_a_value_knows_its_lines() -> None:
    (entry,) = read_toml("# c\na = [\n  'x',\n  'y',\n]\n")
    assert (entry.node.line, entry.node.end) == (2, 5)
    assert isinstance(entry.node.value, list)
    assert [node.line for node in entry.node.value] == [3, 4]


def test_capitals_of_keys_do_not_count() -> None:
    entries = read_toml("[Containers]\nShm_Size = '1'")
    found = find_key(entries, "containers", "shm_size")
    assert found
    assert found.node.value == "1"
    assert find_key(entries, "containers", "other") is None


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("[c]\nk = 1\nK = 2", 3, "k for the second time"),
        ("[c.k]\nx = 1", 2, "k is a table"),
    ],
)
def test_a_key_that_releases_read_differently(text: str, line: int, problem: str) -> None:
    with pytest.raises(TomlError) as caught:
        find_key(read_toml(text), "c", "k")
    assert (caught.value.line, str(caught.value)) == (line, problem)


@pytest.mark.parametrize(("begin", "end"), [("[", "]"), ("{a=", "}")])
def test_values_may_lie_so_deep_in_each_other(begin: str, end: str) -> None:
    read_toml(f"a = {begin * _DEEPEST}1{end * _DEEPEST}")
    with pytest.raises(TomlError, match="too deep"):
        read_toml(f"a = {begin * (_DEEPEST + 1)}1{end * (_DEEPEST + 1)}")
