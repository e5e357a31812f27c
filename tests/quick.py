# SPDX-License-Identifier: GPL-3.0-or-later
"""The loop of seconds: formatter, linter, types and the fast tests, side by side.

Any Linux will do, without root: what needs root, a guest or time is left to ``make test``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

TOP = Path(__file__).parents[1]
_LAST_LINES = 60
_ENVIRONMENT = {
    **{name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
    "PYTHONPYCACHEPREFIX": str(TOP / "build/pycache"),
}
"""Compiled files are kept, in a folder of their own: a quarter of the time."""
PLACES = sorted(path.name for path in (TOP / "tests/places").iterdir() if path.is_dir())


class Outcome(NamedTuple):
    """What a lane's command ended with, what it printed, and the seconds it took."""

    name: str
    status: int
    text: str
    seconds: float


def main(arguments: Sequence[str]) -> int:
    """Run all, or what concerns one place; the status is 0 where nothing is wrong."""
    place = arguments[0] if arguments else ""
    if place and place not in PLACES:
        print(f"PLACE={place}: accepted are {', '.join(PLACES)}")
        return 2
    start = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        outcomes = pool.map(run_lane, [list_checks(), [("tests", list_tests(place))]])
        done = [outcome for lane in outcomes for outcome in lane]
    for outcome in done:
        print(f"{outcome.name:<12}{'FAIL' if outcome.status else 'ok':<6}{outcome.seconds:5.1f} s")
    for outcome in done:
        if outcome.status:
            print("\n".join(outcome.text.splitlines()[-_LAST_LINES:]))
    print(f"{time.monotonic() - start:.1f} s; `make test` runs what takes longer")
    return int(any(outcome.status for outcome in done))


def list_checks() -> list[tuple[str, list[str]]]:
    """Return what is checked without running any of our code, by its name."""
    return [
        ("format", ["ruff", "format", "--check", "--quiet", "."]),
        ("linter", ["ruff", "check", "--quiet", "."]),
        ("types", ["mypy", "plugins/module_utils"]),
    ]


def list_tests(place: str) -> list[str]:
    """Return the command that runs the fast tests."""
    folders = [f"tests/places/{place}"] if place else ["tests/library", "tests/places"]
    options = ["-m", "not slow and not host", "--hypothesis-profile", "quick", "-n", "2"]
    left_out = ["--ignore-glob", "*_oracle.py", "--ignore-glob", "*_on_host.py"]
    return ["pytest", *options, *left_out, "-p", "no:cacheprovider", "--no-header", *folders]


def run_lane(steps: Sequence[tuple[str, list[str]]]) -> list[Outcome]:
    """Run commands one after the other."""
    return [run_step(name, words) for name, words in steps]


def run_step(name: str, words: list[str]) -> Outcome:
    """Run one command in the project's folder."""
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=TOP,
        env=_ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return Outcome(name, done.returncode, done.stdout, time.monotonic() - start)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
