# SPDX-License-Identifier: GPL-3.0-or-later
"""Every spelling of a limit is read into the kernel's unit; anything else is refused."""

from __future__ import annotations

import re
import resource

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlhost_limits.core.values import (
    ITEMS,
    RLIMITS,
    UNLIMITED,
    format_quantity,
    parse_quantity,
)

PLAIN = "accepted are a whole number or 'unlimited'"
SIZES = "accepted are a whole number (with B, KiB, MiB, GiB, TiB) or 'unlimited'"
TIMES = "accepted are a whole number (with s, min, h) or 'unlimited'"


@pytest.mark.parametrize(
    ("value", "unit", "number"),
    [
        (0, "", 0),
        (65536, "", 65536),
        ("65536", "", 65536),
        ("64KiB", "bytes", 65536),
        ("64 KiB", "bytes", 65536),
        ("1TiB", "bytes", 2**40),
        ("5B", "bytes", 5),
        ("10min", "seconds", 600),
        ("2h", "seconds", 7200),
        ("unlimited", "", UNLIMITED),
        ("infinity", "bytes", UNLIMITED),
        ("-1", "seconds", UNLIMITED),
        (-1, "", UNLIMITED),
        (2**63 - 1, "", 2**63 - 1),
    ],
)
def test_accepted_spellings(value: object, unit: str, number: int) -> None:
    assert parse_quantity(value, unit) == number


@pytest.mark.parametrize(
    ("value", "unit", "accepted"),
    [
        ("64K", "bytes", SIZES),
        ("64KB", "bytes", SIZES),
        ("64kib", "bytes", SIZES),
        ("64  KiB", "bytes", SIZES),
        ("64KiB", "", PLAIN),
        ("5min", "bytes", SIZES),
        ("5m", "seconds", TIMES),
        (65536.0, "", PLAIN),
        (6.5e4, "bytes", SIZES),
        (float("inf"), "", PLAIN),
        (True, "", PLAIN),
        (False, "", PLAIN),
        (None, "", PLAIN),
        ([1], "", PLAIN),
        ({"soft": 1}, "", PLAIN),
        ("", "", PLAIN),
        (" 1", "", PLAIN),
        ("1\n", "", PLAIN),
        ("-2", "", PLAIN),
        (-2, "", PLAIN),
        ("+5", "", PLAIN),
        ("1_000", "", PLAIN),
        ("007", "", PLAIN),
        ("00", "", PLAIN),
        ("010KiB", "bytes", SIZES),
        ("1:30:00", "seconds", TIMES),
        ("0x10", "", PLAIN),
        ("1e6", "", PLAIN),
        ("\u0661", "", PLAIN),
        ("Unlimited", "", PLAIN),
    ],
)
def test_refused_spellings(value: object, unit: str, accepted: str) -> None:
    message = f"{value!r} is not a limit: {accepted}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        parse_quantity(value, unit)


@pytest.mark.parametrize("value", [2**63, "9223372036854775808", "8388608TiB"])
def test_a_number_the_kernel_cannot_hold_is_refused(value: object) -> None:
    message = f"{value!r} is not a limit: the largest number is 2**63 - 1"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        parse_quantity(value, "bytes")


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0, "", "0"),
        (0, "bytes", "0B"),
        (1000, "bytes", "1000B"),
        (65536, "bytes", "64KiB"),
        (3 * 2**39, "bytes", "1536GiB"),
        (65537, "bytes", "65537B"),
        (90, "seconds", "90s"),
        (UNLIMITED, "bytes", "unlimited"),
        (UNLIMITED, "", "unlimited"),
    ],
)
def test_people_read_the_exact_value(value: int, unit: str, text: str) -> None:
    assert format_quantity(value, unit) == text


@given(st.integers(0, 2**63 - 1), st.sampled_from(["", "bytes", "seconds"]))
def test_what_is_written_reads_back(value: int, unit: str) -> None:
    assert parse_quantity(format_quantity(value, unit), unit) == value


def test_no_limit_is_the_kernels_own_number() -> None:
    assert UNLIMITED == resource.RLIM_INFINITY % 2**64


def test_the_numbers_of_the_limits_are_the_kernels() -> None:
    for name in RLIMITS:
        number = getattr(resource, f"RLIMIT_{name.upper()}", ITEMS[name].resource)
        assert ITEMS[name].resource == number
    assert sorted(ITEMS[name].resource or 0 for name in RLIMITS) == list(range(16))
