# SPDX-License-Identifier: BSD-2-Clause
"""A sysctl that holds several numbers, as kernel.sem: each has its own minimum."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"-?[0-9]{1,20}")


def parse_fields(text: object) -> tuple[int, ...]:
    """Return the numbers of a text; none where something else stands among them."""
    words = str(text).split()
    if not all(_NUMBER.fullmatch(word) for word in words):
        return ()
    return tuple(map(int, words))


def are_met(least: tuple[int, ...], has: tuple[int, ...]) -> bool:
    """Tell whether each number is as high as it must be."""
    return len(has) == len(least) and all(one >= low for one, low in zip(has, least))


def raise_fields(least: tuple[int, ...], *others: object) -> str:
    """Return the text that has the highest of each number, so that none is lowered.

    :param others: Texts of as many numbers; any other is left out.
    """
    rows = [least, *(row for row in map(parse_fields, others) if len(row) == len(least))]
    return " ".join(str(max(column)) for column in zip(*rows))
