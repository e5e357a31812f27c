# SPDX-License-Identifier: GPL-3.0-or-later
"""Provision one section as its life goes: asked about, made, made again, taken back, checked."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

from . import library
from .cases import CASES, Case
from .inside import Setting
from .node import Node, State

Told = dict[str, Any]
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\dZ?")
_PID = re.compile(r"(pid |/proc/|canary-|limits-)[1-9]\d{2,}")
_SIZE = re.compile(r"\b\d{5,} bytes")
_MARK = re.compile(r"(/(?:run|var/tmp)/mlhost-(?:canary|limits)-)[\w.-]+")


class Step(NamedTuple):
    """One run: what it told, what the stand-ins were told, and the files of the host after it."""

    told: Told
    calls: list[str]
    after: State


class Walk(NamedTuple):
    """All runs of one section, in their order; ``before`` are the files of a bare host."""

    before: State
    asked: Step
    present: Step
    again: Step
    check_before: Step
    check_after: Step
    explained: Step
    asked_back: Step
    absent: Step
    absent_again: Step


def walk(name: str, folder: Path) -> Walk:
    """Run all steps of one section on a host of its own."""
    case, node = CASES[name], Node(folder)
    before = node.read()
    check_before = _step(node, case.before, lambda: library.check(policy=case.policy))
    asked = _provision(node, case, case.before, check_mode=True)
    present = _provision(node, case, case.before)
    again = _provision(node, case, case.after)
    check_after = _step(node, case.after, lambda: library.check(policy=case.policy))
    explained = _step(node, case.after, lambda: explain_all(case))
    asked_back = _provision(node, case, case.before, check_mode=True, state="absent")
    absent = _provision(node, case, case.before, state="absent")
    absent_again = _provision(node, case, case.after, state="absent")
    steps = (asked, present, again, check_before, check_after, explained, asked_back)
    return Walk(before, *steps, absent, absent_again)


def explain_all(case: Case) -> Told:
    """Return the chain of every place of a case."""
    return {f"{place} {item}": library.explain(place, item) for place, item in case.places}


def _provision(
    node: Node, case: Case, setting: Setting, check_mode: bool = False, **given: Any
) -> Step:
    words = {**case.given, **given}
    return _step(node, setting, lambda: library.provision(check_mode, policy=case.policy, **words))


def _step(node: Node, setting: Setting, task: Any) -> Step:
    node.read_calls()
    told = node.run(task, setting)
    calls = [call for call in settle(node.read_calls()) if " show" not in call]
    return Step(settle(told), calls, node.read())


def settle(told: Any) -> Any:
    """Return what was told with what varies replaced: times, and numbers of processes."""
    if isinstance(told, dict):
        return {key: settle(value) for key, value in told.items()}
    if isinstance(told, (list, tuple)):
        return [settle(value) for value in told]
    if isinstance(told, str):
        text = _MARK.sub(r"\1MARK", _TIME.sub("TIME", told))
        return _SIZE.sub("SIZE bytes", _PID.sub(r"\1PID", text))
    return told
