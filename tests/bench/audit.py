# SPDX-License-Identifier: GPL-3.0-or-later
"""Take what the page of a simulated fleet costs, and a filter of it in a real browser."""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from plugins.module_utils.fleet import HostResult

FLEETS = (1000, 10000)
_ROUNDS = 5
_TYPED = ("9", "gpu0", "vendor", "95-vendor.conf:3", "")
_FILTER = """(words) => {
  document.getElementById("tab-hosts").click();
  const field = document.getElementById("text");
  return words.map((word) => {
    field.value = word;
    const begin = performance.now();
    field.dispatchEvent(new Event("input", { bubbles: true }));
    document.body.getBoundingClientRect();
    return performance.now() - begin;
  });
}"""


def measure_audit(rounds: int = _ROUNDS) -> dict[str, float]:
    """Return processor seconds, peak memory and size of the reports, and the slowest filter's ms."""
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for hosts in FLEETS:
            runs = [report(hosts, Path(folder)) for _round in range(rounds)]
            for name in runs[0]:
                median = statistics.median(run[name] for run in runs)
                figures[f"audit_{hosts}_{name}"] = median
        figures["audit_filter_ms"] = _measure_filter(Path(folder) / f"page{FLEETS[0]}.html", rounds)
    return figures


def report(hosts: int, folder: Path) -> dict[str, float]:
    """Write the page of a fleet in a process of its own and return what that took."""
    words = [sys.executable, "-m", "tests.bench.audit", "--write", str(hosts), str(folder)]
    figures: dict[str, float] = json.loads(subprocess.check_output(words))
    return figures


def write(hosts: int, folder: Path) -> dict[str, float]:
    """Write the page of hosts that are made up as they are asked for, which is not timed."""
    from tests.page.browser import list_hosts, write_page

    results = iter(list_hosts(hosts))
    spent = [0.0]

    def untimed() -> Iterator[HostResult]:
        while True:
            begin = time.process_time()
            host = next(results, None)
            spent[0] += time.process_time() - begin
            if host is None:
                return
            yield host

    begin = time.process_time()
    path = write_page(untimed(), folder, f"page{hosts}")
    seconds = time.process_time() - begin - spent[0]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"cpu_s": seconds, "peak_mb": peak, "page_mb": path.stat().st_size / 1e6}


def _measure_filter(path: Path, rounds: int) -> float:
    """Return the median over rounds of the slowest of several words typed into the filter."""
    from tests.page.browser import open_browser, open_page

    with open_browser() as browser:
        page, _told = open_page(browser, path, viewport={"width": 1240, "height": 760})
        slowest = [max(page.evaluate(_FILTER, list(_TYPED))) for _round in range(rounds)]
        return float(statistics.median(slowest))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", nargs=2)
    given = parser.parse_args()
    if given.write:
        print(json.dumps(write(int(given.write[0]), Path(given.write[1]))))
    else:
        for name, figure in measure_audit().items():
            print(f"{name:24}{figure:10.2f}")
