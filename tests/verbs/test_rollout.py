# SPDX-License-Identifier: GPL-3.0-or-later
"""What is left of a plan, and when its rule stops it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mlhost_limits import cli
from mlhost_limits.core.reader import PolicyError
from mlhost_limits.fleet_plan import FORMAT, VERSION
from mlhost_limits.rollout import (
    NOBODY,
    WAVES,
    NextWave,
    find_edits,
    find_stop,
    read_rollout,
    tell_progress,
)

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


WAVE: dict[str, Any] = {"name": "x", "batches": [["a"]], "most_failed": 0}


def wave(**given: Any) -> dict[str, Any]:
    return {**PLAN, "waves": [{**WAVE, **given}]}


@pytest.mark.parametrize(
    ("plan", "told"),
    [
        (None, "format: None was given; 'mlhost.limits/plan', as"),
        ([], "format: None was given"),
        ({"format": "mlhost.limits/audit"}, "format: 'mlhost.limits/audit' was given"),
        ({"format": FORMAT}, "version: None was given; 1 is accepted; make the plan with"),
        ({**PLAN, "version": 2}, "version: 2 was given; 1 is accepted"),
        ({**PLAN, "waves": 5}, "waves: 5 was given; a list of mappings is accepted"),
        ({**PLAN, "waves": [7]}, "waves[0]: 7 was given; a mapping is accepted"),
        (wave(name=5), "waves[0].name: 5 was given; a text is accepted"),
        (wave(batches=[5]), "waves[0].batches[0]: 5 was given; a list of names of hosts is"),
        (wave(batches=["ab"]), "waves[0].batches[0]: a text was given; a list of names"),
        (wave(batches=[["a", 5]]), "waves[0].batches[0]: a list with what is not a text was given"),
        (wave(batches=[]), "waves[0].batches: an empty list was given; a list of batches"),
        (wave(batches=[["a"], []]), "waves[0].batches[1]: an empty list was given"),
        (wave(batches=None), "waves[0].batches: nothing was given"),
        (wave(most_failed=None), "waves[0].most_failed: None was given; a number of hosts is"),
        (wave(most_failed="many"), "waves[0].most_failed: 'many' was given"),
        (wave(most_failed=True), "waves[0].most_failed: True was given"),
        (wave(most_failed=-1), "waves[0].most_failed: -1 was given"),
        (wave(most_failed=float("inf")), "waves[0].most_failed: inf was given"),
        ({**PLAN, "fixes": [{**FIX, "hosts": 7}]}, "fixes[0].hosts: 7 was given; a list of names"),
        ({**PLAN, "fixes": {"a": 1}}, "fixes: a mapping was given; a list of mappings is accepted"),
        ({**PLAN, "fixes": [{**FIX, "drains": "no"}]}, "fixes[0].drains: 'no' was given; true or"),
        ({**PLAN, "fixes": [{**FIX, "text": 7}]}, "fixes[0].text: 7 was given; a text is accepted"),
        ({**PLAN, "waves": [WAVE] * 2}, "waves: a: 1 host more than once; each host once is"),
        (wave(batches=[["a", "b", "a", "b"]]), "waves: a, b: 2 hosts more than once; each host"),
        (wave(batches=[["../x", "a\nb\x1b"]]), "waves: ../x, a?b?: 2 hosts that the inventory has"),
        (wave(batches=[[f"h{n}" for n in range(9)]]), "h3, h4, ...: 9 hosts that the inventory"),
        ({**PLAN, "written": None}, "written: None was given; a time is accepted"),
        ({**PLAN, "waves": [WAVE] * 5}, "waves: 5 were given; at most 4 are accepted"),
        (wave(batches=[[]] * 30), "and 10 more"),
    ],
)
def test_what_is_no_plan_is_refused(plan: object, told: str) -> None:
    with pytest.raises(PolicyError) as caught:
        read_rollout(plan, (), NAMES)
    assert any(told in one for one in caught.value.problems), caught.value.problems
    assert len(caught.value.problems) in (1, 21)


def test_all_that_is_wrong_is_told_at_once() -> None:
    plan = {**PLAN, "fixes": [5], "waves": [{**WAVE, "name": 5, "most_failed": -1}, 7]}
    with pytest.raises(PolicyError) as caught:
        read_rollout(plan, (), NAMES)
    keys = [one.partition(":")[0] for one in caught.value.problems]
    assert keys == ["fixes[0]", "waves[0].name", "waves[0].most_failed", "waves[1]"]
    with pytest.raises(PolicyError) as caught:
        read_rollout(wave(batches=[["a", "zz", "a", "b*"]]), (), [*NAMES, "b*"])
    told = [one.partition(": ")[2] for one in caught.value.problems]
    assert [one.partition(":")[0] for one in told] == ["zz", "b*", "a"]


@pytest.mark.parametrize(
    "name", ["localhost", "all", "~.*", "a*", "!a", "a,b", "a:b", "a:b:c", "a[0:9]"]
)
def test_no_host_is_gone_to_that_the_inventory_has_not(name: str) -> None:
    known = [*NAMES, *({name} - {"localhost", "all"})]
    with pytest.raises(ValueError, match=r"1 host that (the inventory has not|Ansible takes)"):
        read_rollout(wave(batches=[["a", name]]), (), known)


@pytest.mark.parametrize("name", ["fe80::1", "192.168.1.5", "a/b", "a.site.org"])
def test_a_name_that_the_inventory_has_is_gone_to(name: str) -> None:
    assert read_rollout(wave(batches=[[name]]), (), [name]).waves[0].hosts == (name,)


@pytest.mark.parametrize(
    ("waves", "done", "told"),
    [
        (PLAN["waves"], (), "0 of 5 hosts are through; next: wave canary, 1 host"),
        (PLAN["waves"], ("a", "b"), "2 of 5 hosts are through; next: wave 10 %, 3 hosts"),
        (PLAN["waves"], NAMES, "all 5 hosts of the plan are through: nothing is left"),
        ([WAVE], ("a",), "the host of the plan is through: nothing is left"),
        ([], (), "the plan has no hosts"),
    ],
)
def test_how_far_a_plan_has_come_is_told(
    waves: list[Any], done: tuple[str, ...], told: str
) -> None:
    assert tell_progress(read_rollout({**PLAN, "waves": waves}, done, NAMES)) == told


def test_edits_that_nobody_makes_are_told() -> None:
    edits = [{**FIX, "kind": "edit", "text": f"take out x:{n}\x1b[2J"} for n in range(7)]
    told = find_edits(read_rollout({**PLAN, "fixes": edits}, (), NAMES))
    assert told.startswith("the plan has 7 edits of lines that are not ours (take out x:0?[2J; ")
    assert "x:4?[2J; ...)" in told
    assert find_edits(read_rollout({**PLAN, "fixes": [FIX]}, (), NAMES)) == ""


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
    with pytest.raises(ValueError, match="5 hosts that the inventory has not"):
        read_rollout(plan, (), ())
