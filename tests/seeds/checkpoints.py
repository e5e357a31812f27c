# SPDX-License-Identifier: GPL-3.0-or-later
"""Checkpoints that cannot be renamed into place, vanish, or cannot be resumed from."""

from __future__ import annotations

import shutil
from collections.abc import Callable

from .environments import run_with
from .product import check, follow
from .trial import BUILD, CannotShowError, Command, Trial, execute

OUTPUT = BUILD / "work" / "checkpoints"


def rename_onto_leftovers() -> Trial:
    """Save a checkpoint whose directory is there and not empty."""
    judge = check("checkpoints", "--output-dir", OUTPUT)
    return Trial(
        name="one hidden file in checkpoint-2; moved aside",
        dies_of=r"Errno 39\] Directory not empty: .*tmp-checkpoint-2.* -> .*checkpoint-2",
        foretold=r"checkpoint-2",
        prepare=leave("checkpoint-2/.nfs0000000000000001"),
        check=judge,
        run=train("4.37"),
        fix=lambda: follow(judge),
    )


def keep_the_stale_one() -> Trial:
    """Limit how many checkpoints are kept, beside one with a higher number."""
    judge = check("checkpoints", "--output-dir", OUTPUT, "--save-total-limit", 1)
    return Trial(
        name="save_total_limit 1 beside a stale checkpoint-900; moved aside",
        dies_of=r"checkpoint-4 is gone",
        foretold=r"checkpoint-900",
        prepare=finish("4.49", 900),
        check=judge,
        run=train("4.49", "--save-total-limit", "1"),
        fix=lambda: follow(judge),
    )


def resume_from_half_a_model() -> Trial:
    """Go on from a checkpoint that was cut short."""
    judge = check("checkpoints", "--output-dir", OUTPUT)
    return Trial(
        name="the newest checkpoint holds half a model; moved aside",
        dies_of=r"SafetensorError|Error while deserializing|not fully covered",
        foretold=r"checkpoint-4",
        prepare=cut("5", "model.safetensors"),
        check=judge,
        run=train("5", "--resume", "--steps", "6"),
        fix=lambda: follow(judge),
    )


def train(version: str, *words: str) -> Command:
    return run_with(f"transformers-{version}", "train.py", OUTPUT, *words)


def leave(name: str) -> Callable[[], str]:
    """Return what leaves one file, as a network file system leaves what is still open."""

    def prepare() -> str:
        shutil.rmtree(OUTPUT, ignore_errors=True)
        file = OUTPUT / name
        file.parent.mkdir(parents=True)
        file.write_text("")
        return f"{name} is left"

    return prepare


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


TRIALS = (rename_onto_leftovers, keep_the_stale_one, resume_from_half_a_model)
