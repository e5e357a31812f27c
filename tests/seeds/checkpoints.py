# SPDX-License-Identifier: GPL-3.0-or-later
"""Checkpoints that cannot be renamed into place, vanish, or cannot be resumed from."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from .environments import run_with
from .product import check, follow
from .trial import BUILD, CannotShowError, Command, Trial, execute

WORK = BUILD / "work"
OUTPUT, ANOTHER, MEETING = WORK / "checkpoints", WORK / "checkpoints-2", WORK / "meeting"


def start_twice() -> Trial:
    """Start a job twice: the one that is done later renames onto the checkpoint of the other."""
    judge, other = (check("transformers", "--output-dir", path) for path in (OUTPUT, ANOTHER))
    return Trial(
        name="another run in the output directory; a directory of its own",
        dies_of=r"Errno 39\] Directory not empty: .*tmp-checkpoint-2.* -> .*checkpoint-2",
        foretold=r"other runs pid \d+, required none",
        prepare=start_another,
        run=train("4.37", "--meet", MEETING, "--gather", 6),
        check=judge,
        fix=move_out,
        run_after=train("4.37", output=ANOTHER),
        check_after=other,
    )


def keep_the_stale_one() -> Trial:
    """Limit how many checkpoints are kept, beside one with a higher number."""
    judge = check("transformers", "--output-dir", OUTPUT, "--save-total-limit", 1, "--resume", "no")
    return Trial(
        name="save_total_limit 1 beside a stale checkpoint-900; moved aside",
        dies_of=r"checkpoint-4 is gone",
        foretold=r"checkpoint-stale",
        prepare=finish("4.49", 900),
        check=judge,
        run=train("4.49", "--save-total-limit", "1"),
        fix=lambda: follow(judge),
    )


def resume_from_half_a_model() -> Trial:
    """Go on from a checkpoint that was cut short."""
    judge = check("transformers", "--output-dir", OUTPUT)
    return Trial(
        name="the newest checkpoint holds half a model; moved aside",
        dies_of=r"SafetensorError|Error while deserializing|not fully covered",
        foretold=r"checkpoint-broken",
        prepare=cut("5", "model.safetensors"),
        check=judge,
        run=train("5", "--resume", "--steps", "6"),
        fix=lambda: follow(judge),
    )


def resume_from_leftovers() -> Trial:
    """Go on where the newest checkpoint holds nothing but a hidden file."""
    judge = check("transformers", "--output-dir", OUTPUT)
    return Trial(
        name="one hidden file in the newest checkpoint; moved aside",
        dies_of=r"Can't find a valid checkpoint at \S+checkpoint-6",
        foretold=r"holds nothing but hidden files \(\.nfs0",
        prepare=hide("5"),
        check=judge,
        run=train("5", "--resume", "--steps", "6"),
        fix=lambda: follow(judge),
    )


def train(version: str, *words: object, output: Path = OUTPUT) -> Command:
    return run_with(f"transformers-{version}", "train.py", output, *words)


def start_another() -> str:
    """Start a run and wait until it waits for the other one."""
    for folder in (OUTPUT, ANOTHER, MEETING):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    words = train("4.37", "--meet", MEETING, "--gather", 3).words
    log = (WORK / "another.log").open("w")
    run = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    while run.poll() is None and not any(MEETING.iterdir()):
        time.sleep(0.1)
    if run.poll() is not None:
        raise CannotShowError(f"the other run ended: {Path(log.name).read_text()[-2000:]}")
    return f"{' '.join(words)} &"


def move_out() -> list[str]:
    return [f"--output-dir {ANOTHER}"]


def finish(version: str, steps: int = 4) -> Callable[[], str]:
    """Return what makes checkpoints with the same library; the last has the number of *steps*."""

    def prepare() -> str:
        shutil.rmtree(OUTPUT, ignore_errors=True)
        OUTPUT.mkdir(parents=True)
        done = execute(train(version))
        if done.status:
            raise CannotShowError(f"no checkpoint can be made: {done.output[-2000:]}")
        last = OUTPUT / "checkpoint-4"
        if steps != 4:
            last.rename(OUTPUT / f"checkpoint-{steps}")
            shutil.rmtree(OUTPUT / "checkpoint-2")
        return f"checkpoint-{steps} of an earlier run is left"

    return prepare


def hide(version: str) -> Callable[[], str]:
    """Return what leaves a file that a network file system keeps while somebody has it open."""

    def prepare() -> str:
        finish(version)()
        folder = OUTPUT / "checkpoint-6"
        folder.mkdir()
        (folder / ".nfs0000000000000001").write_text("")
        return "checkpoint-6/.nfs0000000000000001 is left"

    return prepare


def cut(version: str, name: str) -> Callable[[], str]:
    """Return what ends an earlier run in the middle of its last file, as a full disk does."""

    def prepare() -> str:
        finish(version)()
        file = OUTPUT / "checkpoint-4" / name
        size = file.stat().st_size // 2
        with file.open("r+b") as opened:
            opened.truncate(size)
        return f"checkpoint-4/{name} ends after {size} bytes"

    return prepare


TRIALS = (start_twice, keep_the_stale_one, resume_from_half_a_model, resume_from_leftovers)
