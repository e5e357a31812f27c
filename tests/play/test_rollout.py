# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan is followed in its waves, stops where too many are red, and goes on where it stopped."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from .plays import ASKED, HOSTS, run

NAMES = ("a1", "a2", "a3", "a4")
WAYS = HOSTS.partition(" ")[2]
RED = {"kernel": {"vm.max_map_count": {"max": 1}}}
"""Is only checked: nothing makes it true."""
SLURM = {
    "sinfo": 'cat "$FOLDER/$3.reason" 2>/dev/null || echo none',
    "squeue": "",
    "scontrol": """
name=${2#NodeName=}
case $3 in
State=DRAIN) echo "${4#Reason=}" > "$FOLDER/$name.reason" ;;
State=RESUME) rm "$FOLDER/$name.reason" ;;
esac""",
}
KUBERNETES = """
case "$*" in
get*) test ! -e "$FOLDER/cordon" || printf true; printf /; cat "$FOLDER/ours" 2>/dev/null || : ;;
*=drained) printf drained > "$FOLDER/ours" ;;
drain*) touch "$FOLDER/cordon" ;;
uncordon*) rm "$FOLDER/cordon" ;;
*rollout-) rm "$FOLDER/ours" ;;
esac"""


def plan(**given: Any) -> dict[str, Any]:
    """Return a plan: a2 first, then a1 with a3, then a4; two of them are drained."""
    fix = {"kind": "never", "text": "provision the host", "cost": "ends work", "drains": True}
    return {
        "format": "mlhost.limits/plan",
        "version": 1,
        "written": "2026-11-26T12:00:00Z",
        "fixes": [{**fix, "hosts": ["a2", "a1"]}],
        "waves": [
            {"name": "canary", "batches": [["a2"]], "most_failed": 0},
            {"name": "10 %", "batches": [["a1", "a3"], ["a4"]], "most_failed": 1},
        ],
        **given,
    }


def roll(
    folder: Path, *words: str, red: tuple[str, ...] = (), stated: object = None
) -> subprocess.CompletedProcess[str]:
    """Follow a plan with stand-ins for Slurm and Kubernetes.

    :param red: Hosts whose policy nothing can make true.
    """
    bin_ = folder / "bin"
    bin_.mkdir(exist_ok=True)
    for name, script in {**SLURM, "kubectl": KUBERNETES}.items():
        text = f'#!/bin/sh\necho "{name} $*" >> "$FOLDER/calls"\n{script}\n'
        (bin_ / name).write_text(text)
        (bin_ / name).chmod(0o755)
    (folder / "plan.json").write_text(json.dumps(plan() if stated is None else stated))
    hosts = "".join(
        f"{name} {WAYS.strip()} mlhost_limits_policy='{json.dumps(RED if name in red else ASKED)}'\n"
        for name in NAMES
    )
    given = ["-e", "mlhost_limits_plan=plan.json", "-e", "mlhost_limits_profile=none"]
    return run(
        folder,
        *("ansible-playbook", "mlhost.limits.rollout", *given, *words),
        before="touch /etc/security/limits.conf",
        hosts=hosts,
        PATH=f"{bin_}:{os.environ['PATH']}",
        FOLDER=str(folder),
    )


def read_calls(folder: Path, word: str) -> list[str]:
    calls = folder / "calls"
    return (
        [line for line in calls.read_text().splitlines() if word in line] if calls.exists() else []
    )


def read_done(folder: Path) -> list[str]:
    file = folder / "plan.json.done"
    return list(json.loads(file.read_text())["done"]) if file.exists() else []


def test_waves_go_in_order_and_only_nodes_whose_work_ends_are_drained(tmp_path: Path) -> None:
    found = roll(tmp_path, "-e", "mlhost_limits_drain=slurm")
    assert found.returncode == 0, found.stdout
    assert read_calls(tmp_path, "scontrol") == [
        f"scontrol update NodeName={name} State={state}"
        for name in ("a2", "a1")
        for state in ("DRAIN Reason=mlhost.limits rollout", "RESUME")
    ]
    assert read_done(tmp_path) == list(NAMES)
    assert found.stdout.index("ok: [a2]") < found.stdout.index("ok: [a1]")
    again = roll(tmp_path)
    assert again.returncode == 0
    assert again.stdout.count("skipping: no hosts matched") == 4


def test_a_red_canary_stops_all_stays_drained_and_the_next_run_goes_on(tmp_path: Path) -> None:
    found = roll(tmp_path, "-e", "mlhost_limits_drain=slurm", red=("a2",))
    assert found.returncode != 0
    assert "PLAY [Wave 2]" not in found.stdout
    assert (tmp_path / "a2.reason").read_text() == "mlhost.limits rollout\n"
    assert read_done(tmp_path) == []
    again = roll(tmp_path, "-e", "mlhost_limits_drain=slurm")
    assert again.returncode == 0, again.stdout
    assert not (tmp_path / "a2.reason").exists()
    assert read_done(tmp_path) == list(NAMES)


@pytest.mark.parametrize("most", [1, 0])
def test_a_wave_ends_where_more_are_red_than_may(tmp_path: Path, most: int) -> None:
    stated = plan()
    stated["waves"][1]["most_failed"] = most
    found = roll(tmp_path, red=("a3",), stated=stated)
    assert found.returncode != 0
    assert read_done(tmp_path) == (["a1", "a2", "a4"] if most else ["a1", "a2"])
    told = "1 of wave 10 % did not become green (a3), and 0 may: the rollout stops"
    assert (told in " ".join(found.stdout.split())) is not most


def test_a_node_that_somebody_else_drained_stays_so(tmp_path: Path) -> None:
    (tmp_path / "a1.reason").write_text("bad DIMM\n")
    assert roll(tmp_path, "-e", "mlhost_limits_drain=slurm").returncode == 0
    assert [line.split()[2] for line in read_calls(tmp_path, "scontrol")] == ["NodeName=a2"] * 2
    assert (tmp_path / "a1.reason").read_text() == "bad DIMM\n"


@pytest.mark.parametrize("cordoned", [False, True])
def test_pods_leave_a_node_before_and_come_back_after(tmp_path: Path, cordoned: bool) -> None:
    if cordoned:
        (tmp_path / "cordon").touch()
    stated = plan(waves=[{"name": "canary", "batches": [["a2"]], "most_failed": 0}])
    kubectl = ("-e", "mlhost_limits_drain=kubernetes", "-e", "mlhost_limits_node=n2")
    assert roll(tmp_path, *kubectl, stated=stated).returncode == 0
    calls = [line.split()[1] for line in read_calls(tmp_path, "kubectl")]
    ours = ["get", "annotate", "drain", "get", "uncordon", "annotate"]
    assert calls == (["get", "drain", "get"] if cordoned else ours)
    assert (tmp_path / "cordon").exists() is cordoned


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"version": 2}, "plan.json is not what `mlhost-limits plan --json` prints, version 1"),
        ({"waves": [{"name": "canary"}]}, "plan.json is damaged"),
        (
            {"waves": [{"name": "x", "batches": [["a1", "all", "localhost"]], "most_failed": 0}]},
            "plan.json has 2 hosts that the inventory has not, or that Ansible would take for"
            " patterns: all, localhost",
        ),
        (
            {"fixes": [{"kind": "edit", "text": "take out x.conf:1", "cost": "at once",
                        "drains": False, "hosts": ["a1"]}]},
            "it goes on: take out x.conf:1",
        ),
    ],
)  # fmt: skip
def test_a_plan_that_cannot_be_followed_is_refused(
    tmp_path: Path, change: dict[str, Any], told: str
) -> None:
    found = roll(tmp_path, stated=plan(**change))
    assert found.returncode != 0
    assert told in " ".join(found.stdout.split())
    assert "PLAY [Wave 1]" not in found.stdout


def test_a_plan_has_to_be_named(tmp_path: Path) -> None:
    found = roll(tmp_path, "-e", "mlhost_limits_plan=")
    assert found.returncode != 0
    assert "plan (-e mlhost_limits_plan=FILE): names no file" in found.stdout


@pytest.mark.parametrize("limit", ["a1", "localhost,a1"])
def test_a_limit_is_refused_before_anything_is_done(tmp_path: Path, limit: str) -> None:
    found = roll(tmp_path, "--limit", limit, "-e", "mlhost_limits_drain=slurm")
    assert found.returncode != 0
    assert "a plan does not go with --limit" in found.stdout
    assert not (tmp_path / "calls").exists()
