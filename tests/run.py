# SPDX-License-Identifier: GPL-3.0-or-later
"""Run every test, or the stages named; print one line for each, and the log of what failed."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

TOP = Path(__file__).parents[1]
BUILD = TOP / "build"
LOGS = BUILD / "logs"
COLLECTION = BUILD / "collections" / "ansible_collections" / "mlhost" / "limits"
_DOCS = ("antsibull-docs", "lint-collection-docs", "--plugin-docs", "--skip-rstcheck")

_SLOWEST = 10
_LOG_LINES = 200
GET_PIP = "import ensurepip\n\nensurepip.bootstrap()\n"


class Step(NamedTuple):
    """One command of a stage; ``environment`` is added to ours."""

    name: str
    words: list[str]
    folder: Path = TOP
    environment: dict[str, str] = {}


def lint_steps() -> list[Step]:
    return [
        Step("ruff check", ["ruff", "check", "."]),
        Step("ruff format", ["ruff", "format", "--check", "."]),
        Step("mypy", ["mypy", "plugins/module_utils", "tests"]),
        Step("yamllint", ["yamllint", "--strict", "."]),
        Step("ansible-lint", ["ansible-lint", "--offline"]),
        sanity_step(),
        Step("reuse", ["reuse", "lint"]),
        Step("antsibull-docs", [*_DOCS, str(COLLECTION)]),
        Step("changelog", ["antsibull-changelog", "lint"]),
        Step("galaxy-importer", ["python", "-m", "tests.importer"]),
        Step("docs", ["make", "docs"]),
    ]


def sanity_step() -> Step:
    """Prepare ansible-test: it wants an installed collection outside of a git tree, and pip."""
    tree = Path("/tmp") / f"mlhost-sanity-{os.getuid()}"
    target = tree / "ansible_collections" / "mlhost" / "limits"
    shutil.rmtree(tree, ignore_errors=True)
    if COLLECTION.is_dir():
        shutil.copytree(COLLECTION, target)
    # ansible-test downloads a script that installs pip; the standard library can do so as well.
    cache = Path.home() / ".ansible" / "test" / "cache"
    script = cache / f"get_pip_{find_pip_version().replace('.', '_')}.py"
    if not script.exists():
        cache.mkdir(parents=True, exist_ok=True)
        script.write_text(GET_PIP)
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    words = ["ansible-test", "sanity", "--local", "--python", python, "--color", "no"]
    return Step("ansible-test sanity", words, target)


def find_pip_version() -> str:
    """Return the version of pip that this ansible-test asks for."""
    found = find_spec("ansible_test")
    folder = Path(found.origin or "").parent if found else Path()
    text = (folder / "_internal" / "python_requirements.py").read_text()
    match = re.search(r"pip=['\"]([0-9.]+)['\"]", text)
    if match is None:
        raise LookupError("this ansible-test does not say which pip it wants")
    return match[1]


def find_tests(place: str, kind: str) -> list[str]:
    """Return the files of tests of one place, or of all: ``oracle``, ``on_host`` or ``""``."""
    paths = (TOP / "tests" / "places").glob(f"{place or '*'}/test_*.py")
    names = sorted(str(path.relative_to(TOP)) for path in paths)
    return [name for name in names if find_kind(name) == kind]


def find_kind(name: str) -> str:
    """Tell what a file of tests needs, which its name says."""
    return next((kind for kind in ("oracle", "on_host") if name.endswith(f"_{kind}.py")), "")


def unit_steps(place: str = "") -> list[Step]:
    if place:
        return _pytest("unit tests", find_tests(place, "")) + _pytest(
            "oracle", find_tests(place, "oracle"), "-s"
        )
    files = find_tests("", "")
    verbs = sorted(str(path.relative_to(TOP)) for path in (TOP / "tests/verbs").glob("test_*.py"))
    return [
        Step("unit tests", ["pytest", "tests/library", "tests/project", *files]),
        Step("verbs", ["pytest", *(name for name in verbs if not find_kind(name))]),
        *_pytest("oracle", find_tests("", "oracle"), "-s"),
        Step("wheel", ["pytest", "tests/wheel"]),
        Step("page", ["pytest", "tests/page"]),
        Step("plays", ["pytest", "tests/play"]),
        Step("fuzz", ["pytest", "tests/fuzz"]),
        Step("prometheus", ["pytest", "tests/prometheus"]),
        Step("torture", ["pytest", "tests/torture", "-s"]),
        Step("seeds", ["pytest", "tests/seeds"]),
    ]


def _pytest(name: str, files: list[str], *options: str) -> list[Step]:
    return [Step(name, ["pytest", *options, *files])] if files else []


def image_step() -> Step:
    """Make the test hosts beside what needs none of them."""
    build = "python -m tests.host build --release"
    return Step("test hosts", ["sh", "-ec", "".join(f"{build} {one}\n" for one in HOSTS)])


def host_steps(place: str = "") -> list[Step]:
    if place:
        return _pytest("test host", find_tests(place, "on_host"), "-s")
    logins = find_tests("sessions", "on_host")
    verbs = sorted(str(one.relative_to(TOP)) for one in TOP.glob("tests/verbs/*_on_host.py"))
    others = [name for name in find_tests("", "on_host") if name not in logins]
    return [
        Step("test host", ["pytest", "-s", "tests/host", *verbs, *others]),
        Step("logins", ["pytest", "-s", *logins]),
        Step("faults", ["pytest", "tests/faults"]),
        Step("hostile", ["pytest", "tests/hostile", "-s"]),
        Step("commands of docs", ["pytest", "tests/docs", "-s"]),
    ]


def molecule_steps(place: str = "") -> list[Step]:
    # The longest first: at the end one lane has nothing to do beside the other.
    scenarios = ("monitor", "default", "services", "workspace", "slurm", "podman", "image")
    chosen = [one for one in scenarios if one == place] if place else scenarios
    return [Step(f"molecule {one}", ["molecule", "test", "--scenario-name", one]) for one in chosen]


STAGES = {
    "unit": unit_steps,
    "lint": lint_steps,
    "host": host_steps,
    "molecule": molecule_steps,
}
PLACES = sorted(path.name for path in (TOP / "tests/places").iterdir() if path.is_dir())
HOSTS = ("bookworm", "bookworm+slurm", "bookworm+podman", "bookworm+hostile", "bookworm+selinux")
LANES = 2
"""A guest keeps one core busy, and so do most of the others."""

MINUTES = 45
"""Who waits longer for the whole does something else, and forgets what was changed."""


class Result(NamedTuple):
    """How a step ended, after how many seconds."""

    name: str
    passed: bool
    seconds: float


def run_step(step: Step, failed: threading.Event | None = None) -> Result:
    """Run one command with its output in a log; print the result and, if it failed, the log.

    :param failed: Set by the first step that fails; good news is not told from then on.
    """
    failed = failed or threading.Event()
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"{step.name.replace(' ', '-')}.log"
    start = time.monotonic()
    with log.open("wb") as output:
        done = subprocess.run(
            step.words,
            cwd=step.folder,
            env={**os.environ, **step.environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    result = Result(step.name, done.returncode == 0, time.monotonic() - start)
    text = log.read_text(errors="replace")
    lines = [f"{step.name:<22}{'ok  ' if result.passed else 'FAIL'} {result.seconds:5.0f} s"]
    lines[0] = f"{lines[0]}  {summarize(text)}".rstrip()
    if not result.passed:
        failed.set()
        lines += text.splitlines()[-_LOG_LINES:]
    if not (result.passed and failed.is_set()):
        print("\n".join(lines), flush=True)
    return result


def summarize(text: str) -> str:
    """Return the figures that a tool closes with, for the one line it gets here."""
    lines = [line.strip(" =") for line in text.splitlines()]
    counts = [line for line in lines if re.search(r"\d+ (passed|cases|fault_points)", line)]
    return "; ".join(line[:70] for line in counts[-2:])


def list_steps(stages: Sequence[str], place: str = "") -> list[Step]:
    """Return the steps of some stages in their order; the test hosts are made beside the first."""
    if place:
        return [step for steps in (unit_steps, host_steps, molecule_steps) for step in steps(place)]
    steps = [step for name in stages for step in STAGES[name]()]
    return [image_step(), *steps] if {"host", "molecule"} & set(stages) else steps


def run_steps(steps: Sequence[Step]) -> list[Result]:
    failed = threading.Event()
    with ThreadPoolExecutor(LANES) as pool:
        return list(pool.map(lambda step: run_step(step, failed), steps))


def main(words: list[str]) -> int:
    """Run the stages, all by default; the last line has the form that machines look for."""
    parser = argparse.ArgumentParser(prog="python -m tests.run", description=__doc__)
    parser.add_argument("stages", nargs="*", metavar="STAGE", help=", ".join(STAGES))
    parser.add_argument("--place", choices=PLACES, default="", help="only what concerns one place")
    parser.add_argument(
        "--minutes", type=int, default=MINUTES, help="fail if the whole takes longer (%(default)s)"
    )
    given = parser.parse_args(words)
    unknown = [name for name in given.stages if name not in STAGES]
    if unknown:
        parser.error(f"no stage {', '.join(unknown)}; accepted are {', '.join(STAGES)}")
    start = time.monotonic()
    done = run_steps(list_steps(given.stages or list(STAGES), given.place))
    whole = not given.stages and not given.place
    late = describe_lateness(time.monotonic() - start, given.minutes) if whole else ""
    slowest = sorted(done, key=lambda one: one.seconds, reverse=True)[:_SLOWEST]
    print("slowest: " + ", ".join(f"{one.name} {one.seconds:.0f} s" for one in slowest))
    failed = sum(not one.passed for one in done)
    if late:
        print(late)
    print(f"{len(done) - failed} passed, {failed} failed")
    return 1 if failed or late else 0


def describe_lateness(seconds: float, minutes: int) -> str:
    """Return what is said of a whole that took too long, or nothing."""
    if seconds <= 60 * minutes:
        return ""
    spent = f"the whole took {seconds / 60:.0f} minutes, and may take {minutes}"
    return f"{spent}: a step above has to become faster (a slow machine: make test MINUTES=90)"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
