# SPDX-License-Identifier: GPL-3.0-or-later
"""Draw how cost grows with hosts, processes and requirements: docs/images/growth.png and .csv."""

from __future__ import annotations

import csv
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import matplotlib

from .audit import report
from .crowd import LIBRARY, measure_crowd

matplotlib.use("Agg")
from matplotlib import pyplot

IMAGES = Path(__file__).parents[2] / "docs" / "images"
_ROUNDS = 5
_PATTERNS = ("kernel/*", "fs/*", "vm/*", "net/core/*", "net/ipv4/*", "net/ipv[46]/conf/*/*")


def main() -> None:
    """Measure each, draw all three, and keep the data beside the picture."""
    sides: dict[str, tuple[tuple[int, ...], Callable[[int], float]]] = {
        "hosts of a report": ((100, 300, 1000, 3000, 10000), _cost_of_hosts),
        "processes of a check": ((100, 1000, 3000, 7000, 10000), _cost_of_processes),
        "requirements of a check": ((1, 50, 100, 200, 400), _cost_of_requirements),
    }
    rows: list[tuple[str, int, float]] = []
    for name, (sizes, cost) in sides.items():
        for size in sizes:
            seconds = statistics.median(cost(size) for _round in range(_ROUNDS))
            rows.append((name, size, round(seconds, 4)))
            print(*rows[-1])
    _draw(rows, list(sides))
    with (IMAGES / "growth.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([("what", "count", "cpu_seconds"), *rows])


def _draw(rows: list[tuple[str, int, float]], names: list[str]) -> None:
    figure, axes = pyplot.subplots(1, len(names), figsize=(12, 3.6))
    for axis, name in zip(axes, names, strict=True):
        points = [(count, seconds) for what, count, seconds in rows if what == name]
        counts, costs = zip(*points, strict=True)
        axis.plot(counts, costs, "o-", color="#0550ae")
        axis.set_xlabel(name)
        axis.set_ylabel("processor seconds")
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(IMAGES / "growth.png", dpi=110)


def _cost_of_hosts(hosts: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        return report(hosts, Path(folder))["cpu_s"]


def _cost_of_processes(count: int) -> float:
    return measure_crowd(count)["crowd_check_cpu_s"]


def _cost_of_requirements(count: int) -> float:
    """Return what a check of so many values of the kernel takes, Python's start included."""
    keys = _find_keys()[:count]
    if len(keys) < count:
        raise RuntimeError(f"this kernel shows {len(keys)} numbers, {count} are needed")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        (path / "mlhost_limits").symlink_to(LIBRARY)
        (path / "policy.json").write_text(json.dumps({"kernel": dict.fromkeys(keys, 0)}))
        words = ["check", "--profile", "none", "--policy", str(path / "policy.json")]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "mlhost_limits.cli", *words]
        environment = {**os.environ, "PYTHONPATH": folder}
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _find_keys() -> list[str]:
    """Return the names of values of the kernel that are one number."""
    top = Path("/proc/sys")
    found = []
    for path in sorted(path for pattern in _PATTERNS for path in top.glob(pattern)):
        try:
            if path.is_file() and path.read_text().strip().isdigit():
                found.append(str(path.relative_to(top)).replace("/", "."))
        except OSError:
            continue
    return found


if __name__ == "__main__":
    main()
