# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs that fail as those of the frameworks do, with nothing but the standard library."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time

from .product import check, describe, follow
from .settings import soft_limit
from .trial import BUILD, RUNS, Command, Trial

WORK = BUILD / "work" / "stand-ins"
LIMIT = 160
RUN = {"workers": 2, "prefetch": 8, "tensors_per_batch": 16}
LARGE = 2**28


def start(script: str, *words: object) -> Command:
    return Command((sys.executable, str(RUNS / script), *map(str, words)))


def lack_descriptors() -> Trial:
    """Start a loader with a soft limit that is too low, then raise it."""
    low, high = soft_limit("n", LIMIT), soft_limit("n", '"$(ulimit -Hn)"')
    run, judge = start("pass_descriptors.py", *RUN.values()), check("dataloader", *describe(RUN))
    return Trial(
        name=f"soft nofile {LIMIT}; raised to the hard limit",
        dies_of=r"Errno 24\] Too many open files",
        foretold=rf"nofile soft {LIMIT}, required 1\d\d",
        run=run.within(*low),
        check=judge.within(*low),
        run_after=run.within(*high),
        check_after=judge.within(*high),
    )


def read_half_a_file() -> Trial:
    """Read a cache in which a writer was killed."""
    judge = check("simpletuner", "--cache-dir", WORK)
    return Trial(
        name="half a file of a writer that was killed; moved aside, and renamed into place",
        dies_of=r"BadZipFile: File is not a zip file",
        foretold=r"damaged files 1, .* sample-0\.pt has no central directory",
        prepare=kill_a_writer,
        check=judge,
        run=start("keep_archives.py", WORK, "--rename"),
        fix=lambda: follow(judge),
    )


def kill_a_writer() -> str:
    """Kill a writer as soon as its file has begun to grow."""
    empty()
    file = WORK / "sample-0.pt"
    words = start("keep_archives.py", WORK, "--size", LARGE).words
    with subprocess.Popen(words, stdout=subprocess.DEVNULL) as writer:
        while writer.poll() is None and not (file.exists() and file.stat().st_size > 2**20):
            time.sleep(0.001)
        writer.kill()
    return f"{file.name} ends after {file.stat().st_size} of {LARGE} bytes"


def rename_onto_leftovers() -> Trial:
    """Save where a checkpoint of that name holds a hidden file."""
    judge = check("transformers", "--output-dir", WORK)
    return Trial(
        name="one hidden file in the checkpoint that is to be saved; moved aside",
        dies_of=r"Errno 39\] Directory not empty: .*tmp-checkpoint-100' -> .*checkpoint-100'",
        foretold=r"holds nothing but hidden files \(\.nfs0001\)",
        prepare=hide,
        check=judge,
        run=start("save_checkpoint.py", WORK),
        fix=lambda: follow(judge),
    )


def hide() -> str:
    """Leave a file that a network file system keeps while somebody has it open."""
    empty()
    folder = WORK / "checkpoint-100"
    folder.mkdir()
    (folder / ".nfs0001").write_text("")
    return f"{folder.name}/.nfs0001 is left"


def empty() -> None:
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
