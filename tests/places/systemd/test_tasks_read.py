# SPDX-License-Identifier: GPL-3.0-or-later
"""How many tasks a process may have beside it is read on both kinds of cgroups."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlhost_limits.core.values import UNLIMITED
from mlhost_limits.systemd.tasks import Level, cut_levels
from mlhost_limits.systemd.tasks_read import read_again, read_levels

PATH = "user.slice/user-1000.slice/user@1000.service/app.slice"
V1 = f"12:pids:/{PATH}\n11:cpu,cpuacct:/x\n1:name=systemd:/{PATH}/y.service\n0::/{PATH}/y.service\n"


@pytest.mark.parametrize(("text", "base"), [(f"0::/{PATH}\n", ""), (V1, "pids/")])
def test_every_level_that_has_a_bound(tmp_path: Path, text: str, base: str) -> None:
    folder = tmp_path / f"{base}{PATH}"
    folder.mkdir(parents=True)
    (folder / "pids.max").write_text("max\n")
    (folder.parents[1] / "pids.max").write_text("2529\n")
    levels = read_levels(text, str(tmp_path))
    assert [(level.unit, level.most) for level in levels] == [
        ("app.slice", UNLIMITED),
        ("user-1000.slice", 2529),
    ]
    assert levels[1].path == f"{folder.parents[1]}/pids.max"
    assert [level.unit for level in cut_levels(levels, "user-1000.slice")] == ["user-1000.slice"]
    assert cut_levels(levels, "other.slice") == []


@pytest.mark.parametrize("text", ["", "0::/\n", "3:cpu:/x\n", f"0::/{PATH}\n"])
def test_where_nothing_bounds_it(tmp_path: Path, text: str) -> None:
    assert read_levels(text, str(tmp_path)) == []


def test_what_is_gone_keeps_what_it_had(tmp_path: Path) -> None:
    path = tmp_path / "pids.max"
    path.write_text("7\n")
    there, gone = Level("a.slice", str(path), 9), Level("b.scope", f"{path}.x", 5)
    assert read_again([there, gone]) == [there._replace(most=7), gone]
    path.write_text("max\n")
    assert read_again([there]) == [there._replace(most=UNLIMITED)]


def test_a_unit_is_the_highest_of_its_name() -> None:
    """Whoever owns it may make cgroups below, of any name and bound."""
    levels = [Level("user.slice", "/fake", 5), Level("x", "/x", 7), Level("user.slice", "/real", 9)]
    assert cut_levels(levels, "user.slice") == levels[2:]
    assert cut_levels(levels, "y") == []
