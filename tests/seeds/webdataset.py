# SPDX-License-Identifier: GPL-3.0-or-later
"""A cache of shards that another job clears, that is missing or closed, or has too few shards."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

from .environments import run_with
from .product import check, follow
from .settings import without
from .trial import BUILD, Command, Trial

WORK = BUILD / "work" / "webdataset"
CACHE = WORK / "cache"
SAMPLES = 10
ALONE = "webdataset-alone"
"""The environment without torch."""
NOBODY = 65534
JOB, OTHER = 4711, 4712
SLURM = {"SLURM_JOB_ID": str(JOB)}


def share_a_cache() -> Trial:
    """Use one directory in two jobs of a node, of which one ends first."""
    own, others = CACHE / str(JOB), CACHE / str(OTHER)
    return Trial(
        name="a cache that two jobs share; one of its own for each",
        dies_of=r"FileNotFoundError: .*No such file or directory: .*\.tar\.lock",
        foretold="used by every job, required one job",
        prepare=lambda: write_shards(2, cache=True),
        run=read_by_wids(CACHE, CACHE),
        check=judge(CACHE)._replace(environment={**judge(CACHE).environment, **SLURM}),
        fix=lambda: make(own),
        run_after=read_by_wids(own, others),
        check_after=judge(own)._replace(environment={**judge(own).environment, **SLURM}),
    )


def miss_the_cache(environment: str = "webdataset") -> Trial:
    """Name a directory that nobody has made."""
    judged = judge(CACHE, workers=count_workers(environment))
    return Trial(
        name="no cache directory; made",
        dies_of=r"ValueError: cache directory \S+ does not exist",
        foretold="directory absent, required writable",
        prepare=lambda: write_shards(2),
        run=read(environment),
        check=judged,
        fix=lambda: follow(judged),
    )


def be_locked_out(environment: str = "webdataset") -> Trial:
    """Start as a user who may not write to the cache."""
    own, number = WORK / "own", count_workers(environment)
    user = without("dac_override", "dac_read_search")

    def close() -> str:
        made = write_shards(2, cache=True)
        os.chown(CACHE, NOBODY, NOBODY)
        CACHE.chmod(0o755)
        return made

    return Trial(
        name="a cache of another user; a directory of one's own",
        dies_of=r"PermissionError: \[Errno 13\]",
        foretold=r"directory not writable, \[Errno 13\]",
        prepare=close,
        run=read(environment).within(*user),
        check=judge(CACHE, workers=number).within(*user),
        fix=lambda: make(own),
        run_after=read(environment, cache=own).within(*user),
        check_after=judge(own, workers=number).within(*user),
    )


def have_few_shards() -> Trial:
    """Start more workers than there are shards."""
    return Trial(
        name="2 workers for 1 shard; 1 worker",
        dies_of=r"ValueError: No samples found in dataset; perhaps you have fewer shards than",
        foretold=r"shards 1, required 2",
        prepare=lambda: write_shards(1, cache=True),
        run=read("webdataset"),
        check=judge(CACHE, shards=1),
        run_after=read("webdataset", workers=1),
        check_after=judge(CACHE, shards=1, workers=1),
    )


def judge(cache: Path, shards: int = 2, workers: int = 2) -> Command:
    words = ("--workers", workers, "--shards", shards, "--cache-dir", cache)
    return check("webdataset", *words)


def read(environment: str, workers: int | None = None, cache: Path = CACHE) -> Command:
    number = count_workers(environment) if workers is None else workers
    words = (WORK / "shards", "--cache", cache, "--workers", number)
    return run_with(environment, "read_cached.py", *words)


def count_workers(environment: str) -> int:
    """Return how many workers a run has; without torch it reads by itself."""
    return 0 if environment == ALONE else 2


def read_by_wids(cache: Path, others: Path) -> Command:
    words = (WORK / "shards", "--cache", cache, "--others-cache", others, "--samples", SAMPLES)
    return run_with("wids", "read_cached_wids.py", *words)


def make(folder: Path) -> list[str]:
    folder.mkdir(parents=True)
    return [f"install -d {folder}"]


def write_shards(count: int, cache: bool = False) -> str:
    """Begin anew: write shards and, where it is asked for, make the cache."""
    shutil.rmtree(WORK, ignore_errors=True)
    (WORK / "shards").mkdir(parents=True)
    if cache:
        CACHE.mkdir()
    for number in range(count):
        with tarfile.open(WORK / "shards" / f"{number:06}.tar", "w") as shard:
            for sample in range(SAMPLES):
                file = tarfile.TarInfo(f"{number:03}{sample:03}.txt")
                file.size = 6
                shard.addfile(file, io.BytesIO(b"sample"))
    return f"{count} shards of {SAMPLES} samples"


TRIALS: tuple[Callable[[], Trial], ...] = (
    share_a_cache,
    miss_the_cache,
    be_locked_out,
    have_few_shards,
)
