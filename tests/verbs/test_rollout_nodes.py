# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes a rollout drains and gives back, by what Slurm and Kubernetes say of them."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from mlhost_limits.rollout_nodes import REASON, name_node, read_kubernetes, read_slurm
from mlhost_limits.rollout_steps import STEPS, Case, Taken

DRAIN = f"scontrol update NodeName=a State=DRAIN Reason={REASON}"
RESUME = "scontrol update NodeName=a State=RESUME"
MARK = "kubectl annotate --overwrite node a mlhost.limits/rollout=drained"
EVICT = "kubectl drain a --ignore-daemonsets --delete-emptydir-data --timeout=20s"
CORDON = "kubectl cordon a"
UNCORDON = "kubectl uncordon a"
UNMARK = "kubectl annotate node a mlhost.limits/rollout-"
LOOKS = ("scontrol show", "kubectl get", "squeue")


def show_slurm(state: str, reason: str = "") -> str:
    """Return what scontrol of Slurm 22.05 prints of a node."""
    told = f"   Reason={reason} [root@2026-11-26T12:00:00]\n" if reason else ""
    os = "   OS=Linux 6.1.0 State=FAKE Reason=none\n   RealMemory=1000 AllocMem=0\n"
    return f"NodeName=a Arch=x86_64 CoresPerSocket=1\n{os}   State={state} Weight=1\n{told}\n"


def show_kubernetes(ready: str = "True", cordoned: bool = False, ours: bool = False) -> str:
    marks = {"mlhost.limits/rollout": "drained"} if ours else {"other": "x"}
    conditions = [{"type": "DiskPressure", "status": "False"}, {"type": "Ready", "status": ready}]
    spec = {"unschedulable": True} if cordoned else {}
    node = {"metadata": {"annotations": marks}, "spec": spec, "status": {"conditions": conditions}}
    return json.dumps(node)


class Cluster:
    """Answers with one text after the other, the last one for ever, and keeps what was run."""

    def __init__(self, *shown: str, jobs: tuple[str, ...] = (), fails: str = "") -> None:
        self.shown, self.jobs, self.fails = list(shown), list(jobs), fails
        self.changes: list[str] = []
        self.slept = 0.0

    def ask(self, command: list[str]) -> tuple[int, str]:
        text = " ".join(command)
        if self.fails and text.startswith(self.fails):
            return 1, "first\nit is \x1b[31mbusy\n"
        if text.startswith("squeue"):
            return 0, self.jobs.pop(0) if self.jobs else ""
        if text.startswith(LOOKS):
            answer = self.shown.pop(0) if len(self.shown) > 1 else self.shown[0]
            return (1 if "not found" in answer else 0), answer
        self.changes.append(text)
        return 0, ""

    def pause(self, seconds: float) -> None:
        self.slept += seconds

    def take(self, step: str, scheduler: str = "slurm", is_check: bool = False) -> Taken:
        return STEPS[step](Case(scheduler, "a", self.ask, self.pause, 20, is_check))


@pytest.mark.parametrize(
    ("state", "reason", "held", "ours", "down"),
    [
        ("IDLE", "", False, False, False),
        ("idle", "", False, False, False),
        ("ALLOCATED", "", False, False, False),
        ("MIXED+COMPLETING", "", False, False, False),
        ("IDLE+CLOUD", "", False, False, False),
        ("MAINT", "", False, False, False),
        ("IDLE+MAINTENANCE+RESERVED", "", False, False, False),
        ("RESERVED", "", False, False, False),
        ("IDLE+PLANNED", "bad DIMM", False, False, False),
        ("IDLE", REASON, False, False, False),
        ("DRAINED", REASON, True, True, False),
        ("DRAINING", REASON, True, True, False),
        ("IDLE+DRAIN", REASON, True, True, False),
        ("IDLE+DRAIN", "bad DIMM", True, False, False),
        ("IDLE+DRAIN", f"{REASON}; bad DIMM", True, False, False),
        ("IDLE+DRAIN", f"{REASON}\n       bad DIMM", True, False, False),
        ("IDLE+DRAIN", "", True, False, False),
        ("ALLOCATED+DRAIN", "mlhost-limits: nofile is low", True, False, False),
        ("IDLE+FAIL", REASON, True, False, False),
        ("FAIL", "fan", True, False, False),
        ("ALLOCATED+POWER_DRAIN", REASON, True, False, False),
        ("DOWN", "", False, False, True),
        ("DOWN*", "Not responding", False, False, True),
        ("IDLE*", "", False, False, True),
        ("DOWN+DRAIN", REASON, True, True, True),
        ("DOWN*+DRAIN", "bad DIMM", True, False, True),
        ("IDLE+CLOUD+POWERED_DOWN", "", False, False, True),
        ("POWERED_DOWN", "", False, False, True),
        ("IDLE+REBOOT_ISSUED", "", False, False, True),
        ("IDLE+NOT_RESPONDING", "", False, False, True),
        ("UNKNOWN", "", False, False, True),
    ],
)
def test_a_state_of_slurm_says_who_keeps_work_from_a_node(
    state: str, reason: str, held: bool, ours: bool, down: bool
) -> None:
    found = read_slurm(show_slurm(state, reason))
    assert found.state == state
    assert (found.is_held, found.is_ours, found.is_down) == (held, ours, down)


def test_a_key_behind_the_reason_is_not_part_of_it() -> None:
    text = show_slurm("IDLE+DRAIN", REASON).rstrip() + "\n   Comment=bad DIMM\n"
    assert read_slurm(text).is_ours


@pytest.mark.parametrize("state", ["FLYING", "IDLE+FLYING", "IDLE~", "IDLE+"])
def test_a_word_that_is_not_known_is_refused(state: str) -> None:
    cluster = Cluster(show_slurm(state))
    with pytest.raises(ValueError, match="is not known; accepted are ALLOC, ALLOCATED, BLOCKED"):
        cluster.take("drain")
    assert not cluster.changes


@pytest.mark.parametrize(
    ("text", "held", "ours", "down"),
    [
        (show_kubernetes(), False, False, False),
        (show_kubernetes(cordoned=True), True, False, False),
        (show_kubernetes(cordoned=True, ours=True), True, True, False),
        (show_kubernetes(ours=True), False, True, False),
        (show_kubernetes("False"), False, False, True),
        (show_kubernetes("Unknown", cordoned=True), True, False, True),
        ('{"metadata": {}, "spec": {}, "status": {}}', False, False, True),
    ],
)
def test_kubernetes_says_who_cordoned_a_node(text: str, held: bool, ours: bool, down: bool) -> None:
    found = read_kubernetes(text)
    assert (found.is_held, found.is_ours, found.is_down) == (held, ours, down)


SLURM_STEPS = [
    ("drain", ["IDLE"], [DRAIN], "is drained; its state was IDLE"),
    ("drain", ["MIXED"], [DRAIN], "is drained; its state was MIXED"),
    ("drain", [("IDLE+DRAIN", REASON)], [], "is drained since an earlier run"),
    ("drain", [("DOWN+DRAIN", REASON)], [], "is drained since an earlier run"),
    ("drain", [("IDLE+DRAIN", "DIMM")], [], "somebody else keeps work from node a of Slurm"),
    ("drain", ["IDLE+FAIL"], [], "(IDLE+FAIL), and it stays so"),
    ("give_back", [("IDLE+DRAIN", REASON), "IDLE"], [RESUME], "is given back; its state is IDLE"),
    ("give_back", [("IDLE*+DRAIN", REASON), ("DOWN+DRAIN", REASON), "IDLE"], [RESUME], "is given"),
    (
        "give_back",
        [("IDLE+DRAIN", REASON), "IDLE+NOT_RESPONDING", "IDLE"],
        [RESUME],
        "is given back; its state is IDLE",
    ),
    ("give_back", [("IDLE+DRAIN", "DIMM")], [], "(IDLE+DRAIN: DIMM), and it stays so"),
    ("give_back", [("IDLE+FAIL", REASON)], [], "and it stays so"),
    ("give_back", ["ALLOCATED"], [], "takes work already"),
    ("take_back", ["IDLE"], [DRAIN], "node a of Slurm is drained again"),
    ("take_back", ["DOWN"], [DRAIN], "node a of Slurm is drained again"),
    ("take_back", [("IDLE+DRAIN", REASON)], [], "node a of Slurm stays drained"),
]
KUBERNETES_STEPS = [
    ("drain", [{}], [MARK, EVICT], "is drained; its state was Ready"),
    ("drain", [{"ours": True}], [EVICT], "is drained; its state was Ready"),
    ("drain", [{"cordoned": True, "ours": True}], [EVICT], "since an earlier run"),
    ("drain", [{"cordoned": True}], [EVICT], "somebody else keeps work from node a of Kubernetes"),
    ("give_back", [{"cordoned": True, "ours": True}, {}], [UNCORDON, UNMARK], "is given back"),
    ("give_back", [{"ours": True}, {}], [UNMARK], "is given back"),
    ("give_back", [{"cordoned": True}], [], "(Ready,SchedulingDisabled), and it stays so"),
    ("take_back", [{}], [MARK, CORDON], "is drained again"),
]


@pytest.mark.parametrize(("step", "states", "changes", "told"), SLURM_STEPS)
def test_a_node_of_slurm_goes_through_a_step(
    step: str, states: list[str | tuple[str, str]], changes: list[str], told: str
) -> None:
    shown = [show_slurm(*([one] if isinstance(one, str) else one)) for one in states]
    cluster = Cluster(*shown)
    taken = cluster.take(step)
    assert cluster.changes == changes
    assert told in taken.msg
    assert taken.changed is bool(changes)
    assert taken.takes_work is (step == "give_back" and "stays so" not in told)


@pytest.mark.parametrize(("step", "states", "changes", "told"), KUBERNETES_STEPS)
def test_a_node_of_kubernetes_goes_through_a_step(
    step: str, states: list[dict[str, bool]], changes: list[str], told: str
) -> None:
    cluster = Cluster(*(show_kubernetes(**one) for one in states))  # type: ignore[arg-type]
    taken = cluster.take(step, "kubernetes")
    assert cluster.changes == changes
    assert told in taken.msg


@pytest.mark.parametrize(
    ("step", "shown", "told"),
    [
        ("drain", [show_slurm("DOWN")], "node a of Slurm: its state is DOWN; one that is up"),
        ("drain", [show_slurm("DOWN*+DRAIN", "DIMM")], "its state is DOWN*+DRAIN; one that is up"),
        ("drain", [show_slurm("POWERED_DOWN")], "its state is POWERED_DOWN; one that is up"),
        ("drain", ["Node a not found\n"], "node a: Slurm has no such node (Node a not found)"),
        ("drain", [""], "node a: Slurm has no such node (no output); its name there is stated as"),
        ("give_back", [show_slurm("DOWN")], "its state is DOWN; one that is up is accepted"),
        ("give_back", [show_slurm("DOWN+DRAIN", "DIMM")], "its state is DOWN+DRAIN; one that is"),
        ("give_back", [show_slurm("DOWN*+DRAIN", REASON)], "for 300 s; it stays drained"),
        ("drain", ["\n"], "node a: Kubernetes has no such node; its name there"),
        ("drain", ["[1]"], "Kubernetes answers what is not a node: [1]"),
        ("drain", [show_kubernetes("False")], "node a of Kubernetes: its state is NotReady; one"),
        ("give_back", [show_kubernetes("Unknown", True, True)], "NotReady,SchedulingDisabled for"),
    ],
)
def test_a_node_that_is_down_or_missing_does_not_go_through(
    step: str, shown: list[str], told: str
) -> None:
    cluster = Cluster(*shown)
    is_slurm = "NodeName" in shown[0] or "Slurm" in told
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the sentence is looked at below.
        cluster.take(step, "slurm" if is_slurm else "kubernetes")
    assert told in str(caught.value)
    assert not cluster.changes


@pytest.mark.parametrize("after", ["DOWN", "IDLE*", "IDLE+DRAIN"])
def test_a_node_that_does_not_come_back_does_not_go_through(after: str) -> None:
    cluster = Cluster(show_slurm("IDLE+DRAIN", REASON), show_slurm(after, "not ours"))
    with pytest.raises(ValueError, match="node a of Slurm: its state is "):
        cluster.take("give_back")


def test_jobs_are_waited_for_and_named_where_they_do_not_end() -> None:
    cluster = Cluster(show_slurm("MIXED"), jobs=("7\n8\n", "8\n"))
    assert cluster.take("drain").changed
    assert cluster.slept == 20
    cluster = Cluster(show_slurm("MIXED"), jobs=("1 2 3 4 5 6",) * 9)
    with pytest.raises(ValueError, match=r"still has jobs after 20 s \(1, 2, 3, 4, 5, \.\.\.\)"):
        cluster.take("drain")
    assert cluster.slept == 20


@pytest.mark.parametrize("fails", ["scontrol show", "scontrol update", "squeue"])
def test_a_command_that_fails_is_told_with_its_last_line(fails: str) -> None:
    cluster = Cluster(show_slurm("IDLE"), fails=fails)
    with pytest.raises(ValueError, match=rf"`{fails}.*` ended with status 1: it is \?\[31mbusy$"):
        cluster.take("drain")


@pytest.mark.parametrize("step", ["drain", "give_back"])
@pytest.mark.parametrize(
    ("reason", "told"), [("", "would be"), ("DIMM", "somebody else keeps work from node a")]
)
def test_a_check_changes_nothing_and_says_what_would(step: str, reason: str, told: str) -> None:
    cluster = Cluster(show_slurm("IDLE+DRAIN" if reason else "IDLE", reason), jobs=("7",) * 9)
    taken = cluster.take(step, is_check=True)
    assert told in taken.msg
    assert taken.changed is not bool(reason)
    assert not cluster.changes
    assert not cluster.slept


@pytest.mark.parametrize(
    ("stated", "host", "name"),
    [("", "a1", "a1"), ("", "a1.site.org", "a1"), ("n7.x", "192.168.1.5", "n7.x")],
)
def test_a_node_is_called_as_its_host_unless_stated(stated: str, host: str, name: str) -> None:
    assert name_node(stated, host) == name


@pytest.mark.parametrize("host", ["192.168.1.5", "fe80::1", "ALL", "a[1-9]", "a,b", "-a", "a b"])
@pytest.mark.parametrize("name", [lambda host: ("", host), lambda host: (host, "a")])
def test_a_name_of_no_node_or_of_many_is_refused(
    host: str, name: Callable[[str], tuple[str, str]]
) -> None:
    stated, known = name(host)
    if stated == "192.168.1.5":
        assert name_node(stated, known) == stated  # Whoever states it means it.
        return
    with pytest.raises(ValueError, match="state what Slurm or Kubernetes calls the host"):
        name_node(stated, known)
