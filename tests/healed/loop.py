# SPDX-License-Identifier: GPL-3.0-or-later
"""On a guest: a DataLoader loop that takes 95 % of a limit, waits until somebody has looked, goes on.

``loop.py KIND VARIANT``: ``KIND.ready`` in the directory has its pid once it is near, ``KIND.go``
lets it go on, and ``KIND.end`` has ``whole`` once it holds a third more than the limit was, or why
it died.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

FOLDER = Path("/var/tmp/loop")
TENSORS, NEAR, BEYOND = 8, 0.95, 1.33
SAMPLES = 10**6
RESERVED = os.open("/dev/null", os.O_RDONLY)
"""What the last words of a run without a descriptor are written with."""


def make_sample(size: int) -> list[torch.Tensor]:
    return [torch.ones(size, dtype=torch.uint8) for _tensor in range(TENSORS)]


class Mapped(Dataset):  # type: ignore[misc]
    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> list[torch.Tensor]:
        return make_sample(self.size)


class Streamed(IterableDataset):  # type: ignore[misc]
    def __init__(self, size: int) -> None:
        self.size = size

    def __iter__(self) -> Iterator[list[torch.Tensor]]:
        return (make_sample(self.size) for _number in range(SAMPLES))


def load(variant: str, workers: int, size: int) -> Iterator[object]:
    kind = Streamed if variant == "iterable" else Mapped
    more: dict[str, dict[str, Any]] = {
        "persistent": {"persistent_workers": True},
        "prefetch": {"prefetch_factor": 4},
    }
    return iter(
        DataLoader(kind(size), None, num_workers=workers, timeout=120, **more.get(variant, {}))
    )


def feed(kind: str, variant: str) -> Iterator[object]:
    """Yield what a run holds: batches of one loader, or loaders of one worker each."""
    if kind not in ("nproc", "tasks"):
        yield from load(variant, 2, 2**13 if kind == "shm" else 8)
    while True:
        loader = load(variant, 1, 8)
        yield loader, next(loader)


def count_tasks() -> int:
    """Return the tasks of this process's user, as the kernel counts them for RLIMIT_NPROC."""
    found = 0
    for one in Path("/proc").iterdir():
        if one.name.isdigit():
            try:
                found += len(os.listdir(one / "task")) if one.stat().st_uid == os.getuid() else 0
            except FileNotFoundError:
                continue
    return found


def find_group() -> Path:
    return Path(f"/sys/fs/cgroup{Path('/proc/self/cgroup').read_text().strip()[3:]}")


def fill_of_shm() -> int:
    found = os.statvfs("/dev/shm")
    return (found.f_blocks - found.f_bfree) * found.f_frsize


LOOKS: dict[str, tuple[Callable[[], int], Callable[[], int]]] = {
    "nofile": (
        lambda: len(os.listdir("/proc/self/fd")),
        lambda: resource.getrlimit(resource.RLIMIT_NOFILE)[0],
    ),
    "nproc": (count_tasks, lambda: resource.getrlimit(resource.RLIMIT_NPROC)[0]),
    "mappings": (
        lambda: Path("/proc/self/maps").read_text().count("\n"),
        lambda: int(Path("/proc/sys/vm/max_map_count").read_text()),
    ),
    "tasks": (
        lambda: int((find_group() / "pids.current").read_text()),
        lambda: int((find_group() / "pids.max").read_text()),
    ),
    "shm": (fill_of_shm, lambda: os.statvfs("/dev/shm").f_blocks * 4096),
}
"""For each kind, how much is taken now, and the limit."""


def main(kind: str, variant: str) -> str:
    strategy = "file_system" if kind in ("mappings", "shm") else "file_descriptor"
    torch.multiprocessing.set_sharing_strategy(strategy)
    take, limit = LOOKS[kind]
    first, held, told = limit(), [], False
    try:
        for one in feed(kind, variant):
            held.append(one)
            taken = take()
            if not told and taken >= NEAR * first:
                (FOLDER / f"{kind}.ready").write_text(f"{os.getpid()} {taken} {first}")
                told = True
                while not (FOLDER / f"{kind}.go").exists():
                    time.sleep(0.1)
            if taken > BEYOND * first:
                return "whole"
    except (OSError, RuntimeError, BlockingIOError) as error:
        return f"died: {type(error).__name__}: {str(error)[:200]}"
    return "died: no more samples"


if __name__ == "__main__":
    end = main(*sys.argv[1:])
    os.close(RESERVED)
    (FOLDER / f"{sys.argv[1]}.end").write_text(end)
    os._exit(end != "whole")
