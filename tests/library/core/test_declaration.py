# SPDX-License-Identifier: GPL-3.0-or-later
"""A statement names its place as compilers do."""

from __future__ import annotations

import pytest
from mlhost_limits.core.values import Declaration


@pytest.mark.parametrize(("line", "place"), [(3, "/etc/x:3"), (0, "/etc/x")])
def test_the_place_of_a_statement(line: int, place: str) -> None:
    assert Declaration("/etc/x", line, "a b", 5).place == place
