# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure what a watcher takes beside many processes: of a core, and of memory at most."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench.crowd import CROWD

PROCESSES = 300


def measure_overhead(program: Path, seconds: float) -> dict[str, float]:
    """Return the figures of a run of that many processes, and of one beside as many."""
    with _crowd() as crowd:
        of_run = _measure([str(program), "watch", "--", crowd, str(PROCESSES)], seconds)
        with _beside(crowd):
            alone = _measure([str(program), "watch", "--", "sleep", str(seconds + 30)], seconds)
    return {
        "seconds": seconds,
        "processes": PROCESSES,
        "of_run_percent_of_core": of_run[0],
        "of_run_peak_mb": of_run[1],
        "beside_percent_of_core": alone[0],
        "beside_peak_mb": alone[1],
    }


def measure_host(program: Path, seconds: float) -> dict[str, float]:
    """Return the figures of the black box of a host beside that many processes."""
    with _crowd() as crowd, _beside(crowd):
        share, peak = _measure([str(program), "watch", "--host"], seconds, _SETTLED)
    return {
        "seconds": seconds,
        "processes": PROCESSES,
        "percent_of_core": share,
        "peak_mb": peak,
    }


@contextmanager
def _crowd() -> Iterator[str]:
    """Give the program whose processes do nothing."""
    with tempfile.TemporaryDirectory() as folder:
        crowd = f"{folder}/python3"
        subprocess.run(["gcc", "-O2", "-static", "-o", crowd, str(CROWD)], check=True)
        yield crowd


@contextmanager
def _beside(crowd: str) -> Iterator[None]:
    """Have that many processes there."""
    with subprocess.Popen(
        [crowd, str(PROCESSES)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as beside:
        assert beside.stdin
        assert beside.stdout
        beside.stdout.readline()
        yield
        beside.stdin.close()


_SETTLED = 30.0
"""Seconds after which what looks has spent the credit that it begins with."""


def _measure(words: list[str], seconds: float, settled: float = 3.0) -> tuple[float, float]:
    """Return the share of a core, in percent, and the most memory, in MB, of a watcher.

    Its start is not counted: it takes as long for a run of a minute as for one of a month.
    """
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin
        time.sleep(settled)
        before, began = _read_ticks(child.pid), time.monotonic()
        time.sleep(seconds)
        spent = (_read_ticks(child.pid) - before) / os.sysconf("SC_CLK_TCK")
        share = 100 * spent / (time.monotonic() - began)
        status = Path(f"/proc/{child.pid}/status").read_text()
        found = re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)
        child.stdin.close()
        child.terminate()
    return round(share, 3), round(int(found[1]) * 1024 / 1e6, 1) if found else 0.0


def _read_ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
