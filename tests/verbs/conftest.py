# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs are made once for all tests that look at them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .walk import Walk, walk


@pytest.fixture(scope="session")
def walks(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Walk]:
    """Return what gives the walk of a section, which is made when it is first asked for."""
    made: dict[str, Walk] = {}

    def give(name: str) -> Walk:
        if name not in made:
            made[name] = walk(name, tmp_path_factory.mktemp(name))
        return made[name]

    return give
