# SPDX-License-Identifier: GPL-3.0-or-later
"""The largest number of workers that is planned, run with the real DataLoader, and one more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from .dataloader import load
from .product import judge_workers
from .settings import soft_limit
from .trial import execute

GRID = (
    # Soft limit, prefetch factor, tensors of a batch, batches held.
    (64, 2, 1, 0),
    (96, 2, 2, 0),
    (128, 2, 4, 0),
    (160, 4, 4, 0),
    (180, 1, 6, 0),
    (200, 2, 3, 4),
    (256, 2, 4, 0),
    (256, 4, 8, 1),
    (300, 3, 5, 2),
    (350, 2, 4, 10),
    (400, 2, 8, 3),
    (512, 4, 8, 0),
    (512, 8, 4, 1),
    (1024, 2, 16, 0),
)


class Point(NamedTuple):
    """One setting: what was planned for it, whether that ran, and whether one more died."""

    soft: int
    prefetch: int
    tensors_per_batch: int
    hold: int
    workers: int
    runs: bool
    one_more_fails: bool


def try_rule() -> dict[str, Any]:
    """Run the whole grid; all must run as planned, and how many die with one more is told."""
    points = list(try_grid())
    return {
        "holds": all(point.runs for point in points),
        "settings": len(points),
        "run_as_planned": sum(point.runs for point in points),
        "fail_with_one_more": sum(point.one_more_fails for point in points),
        "points": [point._asdict() for point in points],
    }


def try_grid() -> Iterator[Point]:
    for soft, prefetch, tensors, hold in GRID:
        run = {"prefetch": prefetch, "tensors_per_batch": tensors, "hold": hold}
        within = soft_limit("n", soft)
        workers = judge_workers(within, run)
        runs, one_more_runs = (
            execute(load({**run, "workers": number}).within(*within)).status == 0
            for number in (workers, workers + 1)
        )
        point = Point(soft, prefetch, tensors, hold, workers, runs, not one_more_runs)
        print(*(f"{name} {value}" for name, value in point._asdict().items()), sep=", ", flush=True)
        yield point
