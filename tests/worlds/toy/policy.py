# SPDX-License-Identifier: GPL-3.0-or-later
"""What a policy says of toys."""

from __future__ import annotations

from ..core.reader import Key, read_mapping, read_quantity

KEYS = {"marbles": Key("size above 0", "how many marbles there are at least")}


def read_toys(raw: object, problems: list[str]) -> int | None:
    """Read the section ``toys``: the marbles that there must be at least."""
    section = read_mapping("toys", raw, KEYS, problems)
    return read_quantity("toys.marbles", section.get("marbles"), "", problems)
