# SPDX-License-Identifier: GPL-3.0-or-later
"""Break the library in one place at a time, and see whether a fast test fails.

Which tests run a line is measured once; each change then meets those tests alone, most of them in a
child of one process. What they do not see there meets them again in a process of its own, and the
type checker, as every commit does. A test that does not end counts as failed. Survivors are listed:
some change nothing that can be seen.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import chain
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from coverage import CoverageData

from tests.project.test_architecture import LIBRARY, is_pure

from .inside import KILLED, Trial, try_inside
from .points import Point, change, find_points

TOP = Path(__file__).parents[2]
FOLDER = TOP / "build" / "mutants"
FIGURES = TOP / "build" / "mutants.json"
FAST = ("-m", "not host and not slow", "--hypothesis-profile", "quick", "-p", "no:cacheprovider")
LEFT_OUT = ("--ignore-glob", "*_oracle.py", "--ignore-glob", "*_on_host.py")
SUITES = ("tests/library", "tests/places", "tests/verbs")
WANTED = {"pure": 0.95, "rest": 0.85}
SECONDS = 150
MOST_TESTS = 200
"""More tests than that run a line: these, from all files, are enough to look at it."""


class Outcome(NamedTuple):
    """What became of a change: ``killed``, ``survived`` or ``not run`` by any test."""

    mutant: Trial
    fate: str


def main() -> int:
    """Draw, break and report; the status is 0 where as many are killed as is wanted."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("files", nargs="*", help="of the library: every change of these")
    parser.add_argument("--tests", action="append", default=[], help="a file whose tests run first")
    parser.add_argument("--inside", action="store_true", help="try nothing again by itself")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lanes", type=int, default=2)
    parser.add_argument("--measure", action="store_true", help="measure anew which tests run what")
    given = parser.parse_args()
    data = measure(given.measure)
    changes = list_all(given.files) if given.files else draw(given.count, given.seed)
    mutants = [
        Trial(name, point, [*given.tests, *find_tests(name, point.line, data)])
        for name, point in changes
    ]
    names = {test.partition("::")[0] for one in mutants for test in one.tests}
    fates = try_inside(LIBRARY, mutants, given.lanes, [*FAST, *LEFT_OUT, *sorted(names)])
    outcomes = [Outcome(one, fate) for one, fate in zip(mutants, fates) if fate == KILLED]
    print(f"{len(outcomes)} of {len(mutants)} are killed in a child of one process", flush=True)
    others = [one for one, fate in zip(mutants, fates) if fate != KILLED]
    told = (Outcome(one, "survived") for one in others) if given.inside else None
    for outcome in told or try_all(others, given.lanes):
        outcomes.append(outcome)
        if outcome.fate != KILLED:
            point = outcome.mutant.point
            place = f"{outcome.fate:9} {outcome.mutant.file}:{point.line}"
            print(f"{place}  {point.before!r:.60} -> {point.after!r:.60}", flush=True)
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


def draw(count: int, seed: int) -> list[tuple[str, Point]]:
    """Draw half of the changes from the files that only compute, half from all others."""
    names = [str(path.relative_to(LIBRARY)) for path in sorted(LIBRARY.rglob("*.py"))]
    chance = random.Random(seed)
    drawn = []
    for kind in WANTED:
        points = list_all([name for name in names if find_kind(name) == kind])
        drawn += chance.sample(points, min(count // 2, len(points)))
    return sorted(drawn)


def list_all(names: Iterable[str]) -> list[tuple[str, Point]]:
    """Return every change of these files of the library."""
    return [(name, point) for name in names for point in find_points((LIBRARY / name).read_text())]


def find_kind(name: str) -> str:
    """Tell whether a file of the library only computes."""
    return "pure" if is_pure(LIBRARY / name) else "rest"


def find_tests(name: str, line: int, data: CoverageData) -> list[str]:
    """Return the tests that run a line, those of its place first.

    Of a line that runs once, as the file is loaded, or in a child alone, these are the tests that
    run any other line of it, and all of its place.
    """
    lines = _read_contexts(data, str(LIBRARY / name))
    place = f"tests/places/{Path(name).parent}"
    homes = (f"{place}/", f"tests/library/{Path(name).parent}/")
    tests = _list_tests(lines.get(line, []))
    if tests:
        own = [one for one in tests if one.startswith(homes)]
        return [*_pick(own), *_pick(sorted(set(tests) - set(own)))]
    folders = [place] if "/" in name and (TOP / place).is_dir() else []
    return [*_pick(_list_tests(chain.from_iterable(lines.values()))), *folders, "tests/verbs"]


@lru_cache(1)  # The changes of one file come one after the other.
def _read_contexts(data: CoverageData, path: str) -> dict[int, list[str]]:
    return data.contexts_by_lineno(path)


def _list_tests(contexts: Iterable[str]) -> list[str]:
    return sorted({one.partition("|")[0] for one in contexts} - {""})


def _pick(tests: Sequence[str]) -> Sequence[str]:
    return tests[:: -(-len(tests) // MOST_TESTS) or 1]


def try_all(mutants: Sequence[Trial], lanes: int) -> Iterator[Outcome]:
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

    def attempt(mutant: Trial) -> Outcome:
        tree = trees.get()
        try:
            return Outcome(mutant, try_one(mutant, tree))
        finally:
            trees.put(tree)

    with ThreadPoolExecutor(lanes) as pool:
        yield from pool.map(attempt, mutants)


def try_one(mutant: Trial, tree: Path) -> str:
    """Make one change, run its tests and the type checker, and take the change back."""
    file = tree / "plugins" / "module_utils" / mutant.file
    source = file.read_text()
    file.write_text(change(source, mutant.point))
    try:
        status = _run(["pytest", "-x", *FAST, *LEFT_OUT, *mutant.tests], tree)
        # Status 4 is that of a test which is there no more: the measure is older than the tests.
        fate = {0: "survived", 4: "not run", 5: "not run"}.get(status, KILLED)
        return KILLED if fate == "survived" and _run(["mypy", str(file)], tree) else fate
    except subprocess.TimeoutExpired:
        return KILLED
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
        fates = [one.fate for one in outcomes if find_kind(one.mutant.file) == kind]
        figures[kind] = {"made": len(fates), "killed": fates.count(KILLED)}
    rows = [
        {"file": one.mutant.file, "fate": one.fate, **one.mutant.point._asdict()}
        for one in outcomes
        if one.fate != KILLED
    ]
    FIGURES.write_text(json.dumps({"seed": seed, **figures, "survivors": rows}, indent=2) + "\n")
    told = [f"{kind} {one['killed']} of {one['made']} killed" for kind, one in figures.items()]
    print(f"mutants: {', '.join(told)}; {FIGURES}")
    enough = [one["killed"] >= WANTED[kind] * one["made"] for kind, one in figures.items()]
    return 0 if all(enough) else 1


if __name__ == "__main__":
    sys.exit(main())
