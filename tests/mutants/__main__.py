# SPDX-License-Identifier: GPL-3.0-or-later
"""Break the library in one place at a time, and see whether a fast test fails.

Which tests run a line is measured once; each change then meets those tests alone, and what they
do not see meets the type checker, as every commit does. A test that does not end counts as failed.
Survivors are listed: some change nothing that can be seen.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from coverage import CoverageData

from tests.project.test_architecture import LIBRARY, is_pure

from .points import Point, change, find_points

TOP = Path(__file__).parents[2]
FOLDER = TOP / "build" / "mutants"
FIGURES = TOP / "build" / "mutants.json"
FAST = ("-m", "not host and not slow", "--hypothesis-profile", "quick", "-p", "no:cacheprovider")
LEFT_OUT = ("--ignore-glob", "*_oracle.py", "--ignore-glob", "*_on_host.py")
SUITES = ("tests/library", "tests/places", "tests/verbs")
WANTED = {"pure": 0.95, "rest": 0.85}
SECONDS = 240
MOST_TESTS = 150
"""More tests than that run a line: these, from all files, are enough to look at it."""


class Mutant(NamedTuple):
    """One change of one file, and the tests that run its line."""

    kind: str
    file: str
    point: Point
    tests: Sequence[str]


class Outcome(NamedTuple):
    """What became of a change: ``killed``, ``survived`` or ``not run`` by any test."""

    mutant: Mutant
    fate: str


def main() -> int:
    """Draw, break and report; the status is 0 where as many are killed as is wanted."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lanes", type=int, default=2)
    parser.add_argument("--measure", action="store_true", help="measure anew which tests run what")
    given = parser.parse_args()
    data = measure(given.measure)
    mutants = draw(given.count, random.Random(given.seed), data)
    outcomes = []
    for outcome in try_all(mutants, given.lanes):
        outcomes.append(outcome)
        point = outcome.mutant.point
        place = f"{outcome.mutant.file}:{point.line}"
        if outcome.fate != "killed":
            print(f"{outcome.fate:9} {place}  {point.before!r:.60} -> {point.after!r:.60}")
        sys.stdout.flush()
    return report(outcomes, given.seed)


def measure(anew: bool) -> CoverageData:
    """Return which tests run which lines; they run once for it, and must all pass."""
    file = FOLDER / "coverage"
    if anew or not file.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        options = [f"--cov={LIBRARY}", "--cov-context=test", "--cov-report=", "-n", "2"]
        subprocess.run(
            [sys.executable, "-m", "pytest", *FAST, *LEFT_OUT, *options, *SUITES],
            cwd=TOP,
            env={**os.environ, "COVERAGE_FILE": str(file)},
            check=True,
        )
    data = CoverageData(str(file))
    data.read()
    return data


def draw(count: int, chance: random.Random, data: CoverageData) -> list[Mutant]:
    """Draw half of the changes from the files that only compute, half from all others."""
    points: dict[str, list[tuple[str, Point]]] = {"pure": [], "rest": []}
    for path in sorted(LIBRARY.rglob("*.py")):
        kind = "pure" if is_pure(path) else "rest"
        name = str(path.relative_to(LIBRARY))
        points[kind] += [(name, point) for point in find_points(path.read_text())]
    return [
        Mutant(kind, name, point, find_tests(name, point.line, data))
        for kind, given in points.items()
        for name, point in chance.sample(given, count // 2)
    ]


def find_tests(name: str, line: int, data: CoverageData) -> list[str]:
    """Return the tests that run a line; what a child alone runs is left to its place's tests."""
    contexts = data.contexts_by_lineno(str(LIBRARY / name)).get(line, [])
    tests = sorted({one.partition("|")[0] for one in contexts} - {""})
    if tests:
        step = -(-len(tests) // MOST_TESTS)
        return tests[::step]
    place = TOP / "tests" / "places" / Path(name).parent
    folders = [f"tests/places/{Path(name).parent}"] if "/" in name and place.is_dir() else []
    return [*folders, "tests/verbs"]


def try_all(mutants: Sequence[Mutant], lanes: int) -> Iterator[Outcome]:
    """Try each in a copy of the tree, as many at a time as there are lanes."""
    trees: SimpleQueue[Path] = SimpleQueue()
    for number in range(lanes):
        tree = FOLDER / f"tree{number}"
        shutil.rmtree(tree, ignore_errors=True)
        for part in ("plugins", "tests", "docs", "roles", "meta"):
            shutil.copytree(TOP / part, tree / part, symlinks=True)
        for part in ("pyproject.toml", "galaxy.yml", "README.md"):
            shutil.copy(TOP / part, tree)
        trees.put(tree)

    def attempt(mutant: Mutant) -> Outcome:
        tree = trees.get()
        try:
            return Outcome(mutant, try_one(mutant, tree))
        finally:
            trees.put(tree)

    with ThreadPoolExecutor(lanes) as pool:
        yield from pool.map(attempt, mutants)


def try_one(mutant: Mutant, tree: Path) -> str:
    """Make one change, run its tests and the type checker, and take the change back."""
    file = tree / "plugins" / "module_utils" / mutant.file
    source = file.read_text()
    file.write_text(change(source, mutant.point))
    try:
        status = _run(["pytest", "-x", *FAST, *LEFT_OUT, *mutant.tests], tree)
        # Status 4 is that of a test which is there no more: the measure is older than the tests.
        fate = {0: "survived", 4: "not run", 5: "not run"}.get(status, "killed")
        return "killed" if fate == "survived" and _run(["mypy", str(file)], tree) else fate
    except subprocess.TimeoutExpired:
        return "killed"
    finally:
        file.write_text(source)


def _run(words: Sequence[str], tree: Path) -> int:
    """Return the exit status of a tool in a copy of the tree."""
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return done.returncode


def report(outcomes: Sequence[Outcome], seed: int) -> int:
    """Write ``build/mutants.json`` and end with a line of figures."""
    figures: dict[str, Mapping[str, float]] = {}
    for kind in WANTED:
        fates = [one.fate for one in outcomes if one.mutant.kind == kind]
        figures[kind] = {"made": len(fates), "killed": fates.count("killed")}
    rows = [
        {"file": one.mutant.file, "fate": one.fate, **one.mutant.point._asdict()}
        for one in outcomes
        if one.fate != "killed"
    ]
    FIGURES.write_text(json.dumps({"seed": seed, **figures, "survivors": rows}, indent=2) + "\n")
    told = [f"{kind} {one['killed']} of {one['made']} killed" for kind, one in figures.items()]
    print(f"mutants: {', '.join(told)}; {FIGURES}")
    enough = [one["killed"] >= WANTED[kind] * one["made"] for kind, one in figures.items()]
    return 0 if all(enough) else 1


if __name__ == "__main__":
    sys.exit(main())
