# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tests of a training run share: files that were written just now are old at once."""

from __future__ import annotations

import pytest
from mlhost_limits.training import cache_open_read


@pytest.fixture(autouse=True)
def _little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_open_read, "YOUNG", 0.05)
    monkeypatch.setattr(cache_open_read, "PAUSE", 0.01)
