# SPDX-License-Identifier: GPL-3.0-or-later
"""The limits of a process are read and set as the kernel's unsigned numbers."""

from __future__ import annotations

from functools import partial

import pytest
from mlhost_limits.core.values import UNLIMITED, Rlimit
from mlhost_limits.host.children import run_in_children
from mlhost_limits.host.own_limits import read_own_limits, set_own_limits


def set_and_read(limit: Rlimit) -> Rlimit:
    set_own_limits({"locks": limit})
    return read_own_limits()["locks"]


@pytest.mark.parametrize("number", [UNLIMITED, UNLIMITED - 4, 2**63, 2**63 - 1, 7])
def test_a_large_number_is_not_taken_for_no_limit(number: int) -> None:
    """``-5`` in limits.conf is 2**64 - 5, and a process that starts another may have it."""
    report = run_in_children([partial(set_and_read, Rlimit(7, number))], 20.0)[0]
    assert report.value == [7, number], report.problem
