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
    "squeue": 'cat "$FOLDER/jobs" 2>/dev/null || :',
    "scontrol": """
node=${2#NodeName=}
test "$1" != show || node=$3
case $1-$3 in
show-*)
    test ! -e "$FOLDER/$node.gone" || { echo "Node $node not found"; exit 1; }
    echo "NodeName=$node Arch=x86_64"
    echo "   State=$(cat "$FOLDER/$node.state" 2>/dev/null || echo IDLE) Weight=1"
    test ! -e "$FOLDER/$node.reason" ||
        echo "   Reason=$(cat "$FOLDER/$node.reason") [root@2026-11-26T12:00:00]"
    ;;
*-State=DRAIN) echo "${4#Reason=}" > "$FOLDER/$node.reason"; echo IDLE+DRAIN > "$FOLDER/$node.state" ;;
*-State=RESUME)
    rm -f "$FOLDER/$node.reason" "$FOLDER/$node.state"
    test ! -e "$FOLDER/$node.dies" || echo DOWN > "$FOLDER/$node.state"
    ;;
esac""",
}
KUBERNETES = """
case "$*" in
get*)
    cordon=false ours=
    test ! -e "$FOLDER/cordon" || cordon=true
    test ! -e "$FOLDER/ours" || ours='"mlhost.limits/rollout": "drained"'
    echo '{"metadata": {"annotations": {'"$ours"'}}, "spec": {"unschedulable": '$cordon'},'
    echo '"status": {"conditions": [{"type": "Ready", "status": "True"}]}}'
    ;;
*=drained) touch "$FOLDER/ours" ;;
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
    folder: Path,
    *words: str,
    red: tuple[str, ...] = (),
    stated: object = None,
    more: str = "",
    content: str | None = "plan",
) -> subprocess.CompletedProcess[str]:
    """Follow a plan with stand-ins for Slurm and Kubernetes.

    :param red: Hosts whose policy nothing can make true.
    :param more: Lines of the inventory.
    :param content: Of the file, if it is not a plan; none is written for None.
    """
    bin_ = folder / "bin"
    bin_.mkdir(exist_ok=True)
    for name, script in {**SLURM, "kubectl": KUBERNETES}.items():
        text = f'#!/bin/sh\necho "{name} $*" >> "$FOLDER/calls"\n{script}\n'
        (bin_ / name).write_text(text)
        (bin_ / name).chmod(0o755)
    if content is not None:
        text = json.dumps(plan() if stated is None else stated) if content == "plan" else content
        (folder / "plan.json").write_text(text)
    hosts = "".join(
        f"{name} {WAYS.strip()} mlhost_limits_policy='{json.dumps(RED if name in red else ASKED)}'\n"
        for name in NAMES
    )
    hosts += more
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
    assert read_calls(tmp_path, "scontrol update") == [
        f"scontrol update NodeName={name} State={state}"
        for name in ("a2", "a1")
        for state in ("DRAIN Reason=mlhost.limits rollout", "RESUME")
    ]
    assert read_done(tmp_path) == list(NAMES)
    assert found.stdout.index("ok: [a2]") < found.stdout.index("ok: [a1]")
    again = roll(tmp_path)
    assert again.returncode == 0
    assert "all 4 hosts of the plan are through: nothing is left" in again.stdout
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
    (tmp_path / "a1.state").write_text("MIXED+DRAIN\n")
    found = roll(tmp_path, "-e", "mlhost_limits_drain=slurm")
    assert found.returncode == 0, found.stdout
    calls = read_calls(tmp_path, "scontrol update")
    assert [line.split()[2] for line in calls] == ["NodeName=a2"] * 2
    assert "(MIXED+DRAIN: bad DIMM), and it stays so" in found.stdout
    assert (tmp_path / "a1.reason").read_text() == "bad DIMM\n"


@pytest.mark.parametrize("cordoned", [False, True])
def test_pods_leave_a_node_before_and_come_back_after(tmp_path: Path, cordoned: bool) -> None:
    if cordoned:
        (tmp_path / "cordon").touch()
    stated = plan(waves=[{"name": "canary", "batches": [["a2"]], "most_failed": 0}])
    kubectl = ("-e", "mlhost_limits_drain=kubernetes", "-e", "mlhost_limits_node=n2")
    assert roll(tmp_path, *kubectl, stated=stated).returncode == 0
    calls = [line.split()[1] for line in read_calls(tmp_path, "kubectl")]
    ours = ["get", "annotate", "drain", "get", "uncordon", "annotate", "get"]
    assert calls == (["get", "drain", "get"] if cordoned else ours)
    assert (tmp_path / "cordon").exists() is cordoned


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"version": 2}, "plan.json: version: 2 was given; 1 is accepted"),
        (
            {"waves": [{"name": 5, "batches": []}]},
            "plan.json: waves[0].name: 5 was given; a text is accepted; plan.json:"
            " waves[0].most_failed: None was given",
        ),
        (
            {"waves": [{"name": "x", "batches": [["a1", "all", "a\nb"]], "most_failed": 0}]},
            "plan.json: waves: all, a?b: 2 hosts that the inventory has not; those of the",
        ),
        (
            {"waves": [{"name": "x", "batches": [["gpu"]], "most_failed": 0}]},
            "plan.json: waves: gpu: 1 host that the inventory has not",
        ),
        (
            {"fixes": [{"kind": "edit", "text": "take out x.conf:1", "cost": "at once",
                        "drains": False, "hosts": ["a1"]}]},
            "(take out x.conf:1); it is followed with mlhost_limits_by_hand=true",
        ),
    ],
)  # fmt: skip
def test_a_plan_that_cannot_be_followed_is_refused(
    tmp_path: Path, change: dict[str, Any], told: str
) -> None:
    """A name of the inventory that a group has too is not one host."""
    found = roll(tmp_path, stated=plan(**change), more="gpu\n[gpu]\na1\na2\n")
    refused(tmp_path, found, told)


def refused(folder: Path, found: subprocess.CompletedProcess[str], told: str) -> None:
    assert found.returncode != 0
    assert told in " ".join(found.stdout.split()), found.stdout
    assert "PLAY [Wave 1]" not in found.stdout
    assert not (folder / "calls").exists()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "plan.json: No such file or directory; what `mlhost-limits plan --json` printed is"),
        ("", "plan.json: is empty; what `mlhost-limits plan --json` printed is accepted"),
        ("hosts: 5\n", "plan.json: is not JSON: Expecting value: line 1 column 1 (char 0); what"),
        ("[1]", "plan.json: is not a mapping; what"),
        (" " * 50 * 2**20, "plan.json: is larger than 16 MiB; what"),
    ],
)
def test_a_file_that_is_no_plan_is_refused(tmp_path: Path, content: str | None, told: str) -> None:
    found = roll(tmp_path, content=content)
    refused(tmp_path, found, told)


@pytest.mark.parametrize("content", ["", "{}", '{"written": "x", "done": 5}', "[1]"])
def test_notes_that_are_damaged_are_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "plan.json.done").write_text(content)
    found = roll(tmp_path, stated=plan(written="x"))
    refused(tmp_path, found, "what an earlier run noted is accepted; without the file it begins")
    assert (tmp_path / "plan.json.done").read_text() == content


def test_a_check_says_what_would_be_done_and_does_nothing(tmp_path: Path) -> None:
    (tmp_path / "a1.state").write_text("DOWN\n")
    found = roll(tmp_path, "-e", "mlhost_limits_drain=slurm", "--check", "--diff")
    assert found.returncode == 0, found.stdout
    text = " ".join(found.stdout.split())
    assert "a2: node a2 of Slurm would be drained; its state was IDLE" in text
    assert "-IDLE +mlhost.limits rollout" in text
    assert "a2: node a2 of Slurm would be given back" in text
    assert "a1 would be red: node a1 of Slurm: its state is DOWN" in text + found.stderr
    assert not read_calls(tmp_path, "scontrol update")
    assert not (tmp_path / "plan.json.done").exists()


def test_a_node_that_is_down_is_not_through(tmp_path: Path) -> None:
    """Before its turn, or once it is given back; then it is drained again."""
    stated = plan()
    stated["waves"][1]["most_failed"] = 4
    (tmp_path / "a1.state").write_text("DOWN*\n")
    (tmp_path / "a2.dies").touch()
    stated["waves"] = [{"name": "x", "batches": [list(NAMES)], "most_failed": 4}]
    found = roll(tmp_path, "-e", "mlhost_limits_drain=slurm", stated=stated)
    assert found.returncode != 0
    text = " ".join(found.stdout.split())
    assert "node a1 of Slurm: its state is DOWN*; one that is up is accepted" in text
    assert "its state is DOWN; one that is up is accepted; node a2 of Slurm is drained" in text
    assert read_done(tmp_path) == ["a3", "a4"]
    assert (tmp_path / "a2.reason").read_text() == "mlhost.limits rollout\n"


def test_a_host_that_is_an_address_needs_the_name_of_its_node(tmp_path: Path) -> None:
    address = "192.168.1.5"
    fixes = [{**plan()["fixes"][0], "hosts": [address]}]
    stated = plan(fixes=fixes, waves=[{"name": "x", "batches": [[address]], "most_failed": 0}])
    found = roll(
        tmp_path, "-e", "mlhost_limits_drain=slurm", stated=stated, more=f"{address} {WAYS}"
    )
    assert found.returncode != 0
    told = "192.168.1.5: is an address in the inventory; state what Slurm or Kubernetes calls the"
    assert told in " ".join(found.stdout.split())
    assert not (tmp_path / "calls").exists()


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
