# SPDX-License-Identifier: GPL-3.0-or-later
"""Time all sides in turn on one target, several times over."""

from __future__ import annotations

import statistics
import sys
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .playbook import Run
    from .target import Target

_DROP_IN_TASKS = ("Make the folder of the drop-in", "Write the drop-in")


def measure(target: Target, rounds: int) -> dict[str, float]:
    """Return the median seconds of each kind of run.

    What is timed is the ansible-playbook program from start to end, as a person waits for it.
    All kinds take their turn in every round, so that a load which comes and goes hits them all.
    """
    target.controller.run("ping.yml")  # Opens the connection that all others use.
    seconds: dict[str, list[float]] = defaultdict(list)
    for number in range(1, rounds + 1):
        _time_peers(target, seconds)
        _time_ours(target, seconds)
        last = ", ".join(f"{name[:-2]} {times[-1]:.1f}" for name, times in seconds.items())
        print(f"{target.host.name}, round {number} of {rounds}: {last}", file=sys.stderr)
    return {name: statistics.median(times) for name, times in seconds.items()}


def _time_peers(target: Target, seconds: dict[str, list[float]]) -> None:
    run = target.controller.run
    target.reset()
    seconds["peers_first_s"].append(run("peers.yml", changes=True).seconds)
    second = run("peers.yml", changes=False)
    seconds["peers_noop_s"].append(second.seconds)
    seconds["peers_drop_in_noop_s"].append(_sum_tasks(second))
    target.reset()
    seconds["best_first_s"].append(run("peers_best.yml", changes=True).seconds)
    seconds["best_noop_s"].append(run("peers_best.yml", changes=False).seconds)
    seconds["best_read_s"].append(run("peers_read.yml", changes=False).seconds)


def _time_ours(target: Target, seconds: dict[str, list[float]]) -> None:
    """Time our runs, with a ping before and after those that are compared with it."""
    run = target.controller.run
    target.reset()
    target.forget()  # A first run brings the library too.
    seconds["ours_first_s"].append(run("ours.yml", "--tags", "provision", changes=True).seconds)
    run("ours.yml", changes=False)  # What is kept on a target is whole after a second run of each.
    run("ours.yml", "--tags", "check")
    seconds["noop_and_check_s"].append(run("ours.yml", changes=False).seconds)
    seconds["ping_s"].append(run("ping.yml").seconds)
    noop = run("ours.yml", "--tags", "provision", changes=False)
    seconds["ours_noop_s"].append(noop.seconds)
    seconds["check_s"].append(run("ours.yml", "--tags", "check").seconds)
    seconds["ping_s"].append(run("ping.yml").seconds)
    target.forget()
    seconds["cold_check_s"].append(run("ours.yml", "--tags", "check").seconds)


def _sum_tasks(run: Run) -> float:
    return sum(run.tasks.get(name, 0.0) for name in _DROP_IN_TASKS)
