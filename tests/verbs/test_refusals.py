# SPDX-License-Identifier: GPL-3.0-or-later
"""A run that is refused, or that fails half way, leaves every file of the host as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from . import golden, library
from .node import Node
from .refusals import REFUSALS
from .walk import settle

pytestmark = pytest.mark.root  # Mount namespaces are root's.


@pytest.mark.parametrize("name", REFUSALS)
def test_what_fails_writes_nothing(name: str, tmp_path: Path) -> None:
    one = REFUSALS[name]
    node = Node(tmp_path, one.files)
    before = node.read()
    told: dict[str, Any] = node.run(
        lambda: library.provision(policy=one.policy, **one.given), one.setting
    )
    assert told["failed"], told
    assert not told["changed"]
    assert node.read() == before
    kept = json.loads(golden.read_record("refusals"))
    assert settle(told["problems"]) == kept[name]
