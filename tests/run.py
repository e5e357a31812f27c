# SPDX-License-Identifier: GPL-3.0-or-later
"""Run every test, or the stages named; print one line for each, and the log of what failed."""

from __future__ import annotations

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
        Step(
            "mypy",
            [
                "mypy",
                "plugins/module_utils",
                "tests/host",
                "tests/hostile",
                "tests/docs",
                "tests/verbs",
                "tests/run.py",
                "tests/demo.py",
                "tests/bench",
                "tests/reference",
                "tests/releases",
                "tests/seeds/__main__.py",
            ],
        ),
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


def unit_steps() -> list[Step]:
    coverage = [
        "--cov=mlhost_limits.policy",
        "--cov-branch",
        "--cov-report=term-missing:skip-covered",
    ]
    return [
        Step("unit tests", ["pytest", "tests/unit", *coverage]),
        Step("verbs", ["pytest", "tests/verbs"]),
        Step("oracle", ["pytest", "tests/oracle", "-s"]),
        Step("wheel", ["pytest", "tests/wheel"]),
        Step("page", ["pytest", "tests/page"]),
        Step("fuzz", ["pytest", "tests/fuzz"]),
        Step("prometheus", ["pytest", "tests/prometheus"]),
        Step("torture", ["pytest", "tests/torture", "-s"]),
        Step("seeds", ["pytest", "tests/seeds"]),
    ]


def image_step() -> Step:
    """Make the test hosts beside what needs none of them."""
    build = "python -m tests.host build --release"
    return Step("test hosts", ["sh", "-ec", "".join(f"{build} {one}\n" for one in HOSTS)])


def host_steps() -> list[Step]:
    logins = ["tests/host/test_session_probe.py", "tests/host/test_lockouts.py"]
    others = [f"--ignore={path}" for path in logins]
    return [
        Step("test host", ["pytest", "tests/host", "-s", *others]),
        Step("logins", ["pytest", *logins, "-s"]),
        Step("faults", ["pytest", "tests/faults"]),
        Step("hostile", ["pytest", "tests/hostile", "-s"]),
        Step("commands of docs", ["pytest", "tests/docs", "-s"]),
    ]


def molecule_steps() -> list[Step]:
    return [
        Step("molecule default", ["molecule", "test"]),
        Step("molecule slurm", ["molecule", "test", "--scenario-name", "slurm"]),
        Step("molecule services", ["molecule", "test", "--scenario-name", "services"]),
        Step("molecule workspace", ["molecule", "test", "--scenario-name", "workspace"]),
        Step("molecule podman", ["molecule", "test", "--scenario-name", "podman"]),
        Step("molecule image", ["molecule", "test", "--scenario-name", "image"]),
        Step("molecule monitor", ["molecule", "test", "--scenario-name", "monitor"]),
    ]


STAGES = {
    "unit": unit_steps,
    "lint": lint_steps,
    "host": host_steps,
    "molecule": molecule_steps,
}
HOSTS = ("bookworm", "bookworm+slurm", "bookworm+podman", "bookworm+hostile")
LANES = 2
"""A guest keeps one core busy, and so do most of the others."""


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
    lines[0] = f"{lines[0]}  {summarise(text)}".rstrip()
    if not result.passed:
        failed.set()
        lines += text.splitlines()[-_LOG_LINES:]
    if not (result.passed and failed.is_set()):
        print("\n".join(lines), flush=True)
    return result


def summarise(text: str) -> str:
    """Return the figures that a tool closes with, for the one line it gets here."""
    lines = [line.strip(" =") for line in text.splitlines()]
    counts = [line for line in lines if re.search(r"\d+ (passed|cases|fault_points)", line)]
    return "; ".join(line[:70] for line in counts[-2:])


def list_steps(stages: Sequence[str]) -> list[Step]:
    """Return the steps of some stages in their order; the test hosts are made beside the first."""
    steps = [step for name in stages for step in STAGES[name]()]
    return [image_step(), *steps] if {"host", "molecule"} & set(stages) else steps


def run_steps(steps: Sequence[Step]) -> list[Result]:
    failed = threading.Event()
    with ThreadPoolExecutor(LANES) as pool:
        return list(pool.map(lambda step: run_step(step, failed), steps))


def main(names: list[str]) -> int:
    """Run the stages, all by default; the last line has the form that machines look for."""
    unknown = [name for name in names if name not in STAGES]
    if unknown:
        print(f"no stage {', '.join(unknown)}; accepted are {', '.join(STAGES)}")
        return 2
    done = run_steps(list_steps(names or list(STAGES)))
    slowest = sorted(done, key=lambda one: one.seconds, reverse=True)[:_SLOWEST]
    print("slowest: " + ", ".join(f"{one.name} {one.seconds:.0f} s" for one in slowest))
    failed = sum(not one.passed for one in done)
    print(f"{len(done) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
