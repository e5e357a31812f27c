# SPDX-License-Identifier: GPL-3.0-or-later
"""Kill runs and let their system calls fail, and see what is left of the host's files."""

from __future__ import annotations

import itertools
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from .points import Point, choose_errors, choose_kills, read_trace
from .world import FOREIGN, TEMPORARY, State, World

FIGURES = ("fault_points", "files_lost", "hosts_locked", "runs_not_converged", "leftovers")


class Way(NamedTuple):
    """One kind of run: from which files it starts, and which it makes of them."""

    state: str
    before: State
    after: State


def find_ways(world: World) -> tuple[Way, ...]:
    """Provision once and remove once, unbroken, to learn what is right.

    The third way asks for what would lock alice out: it never changes a file.
    """
    world.reset(FOREIGN)
    run = world.run("present")
    assert run.status == 0, run
    after = world.read()
    world.run("absent")
    back = Way("absent", after, world.read())
    assert back.after == FOREIGN, "what was removed is not what was there before"
    return Way("present", FOREIGN, after), back, Way("locking", FOREIGN, FOREIGN)


def find_points(world: World, way: Way, stride: int) -> list[Point]:
    """Trace one unbroken run and choose where to break the next ones."""
    log = world.etc.parent / "trace"
    world.reset(way.before)
    run = world.run(way.state, ("strace", f"--output={log}"))
    assert (run.status == 0) == (way.before != way.after), run
    calls = read_trace(log.read_text())
    points = [*choose_kills(calls, stride), *choose_errors(calls)]
    print(f"{way.state}: {len(calls)} system calls, {len(points)} fault points", flush=True)
    return points


def break_run(world: World, way: Way, point: Point) -> list[tuple[str, str]]:
    """Break one run; return what went wrong by the name of its figure."""
    world.reset(way.before)
    run = world.run(way.state, point.tracer)
    left = world.read()
    wrong = list(judge_files(way, point, left, failed=run.status != 0))
    if left not in (way.before, way.after):
        wrong += [("hosts_locked", reason) for reason in world.find_closed()]
    again = world.run(way.state)
    if (again.status == 0) != (way.before != way.after) or world.read() != way.after:
        wrong.append(("runs_not_converged", f"the next run: {again.said}"))
    wrong += [("leftovers", name) for name in world.find_leftovers()]
    return [(figure, f"{point}: {text}") for figure, text in wrong]


def judge_files(way: Way, point: Point, left: State, failed: bool) -> Iterator[tuple[str, str]]:
    """Say which files are neither old nor new, and whether a failed run put all of them back."""
    for name in sorted({*way.before, *way.after, *left}):
        if TEMPORARY in name:
            continue
        if left.get(name) not in (way.before.get(name), way.after.get(name)):
            yield "files_lost", f"{name} is {left.get(name)!r}"
    if point.fault != "KILL":
        whole = {name: text for name, text in left.items() if TEMPORARY not in name}
        if whole != (way.before if failed else way.after):
            yield "files_lost", f"the run {'failed' if failed else 'ended well'}, but left {whole}"


def torture(stride: int, keep: slice, workers: int = 2) -> Counter[str]:
    """Break runs at the chosen points, several at once; return the figures.

    :param keep: Which of the points; a share of them for a quick look.
    """
    figures = Counter(dict.fromkeys(FIGURES, 0))
    with tempfile.TemporaryDirectory(prefix="mlhost-torture-") as folder:
        worlds = [World(Path(folder) / str(number)) for number in range(workers)]
        ways = find_ways(worlds[0])
        tasks = [(way, point) for way in ways for point in find_points(worlds[0], way, stride)][
            keep
        ]
        shares = [itertools.islice(tasks, number, None, workers) for number in range(workers)]
        with ThreadPoolExecutor(workers) as pool:
            for wrong in pool.map(break_runs, worlds, shares):
                figures.update(wrong)
    figures["fault_points"] = len(tasks)
    return figures


def break_runs(world: World, tasks: Iterable[tuple[Way, Point]]) -> Counter[str]:
    """Break one run after the other in one world, and say at once what goes wrong."""
    found: Counter[str] = Counter()
    for count, (way, point) in enumerate(tasks, start=1):
        if count % 100 == 0:
            print(f"{count} runs broken", flush=True)
        for figure, text in break_run(world, way, point):
            found[figure] += 1
            print(f"{figure}: {way.state}, {text}", flush=True)
    return found
