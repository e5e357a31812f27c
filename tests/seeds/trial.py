# SPDX-License-Identifier: GPL-3.0-or-later
"""One failure: the check says so, the run dies of it, it is put right, the check is green, it runs.

The check comes before the run each time, as it would on a host.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

TOP = Path(__file__).parents[2]
BUILD = TOP / "build" / "seeds"
RUNS = Path(__file__).parent / "runs"
COLUMNS = ("failed_before", "predicted", "fixed", "passed_after")
PATIENCE = 150
HUNG = 124
"""What timeout(1) ends with: a loader that lacks descriptors may also wait for ever."""


class CannotShowError(Exception):
    """This machine does not let us make the failure, or lacks what it needs; it says what."""


class Command(NamedTuple):
    """Words to run, and what is added to a small environment."""

    words: tuple[str, ...]
    environment: Mapping[str, str] = {}

    def within(self, *words: str) -> Command:
        """Return the same, started by another command that sets something for it."""
        return self._replace(words=(*words, *self.words))


class Done(NamedTuple):
    """What a command ended with, and all that it printed."""

    status: int
    output: str


class Trial(NamedTuple):
    """One way to die. Patterns are sought in what is printed, blanks and line ends being alike.

    ``prepare`` makes the host as it must not be and tells how; ``fix`` puts it right and returns
    what was done.
    Where nothing but the command differs, ``run_after`` and ``check_after`` have other words.
    """

    name: str
    dies_of: str
    foretold: str
    run: Command
    check: Command
    prepare: Callable[[], str] = str
    fix: Callable[[], list[str]] = list
    run_after: Command | None = None
    check_after: Command | None = None
    patience: int = PATIENCE


class Outcome(NamedTuple):
    """What came of a trial; ``printed`` holds every command's output by the step's name."""

    name: str
    failed_before: bool
    predicted: bool
    fixed: bool
    passed_after: bool
    printed: Mapping[str, str]

    @property
    def holds(self) -> bool:
        return all(self.columns.values())

    @property
    def columns(self) -> dict[str, bool]:
        return {name: getattr(self, name) for name in COLUMNS}


def try_trial(trial: Trial) -> Outcome:
    """Go through all steps, whatever comes of each."""
    prepared = trial.prepare()
    warned = execute(trial.check)
    died = execute(trial.run, trial.patience)
    done = trial.fix()
    green = execute(trial.check_after or trial.check)
    ran = execute(trial.run_after or trial.run, trial.patience)
    steps = {"check before": warned, "run before": died, "check after": green, "run after": ran}
    printed = {
        name: f"{step.output.rstrip()}\n(exit {step.status})" for name, step in steps.items()
    }
    return Outcome(
        name=trial.name,
        failed_before=died.status != 0 and is_said(trial.dies_of, died),
        predicted=warned.status == 1 and is_said(trial.foretold, warned),
        fixed=green.status == 0,
        passed_after=ran.status == 0,
        printed={"prepared": prepared, **printed, "fix": "\n".join(done)},
    )


def is_said(pattern: str, done: Done) -> bool:
    """Tell whether a command printed it; a hang is said by its status alone."""
    text = " ".join(done.output.split())
    return bool(re.search(pattern, text)) or (done.status == HUNG and "HUNG" in pattern)


def execute(command: Command, patience: int = PATIENCE) -> Done:
    """Run a command with nothing of ours in its environment, and only three open files."""
    environment = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/nonexistent",
        "LANG": "C.UTF-8",
    }
    BUILD.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["timeout", "--kill-after=5", str(patience), *command.words],
        env={**environment, "OMP_NUM_THREADS": "1", **command.environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=BUILD,
        text=True,
        errors="replace",
        check=False,
    )
    return Done(done.returncode, done.stdout)
