# SPDX-License-Identifier: GPL-3.0-or-later
"""What a user can exchange is that user's to look at; the rest is root's."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlhost_limits.training import folder_measure as keeper
from mlhost_limits.training.folder_measure import find_keeper

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="owners are root's to change")
ALICE, BOB = 12, 65534


@pytest.fixture
def top() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        for path, owner in (
            ("home", 0),
            ("home/alice", ALICE),
            ("home/alice/of root", 0),
            ("home/alice/of root/cache", 0),
            ("home/alice/of bob", BOB),
            ("open", 0),
        ):
            (Path(name) / path).mkdir()
            os.chown(Path(name) / path, owner, owner)
        (Path(name) / "open").chmod(0o1777)
        for path, target, owner in (
            ("link", "home/alice/of bob", 0),
            ("round", "round", 0),
            ("up", "home/../home/alice", 0),
            ("open/of alice", "/etc", ALICE),
            ("home/alice/away", "/etc", ALICE),
        ):
            (Path(name) / path).symlink_to(target)
            os.lchown(Path(name) / path, owner, owner)
        yield Path(name)


@pytest.mark.parametrize(
    ("path", "uid"),
    [
        ("home", 0),
        ("home/alice", ALICE),
        ("home/alice/of root/cache", ALICE),
        ("home/alice/of bob", BOB),
        ("home/alice/none/such", ALICE),
        ("home/alice/./away", ALICE),
        ("open", 0),
        ("open/of alice/ssh", ALICE),
        ("link", BOB),
        ("up", ALICE),
        ("round", 0),
        ("none", 0),
        ("home/alice/of root/../../../open", ALICE),
    ],
)
def test_the_last_who_is_not_root_keeps_a_path(top: Path, path: str, uid: int) -> None:
    handles = len(os.listdir("/proc/self/fd"))
    assert find_keeper(f"{top}/{path}") == uid
    assert len(os.listdir("/proc/self/fd")) == handles


def test_inside_a_user_namespace_a_stranger_keeps_nothing(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "_is_inside", lambda: True)
    assert find_keeper(f"{top}/home/alice/of bob") == ALICE
