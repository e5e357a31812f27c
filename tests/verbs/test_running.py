# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs has what was asked for when a run ends, and as before when the run fails."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from . import library
from .cases import CASES
from .node import Node

pytestmark = pytest.mark.root  # Mount namespaces are root's.


def read_shm_after(policy: dict[str, Any]) -> list[int]:
    """Return the size of /dev/shm before and after a run, in MiB."""
    before = os.statvfs("/dev/shm")
    assert not library.provision(policy=policy)["failed"]
    after = os.statvfs("/dev/shm")
    return [one.f_blocks * one.f_frsize // 2**20 for one in (before, after)]


def test_shared_memory_is_remounted_at_once(tmp_path: Path) -> None:
    policy = CASES["shared_memory"].policy
    assert Node(tmp_path).run(lambda: read_shm_after(policy)) == [64, 10 * 1024]


def test_what_is_larger_is_never_made_smaller(tmp_path: Path) -> None:
    policy = {"shared_memory": {"size": "16MiB"}}
    assert Node(tmp_path).run(lambda: read_shm_after(policy)) == [64, 64]
