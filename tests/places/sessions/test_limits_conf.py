# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines of limits.conf are split and valued as pam_limits does, and ours say what was asked."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlhost_limits.core.reader import Limit
from mlhost_limits.core.values import ITEMS, RLIMITS, UNLIMITED
from mlhost_limits.sessions.limits_conf import (
    format_limits,
    list_nofiles,
    parse_limits_conf,
    parse_setting,
    parse_value,
    to_integer,
)

PATH = "/etc/security/limits.conf"
OLD = 1023  # The buffer of PAM 1.5.3 and older; 0 stands for 1.6 and later.


def fields(text: str, line_length: int = OLD) -> list[tuple[str, ...]]:
    return [line.fields for line in parse_limits_conf(text, PATH, line_length)]


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        ("bob - nofile 5", [("bob", "-", "nofile", "5")], None),
        (" \t bob\t-  nofile\t5 \n", [("bob", "-", "nofile", "5")], None),
        ("bob - nofile 5#glued", [("bob", "-", "nofile", "5")], None),
        ("# bob - nofile 5", [], None),
        ("bob - # nofile 5", [("bob", "-")], None),
        ("bob", [], None),
        ("bob - nofile", [], None),
        ("bob - nofile \t", [], None),
        ("", [], None),
        ("bob -\0 nofile 5", [("bob", "-")], None),
        ("bob - nofile 5\\\n6", [("bob", "-", "nofile", "5\\")], None),
        (
            "bob - nofile unlimited\r\n",
            [("bob", "-", "nofile", "unlimited")],
            [("bob", "-", "nofile", "unlimited\r")],
        ),
        ("bob - nofile 5 6", [("bob", "-", "nofile", "5")], [("bob", "-", "nofile", "5 6")]),
        ("bob -\vnofile 5", [("bob", "-", "nofile", "5")], []),
        ("\v\r bob -\r", [("bob", "-")], [("bob", "-\r")]),
        ("\r\n\r\n", [], None),
        ("\xef\xbb\xbf* - nofile 5", [("\xef\xbb\xbf*", "-", "nofile", "5")], None),
        ("bob\xa0 -", [("bob\xa0", "-")], None),
    ],
)
def test_fields(text: str, old: list[tuple[str, ...]], new: list[tuple[str, ...]] | None) -> None:
    assert fields(text) == old
    assert fields(text, 0) == (old if new is None else new)


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        ("#" + "x" * 1022 + "* - nofile 4097", [("*", "-", "nofile", "4097")], []),
        ("#" + "x" * 1021 + "* - nofile 4097", [], []),
        ("* - nofile 5".ljust(1023), [("*", "-", "nofile", "5")], [("*", "-", "nofile", "5")]),
        ("a".ljust(1020) + "b - nofile 5", [("nofile", "5")], [("a", "b", "-", "nofile 5")]),
    ],
    ids=[
        "comment that ends at the buffer",
        "comment one byte shorter",
        "exactly full",
        "cut entry",
    ],
)
def test_a_long_line(text: str, old: list[tuple[str, ...]], new: list[tuple[str, ...]]) -> None:
    assert fields(text) == old
    assert fields(text, 0) == new


def test_a_line_knows_its_place() -> None:
    line = parse_limits_conf("\n  Bob HARD NoFile 5 # five\n", PATH)[0]
    assert (line.path, line.line, line.text) == (PATH, 2, "  Bob HARD NoFile 5 # five")
    assert (line.domain, line.types, line.item, line.stops) == ("Bob", ("hard",), "nofile", False)


@pytest.mark.parametrize(
    ("text", "types", "stops"),
    [
        ("a soft core 0", ("soft",), False),
        ("a - core 0", ("soft", "hard"), False),
        ("a both core 0", (), False),
        ("a -", ("soft", "hard"), True),
        ("a -x", (), True),
        ("a soft", ("soft",), False),
    ],
)
def test_what_a_type_sets(text: str, types: tuple[str, ...], stops: bool) -> None:
    line = parse_limits_conf(text, PATH)[0]
    assert (line.types, line.stops) == (types, stops)


@pytest.mark.parametrize("name", ["zo\xeb", "\u7528\u6237"])
def test_a_name_beyond_ascii_is_utf_8_in_the_file(name: str) -> None:
    text = format_limits(name, {"core": Limit(0)})[0]
    assert text.encode("latin-1").decode("utf-8") == f"{name} soft core 0"
    assert parse_limits_conf(text, PATH)[0].domain == name


@given(st.text(st.characters(max_codepoint=255)))
def test_any_bytes_are_parsed(text: str) -> None:
    for line_length in (OLD, 0):
        for line in parse_limits_conf(text, PATH, line_length):
            assert line.domain
            assert len(line.fields) in (2, 4)
            parse_value(line.item, line.fields[-1])


@pytest.mark.parametrize(
    ("item", "word", "value"),
    [
        ("nofile", "65536", 65536),
        ("nofile", "65536k", 65536),
        ("nofile", "64K", 64),
        ("nofile", "65536;", 65536),
        ("nofile", "1e6", 1),
        ("nofile", "1,000", 1),
        ("nofile", "0x10000", 0),
        ("nofile", "0", 0),
        ("nofile", "007", 7),
        ("nofile", "+5", 5),
        ("nofile", "-5", 2**64 - 5),
        ("nofile", "-18446744073709551615", 1),
        ("nofile", "unlimited", 1048576),
        ("nofile", "Infinity", 1048576),
        ("nofile", "-", 1048576),
        ("nofile", "-1", 1048576),
        ("nofile", "18446744073709551615", 1048576),
        ("nofile", "18446744073709551616", 1048576),
        ("nofile", "-18446744073709551616", 1048576),
        ("nofile", "-" + "9" * 5000, 1048576),
        ("nofile", "9" * 5000, 1048576),
        ("nofile", "0" * 5000 + "7", 7),
        ("nofile", "abc", None),
        ("nofile", '"65536"', None),
        ("nofile", "\\", None),
        ("nofile", "+", None),
        ("nofile", "--5", None),
        ("nofile", "unlimited\r", None),
        ("nofile", "\r5", 5),
        ("nofile", "unlimited foo", None),
        ("nofile", "\xb2", None),
        ("memlock", "8M", 8192),
        ("memlock", "64", 65536),
        ("memlock", "UNLIMITED", UNLIMITED),
        ("memlock", "18014398509481982", (2**54 - 2) * 1024),
        ("memlock", "18014398509481983", UNLIMITED),
        ("memlock", "-5", UNLIMITED),
        ("cpu", "10", 600),
        ("cpu", "307445734561825860", UNLIMITED),
        ("msgqueue", "819200", 819200),
        ("nproc", "infinity", UNLIMITED),
        ("nice", "-10", 30),
        ("nice", "-1", 21),
        ("nice", "-99", 40),
        ("nice", "99", 1),
        ("nice", "-" + "9" * 99, 40),
        ("nice", "unlimited", None),
        ("nice", "-", None),
        ("maxlogins", "5", None),
        ("chroot", "/srv", None),
        ("nofiles", "5", None),
        ("", "", None),
    ],
)
def test_what_a_value_means(item: str, word: str, value: int | None) -> None:
    assert parse_value(item, word, 1048576) == value


@pytest.mark.parametrize(
    ("item", "word", "value"),
    [
        ("priority", "5", 5),
        ("priority", "-5k", -5),
        ("priority", "-99", -20),
        ("priority", "9" * 40, 19),
        ("priority", "unlimited", None),
        ("priority", "x", None),
        ("nonewprivs", "1", 1),
        ("nonewprivs", "0", 0),
        ("nonewprivs", "yes", 0),
        ("maxlogins", "3", 3),
        ("maxlogins", "0", 0),
        ("maxlogins", "-", UNLIMITED),
        ("maxlogins", "-1", UNLIMITED),
        ("maxlogins", "-7", UNLIMITED),
        ("maxlogins", "Infinity", UNLIMITED),
        ("maxsyslogins", "99999999999", 2**31 - 1),
        ("maxsyslogins", "x", None),
        ("chroot", "/SRV/Jail\xc3\x89", "/srv/jail\xc9"),
    ],
)
def test_what_a_setting_means(item: str, word: str, value: int | str | None) -> None:
    assert parse_setting(item, word) == value


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("9" * 20, 10**20 - 1),
        ("+" + "0" * 5000 + "9" * 20, 10**20 - 1),
        ("-" + "9" * 20, 1 - 10**20),
        ("1" + "0" * 20, 2**64),
        ("-1" + "0" * 20, -(2**64)),
        ("9" * 5000, 2**64),
    ],
)
def test_a_number_of_more_than_twenty_digits_is_too_large(text: str, number: int) -> None:
    assert to_integer(text) == number


@pytest.mark.parametrize(
    ("limits", "lines"),
    [
        ({"nofile": Limit(65536, 1048576)}, ["* soft nofile 65536", "* hard nofile 1048576"]),
        ({"memlock": Limit(65536, UNLIMITED)}, ["* soft memlock 64", "* hard memlock unlimited"]),
        ({"core": Limit(soft=0)}, ["* soft core 0"]),
        ({"core": Limit(hard=0)}, ["* hard core 0"]),
        ({"core": Limit(max=0)}, []),
        ({"cpu": Limit(600, 600)}, ["* soft cpu 10", "* hard cpu 10"]),
        ({"nice": Limit(25, 40)}, ["* soft nice -5", "* hard nice -20"]),
        ({"priority": Limit(-5, -5)}, ["* - priority -5"]),
        ({"maxlogins": Limit(3, 3)}, ["* - maxlogins 3"]),
        ({"maxlogins": Limit(UNLIMITED, UNLIMITED)}, ["* - maxlogins unlimited"]),
        ({"nonewprivs": Limit(1, 1)}, ["* - nonewprivs 1"]),
        ({"chroot": Limit(text="/srv/\xe9")}, ["* - chroot /srv/\xc3\xa9"]),
        ({}, []),
    ],
)
def test_our_lines(limits: dict[str, Limit], lines: list[str]) -> None:
    assert format_limits("*", limits) == lines


@pytest.mark.parametrize(
    ("item", "value", "message"),
    [
        ("memlock", 1000, "memlock: 1000 bytes is not a whole number of KiB"),
        ("cpu", 90, "cpu: 90 seconds is not a whole number of minutes"),
    ],
)
def test_a_size_is_never_rounded(item: str, value: int, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        format_limits("*", {item: Limit(value)})


def test_every_nofile_that_files_state() -> None:
    text = "* - nofile 5\n* - nofile unlimited\n* x nofile 6\n* soft nproc 7\nbob hard nofile 8\n"
    stated = list(list_nofiles(parse_limits_conf(text, PATH)))
    assert stated == [(5, f"{PATH}:1"), (8, f"{PATH}:5")]


@given(st.sampled_from(RLIMITS), st.one_of(st.just(UNLIMITED), st.integers(0, 2**40)))
def test_pam_reads_what_was_asked(item: str, number: int) -> None:
    scale = ITEMS[item].scale
    value = number % 40 + 1 if item == "nice" else min(number * scale, UNLIMITED)
    line = parse_limits_conf(format_limits("*", {item: Limit(value)})[0], PATH)[0]
    assert parse_value(line.item, line.fields[3]) == value
