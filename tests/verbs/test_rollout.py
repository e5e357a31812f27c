# SPDX-License-Identifier: GPL-3.0-or-later
"""What is left of a plan, and when its rule stops it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mlhost_limits import cli
from mlhost_limits.fleet_plan import FORMAT, VERSION
from mlhost_limits.rollout import NOBODY, WAVES, NextWave, find_stop, read_rollout

NAMES = ["a", "b", "c", "d", "e"]
FIX = {"kind": "never", "drains": False, "cost": "at once", "text": "provision", "hosts": ["a"]}
PLAN: dict[str, Any] = {
    "format": FORMAT,
    "version": VERSION,
    "written": "today",
    "fixes": [
        FIX,
        {**FIX, "kind": "edit", "text": "take out x:1", "hosts": ["b"]},
        {**FIX, "drains": True, "cost": "ends work", "hosts": ["c", "a"]},
        {**FIX, "drains": True, "cost": "reboot", "hosts": ["c", "d"]},
    ],
    "waves": [
        {"name": "canary", "batches": [["a"]], "most_failed": 0},
        {"name": "10 %", "batches": [["b", "c"], ["d"], ["e"]], "most_failed": 1},
    ],
}


def test_hosts_that_are_through_are_left_out() -> None:
    found = read_rollout(PLAN, {"a", "d", "old"}, NAMES)
    none = NextWave("", NOBODY, (1,), 0)
    left = NextWave("10 %", ("b", "c", "e"), (2, 1), 1)
    assert found.waves == (NextWave("canary", NOBODY, (1,), 0), left, none, none)
    assert len(found.waves) == WAVES
    assert found.drains == ("c", "a", "d")
    assert found.reboots == ("c", "d")
    assert found.by_hand == ("take out x:1",)
    assert found.done == ("a", "d")


@pytest.mark.parametrize(
    "plan",
    [
        None,
        [],
        {"format": FORMAT},
        {**PLAN, "version": 2},
        {**PLAN, "waves": 5},
        {**PLAN, "waves": [{"name": "x", "batches": [5], "most_failed": 0}]},
        {**PLAN, "waves": [{"name": "x", "batches": [["a"]]}]},
        {**PLAN, "waves": [{"name": "x", "batches": [["a"]], "most_failed": "many"}]},
        {**PLAN, "fixes": [{**FIX, "hosts": 7}]},
        {**PLAN, "fixes": {"a": 1}},
        {**PLAN, "waves": PLAN["waves"][:1] * 2},
        {**PLAN, "waves": [{"name": "x", "batches": ["ab"], "most_failed": 0}]},
        {**PLAN, "waves": [{"name": "x", "batches": [["a"]], "most_failed": -1}]},
        {**PLAN, "written": None},
        {**PLAN, "waves": [{"name": "x", "batches": [], "most_failed": 0}] * 5},
    ],
)
def test_what_is_no_plan_is_refused(plan: object) -> None:
    with pytest.raises(ValueError, match=r"is not what|is damaged|waves; at most"):
        read_rollout(plan, (), NAMES)


@pytest.mark.parametrize("name", ["localhost", "all", "~.*", "a*", "!a", "a,b"])
def test_no_host_is_gone_to_that_the_inventory_has_not(name: str) -> None:
    waves = [{"name": "canary", "batches": [["a", name]], "most_failed": 0}]
    known = [*NAMES, *({name} - {"localhost", "all"})]
    with pytest.raises(ValueError, match="has 1 hosts that the inventory has not"):
        read_rollout({**PLAN, "waves": waves}, (), known)


@pytest.mark.parametrize(("red", "stops"), [([], False), (["b"], False), (["b", "c"], True)])
def test_a_wave_stops_where_more_are_red_than_may(red: list[str], stops: bool) -> None:
    told = find_stop(read_rollout(PLAN, (), NAMES).waves[1], red)
    assert told.startswith("2 of wave 10 % did not become green (b, c), and 1 may") is stops
    assert bool(told) is stops


def test_what_the_command_prints_is_what_the_playbook_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    remedy = {"text": "make it so", "then": "reboot", "commands": ["x"]}
    cause = {"code": "a", "text": "a", "remedy": remedy}
    finding = {"status": "fail", "path": "kernel", "item": "fs.nr_open", "causes": [cause]}
    for name in NAMES:
        text = json.dumps({"findings": [finding]})
        (tmp_path / f"{name}.json").write_text(text)
    assert cli.main(["plan", str(tmp_path), "--at-once", "1", "--json"]) == 1
    plan = json.loads(capsys.readouterr().out)
    found = read_rollout(plan, (), NAMES)
    hosts = [name for wave in found.waves for name in wave.hosts if wave.hosts != NOBODY]
    assert sorted(hosts) == NAMES
    assert found.drains == found.reboots == tuple(NAMES)
    with pytest.raises(ValueError, match="has 5 hosts that the inventory has not"):
        read_rollout(plan, (), ())
