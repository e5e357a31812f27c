# SPDX-License-Identifier: GPL-3.0-or-later
"""What differs here from the other scenarios."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session", autouse=True)
def _jobs() -> None:
    """Hold no jobs of cron: no session is looked at."""
