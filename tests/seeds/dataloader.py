# SPDX-License-Identifier: GPL-3.0-or-later
"""``Too many open files``: a loader that passes every tensor as a descriptor."""

from __future__ import annotations

from .environments import run_with
from .product import check, describe
from .settings import shared_memory, soft_limit
from .trial import Command, Trial

LIMIT = 160
RUN = {"workers": 2, "prefetch": 8, "tensors_per_batch": 16}
FEWER = {**RUN, "workers": 1}
BIG = {"workers": 2, "prefetch": 8, "tensors_per_batch": 4, "batch_size": 2**20}


def lack_descriptors() -> Trial:
    """Start the run with a soft limit that is too low, then raise it."""
    low, high = soft_limit("n", LIMIT), soft_limit("n", '"$(ulimit -Hn)"')
    return Trial(
        name=f"soft nofile {LIMIT}; raised to the hard limit",
        dies_of=r"Too many open files|HUNG",
        foretold=rf"nofile soft {LIMIT}, required 1\d\d",
        run=load(RUN).within(*low),
        check=judge(RUN).within(*low),
        run_after=load(RUN).within(*high),
        check_after=judge(RUN).within(*high),
    )


def start_fewer() -> Trial:
    """Leave the limit, and start as many workers as the check says."""
    low = soft_limit("n", LIMIT)
    return Trial(
        name=f"soft nofile {LIMIT}; as many workers as fit",
        dies_of=r"Too many open files|HUNG",
        foretold=r"workers 1, required 2",
        run=load(RUN).within(*low),
        check=judge(RUN).within(*low),
        run_after=load(FEWER).within(*low),
        check_after=judge(FEWER).within(*low),
    )


def lack_shared_memory() -> Trial:
    """Start the run with a /dev/shm that batches under way do not fit into."""
    small, large = shared_memory("16m"), shared_memory("64m")
    return Trial(
        name="/dev/shm of 16 MiB; of 64 MiB",
        dies_of=r"No space left on device|Bus error",
        foretold=r"path:/dev/shm: free 16MiB, required 19MiB",
        run=train_slowly(BIG).within(*small),
        check=judge(BIG).within(*small),
        run_after=train_slowly(BIG).within(*large),
        check_after=judge(BIG).within(*large),
        patience=60,  # A loader whose worker found no room waits for it for ever.
    )


def judge(run: dict[str, int]) -> Command:
    return check("dataloader", *describe({**run, "epochs": 1}))


def load(run: dict[str, int]) -> Command:
    """Return a run of the real DataLoader."""
    words = [
        *("--workers", run["workers"], "--prefetch", run["prefetch"]),
        *("--tensors", run["tensors_per_batch"], "--hold", run.get("hold", 0)),
        *("--batch-size", run.get("batch_size", 4096)),
    ]
    return run_with("torch", "load_batches.py", *words)


def train_slowly(run: dict[str, int]) -> Command:
    """Return a run whose workers are always done before the training is."""
    command = load(run)
    return command._replace(words=(*command.words, "--slow", "0", "--step", "0.5"))


TRIALS = (lack_descriptors, start_fewer, lack_shared_memory)
