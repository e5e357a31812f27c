# SPDX-License-Identifier: GPL-3.0-or-later
"""A process has a name as long as it lives."""

from __future__ import annotations

import os
from pathlib import Path

from mlhost_limits.host.daemons import read_comm


def test_a_process_has_a_name_until_it_has_ended() -> None:
    assert read_comm(os.getpid()) == Path("/proc/self/comm").read_text().strip()
    assert read_comm("0") == ""
