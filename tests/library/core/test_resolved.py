# SPDX-License-Identifier: GPL-3.0-or-later
"""What files state is told as JSON and as text, value by value."""

from __future__ import annotations

import json

import pytest
from mlhost_limits.core.resolved import (
    Effect,
    describe,
    format_entries,
    format_resolved,
    format_value,
)
from mlhost_limits.core.values import UNLIMITED, Bound, Declaration

LOW = Declaration("/a", 1, "x 5", 5)
HIGH = Declaration("/b", 2, "x 7", 7)


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_the_pieces_are_json_as_it_is_usually_indented(count: int) -> None:
    entries: list[dict[str, object]] = [{"item": "é", "n": {"m": [n]}} for n in range(count)]
    text = "\n".join(format_entries(iter(entries)))
    whole = {"format": "mlhost.limits/resolve", "version": 1, "statements": entries}
    assert text == json.dumps(whole, indent=2)


def test_a_value_is_told_with_what_it_beats_and_what_counts() -> None:
    bound = Bound(HIGH, (LOW,))
    stated = describe("session:a", "core", "soft", bound, "bytes")
    capped = describe("session:a", "core", "value", bound, "bytes", Effect(6, "of a cap"))
    unknown = describe("session:a", "core", "hard", bound, "bytes", Effect(None, "nobody knows"))
    absent: dict[str, object] = {"place": "session:b", "reason": "no such file"}
    assert (stated["effective"], capped["effective"], unknown["effective"]) == ("7B", "6B", None)
    beats = ['     by      /b:2 "x 7"', '     shadows /a:1 "x 5"']
    assert list(format_resolved([stated, capped, unknown, absent])) == [
        *("session:a core soft = 7B", *beats),
        *("session:a core = 7B", "     but     6B counts: of a cap", *beats),
        *("session:a core hard = 7B", "     but     nobody knows", *beats),
        "session:b: no such file",
    ]
    assert list(format_resolved([])) == ["no file in this tree states a limit"]


@pytest.mark.parametrize(
    ("value", "item", "told"),
    [
        (UNLIMITED, "nofile", "the value of fs.nr_open"),
        (UNLIMITED, "nproc", "unlimited"),
        (UNLIMITED - 1, "nofile", str(UNLIMITED - 1)),
        ("/chroot", "chroot", "/chroot"),
    ],
)
def test_a_number_without_an_end_of_descriptors_is_the_kernel_s(
    value: int | str, item: str, told: str
) -> None:
    assert format_value(value, "", item) == told
