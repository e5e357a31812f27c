# SPDX-License-Identifier: GPL-3.0-or-later
"""A cache of embeddings that several ranks write: half a file is left when one of them is killed."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

from .environments import run_with
from .product import check, follow
from .trial import BUILD, CannotShowError, Command, Trial, execute

CACHE = BUILD / "work" / "embeddings"
BROKEN = "PytorchStreamReader failed"
LARGE = 2**26


def read_half_a_file() -> Trial:
    """Load a cache in which a writer was killed."""
    judge = check("simpletuner", "--cache-dir", CACHE)
    return Trial(
        name="half a file of a writer that was killed; moved aside, and renamed into place",
        dies_of=rf"{BROKEN}.* failed finding central directory",
        foretold=r"damaged files 1, .* sample-0\.pt has no central directory",
        prepare=corrupt,
        check=judge,
        run=embed("--rename"),
        fix=lambda: follow(judge),
    )


def embed(*words: str) -> Command:
    return run_with("torch", "cache_embeddings.py", CACHE, *words)


def corrupt() -> str:
    """Let eight ranks write without locks until one reads half a file, then kill a writer."""
    empty()
    for _attempt in range(10):
        done = execute(embed())
        if done.status and BROKEN in done.output:
            break
        empty()
    else:
        raise CannotShowError("eight ranks without locks never read half a file")
    empty()
    if not kill_a_writer():
        raise CannotShowError("no writer was killed in the middle of its file")
    return f"8 ranks without locks:\n{done.output}"


def empty() -> None:
    shutil.rmtree(CACHE, ignore_errors=True)
    CACHE.mkdir(parents=True)


def kill_a_writer() -> bool:
    """Kill a rank as soon as its file has begun to grow."""
    file = CACHE / "sample-0.pt"
    words = embed("--ranks", "1", "--samples", "1", "--size", str(LARGE)).words
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, start_new_session=True) as writer:
        while writer.poll() is None and not has_begun(file):
            time.sleep(0.001)
        subprocess.run(["kill", "-9", "--", f"-{writer.pid}"], check=False)
    return has_begun(file) and file.stat().st_size < 4 * LARGE


def has_begun(file: Path) -> bool:
    return file.exists() and file.stat().st_size > 2**20


TRIALS = (read_half_a_file,)
