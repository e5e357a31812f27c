# SPDX-License-Identifier: BSD-2-Clause
"""Drain a node of Slurm or Kubernetes, and give it back.

A node that somebody else keeps from work stays so, and one that is down is refused. Commands are
run by who calls, so that all of this is known without a cluster.
"""

from __future__ import annotations

from .core.quote import one_line
from .core.values import NamedTuple
from .rollout_nodes import ANNOTATION, MARK, REASON, Node, read_kubernetes, read_slurm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Command = list[str]
    Ask = Callable[[Command], tuple[int, str]]

_WORKING = "CF,CG,R,RS,S,SI,SO,ST"
"""States of a job that has a node, by squeue(1)."""
_PATIENCE, _PAUSE = 300, 5
"""Seconds in which a node must answer after a boot, and between two looks. slurmctld asks a node
as often as SlurmdTimeout says, and holds one that it resumes for silent until it has."""
_JOBS_PAUSE = 10
_SHOWN = 5


class Case(NamedTuple):
    """A node, and how its scheduler is asked. ``ask`` returns the status and the output."""

    scheduler: str
    name: str
    ask: Ask
    pause: Callable[[float], None]
    wait: int
    is_check: bool = False

    @property
    def who(self) -> str:
        return f"node {self.name} of {self.scheduler.capitalize()}"


class Taken(NamedTuple):
    """What became of a node, or would in check mode."""

    changed: bool
    msg: str
    before: str
    after: str
    takes_work: bool


def _look(case: Case) -> Node:
    """Ask the scheduler.

    :raises ValueError: If it does not answer, has no such node, or says what is not known.
    """
    if case.scheduler == "slurm":
        command, read = ["scontrol", "show", "node", case.name], read_slurm
    else:
        asked = ["--ignore-not-found", "--output", "json"]
        command, read = ["kubectl", "get", "node", case.name, *asked], read_kubernetes
    status, text = case.ask(command)
    if status and not (case.scheduler == "slurm" and "not found" in text and status == 1):
        raise ValueError(_tell_failure(command, status, text))
    try:
        return read(text)
    except ValueError as exc:
        name = f"{case.scheduler.capitalize()} {exc}"
        hint = "; its name there is stated as mlhost_limits_node" if "no such" in name else ""
        raise ValueError(f"node {case.name}: {name}{hint}") from None


def _tell_failure(command: Command, status: int, text: str) -> str:
    lines = text.strip().splitlines() or ["it wrote nothing"]
    return f"`{' '.join(command[:4])}` ended with status {status}: {one_line(lines[-1])}"


def _run(case: Case, *command: str) -> str:
    status, text = case.ask(list(command))
    if status:
        raise ValueError(f"{case.who}: {_tell_failure(list(command), status, text)}")
    return text


def drain(case: Case) -> Taken:
    """Keep new work from a node, and wait until what it has is done.

    :raises ValueError: If it is down by no doing of ours, or not empty in time.
    """
    node = _look(case)
    if node.is_down and not node.is_ours:
        accepted = "one that is up is accepted; bring it back, and the same command goes on"
        raise ValueError(f"{case.who}: its state is {node.state}; {accepted}")
    if not case.is_check:
        _hold(case, node)
        _empty(case)
    if node.is_held and not node.is_ours:
        return Taken(False, _tell_other(case, node), node.state, node.state, False)
    told = "would be drained" if case.is_check else "is drained"
    told = "is drained since an earlier run" if node.is_held else told
    msg = f"{case.who} {told}; its state was {node.state}"
    return Taken(not node.is_held, msg, node.state, REASON, False)


def _tell_other(case: Case, node: Node) -> str:
    why = f": {one_line(node.why)}" if node.why else ""
    return f"somebody else keeps work from {case.who} ({node.state}{why}), and it stays so"


def _hold(case: Case, node: Node) -> None:
    """Say that it is drained by us, unless it is drained."""
    if node.is_held:
        return
    if case.scheduler == "slurm":
        _run(case, "scontrol", "update", f"NodeName={case.name}", "State=DRAIN", f"Reason={REASON}")
    elif not node.is_ours:
        mark = f"{ANNOTATION}={MARK}"
        _run(case, "kubectl", "annotate", "--overwrite", "node", case.name, mark)


def _empty(case: Case) -> None:
    if case.scheduler == "slurm":
        _wait_for_jobs(case)
        return
    words = ["--ignore-daemonsets", "--delete-emptydir-data", f"--timeout={case.wait}s"]
    _run(case, "kubectl", "drain", case.name, *words)


def _wait_for_jobs(case: Case) -> None:
    words = ["--noheader", "--nodelist", case.name, "--states", _WORKING, "--format", "%i"]
    waited = 0
    while True:
        jobs = _run(case, "squeue", *words).split()
        if not jobs:
            return
        if waited >= case.wait:
            shown = ", ".join(jobs[:_SHOWN]) + (", ..." if len(jobs) > _SHOWN else "")
            raise ValueError(
                f"{case.who}: still has jobs after {case.wait} s ({one_line(shown)}), and stays"
                " drained; the same command goes on, or mlhost_limits_drain_wait is more"
            )
        pause = min(_JOBS_PAUSE, case.wait - waited)
        case.pause(pause)
        waited += pause


def give_back(case: Case) -> Taken:
    """Let a node have work again, if we drained it.

    :raises ValueError: If it is down then.
    """
    if case.is_check:
        node = _look(case)
        if node.is_held and not node.is_ours:
            return Taken(False, _tell_other(case, node), node.state, node.state, False)
        return Taken(True, f"{case.who} would be given back", REASON, node.state, True)
    node = _wait_for_answer(case)
    if node.is_ours:
        _release(case, node)
    after = _wait_for_answer(case) if node.is_ours else node
    if after.is_down or (node.is_ours and after.is_held):
        raise ValueError(f"{case.who}: its state is {after.state}; one that is up is accepted")
    if after.is_held:
        return Taken(False, _tell_other(case, after), after.state, after.state, False)
    told = "is given back" if node.is_ours else "takes work already"
    msg = f"{case.who} {told}; its state is {after.state}"
    return Taken(node.is_ours, msg, node.state, after.state, True)


def _wait_for_answer(case: Case) -> Node:
    """Look until the node answers: after a boot, its daemon needs a while.

    :raises ValueError: If it does not.
    """
    for _look_again in range(_PATIENCE // _PAUSE):
        node = _look(case)
        if not node.is_silent:
            return node
        case.pause(_PAUSE)
    stays = "; it stays drained" if node.is_ours else ""
    raise ValueError(f"{case.who}: its state is {node.state} for {_PATIENCE} s{stays}")


def _release(case: Case, node: Node) -> None:
    if case.scheduler == "slurm":
        _run(case, "scontrol", "update", f"NodeName={case.name}", "State=RESUME")
        return
    if node.is_held:
        _run(case, "kubectl", "uncordon", case.name)
    _run(case, "kubectl", "annotate", "node", case.name, f"{ANNOTATION}-")


def take_back(case: Case) -> Taken:
    """Drain a node again that did not stay green; jobs that it got go on."""
    node = _look(case)
    if node.is_held:
        return Taken(False, f"{case.who} stays drained", node.state, node.state, False)
    _hold(case, node)
    if case.scheduler == "kubernetes":
        _run(case, "kubectl", "cordon", case.name)
    return Taken(True, f"{case.who} is drained again", node.state, REASON, False)


STEPS: Mapping[str, Callable[[Case], Taken]] = {
    "drain": drain,
    "give_back": give_back,
    "take_back": take_back,
}
