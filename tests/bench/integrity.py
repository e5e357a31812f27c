# SPDX-License-Identifier: GPL-3.0-or-later
"""Time the cheap look at a cache, and what memory it takes: ``python -m tests.bench.integrity``.

10,000 files of 0.3 MB, or a million small ones: ``--files 1000000 --size 1000 --rounds 1``.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.conftest import load_library
from tests.worlds.archives import make_pt, make_safetensors


def main() -> int:
    """Write the files, look at them until warm, and print the median in seconds."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.integrity", description=__doc__)
    parser.add_argument("folder", nargs="?", help="on which disk")
    for name, default in (("files", 10_000), ("size", 300_000), ("rounds", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    load_library()
    from mlhost_limits.training.cache_read import survey_files

    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        _fill(Path(name), given.files, given.size)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        seconds, spent = [], time.process_time()
        for _number in range(given.rounds + 1):
            started = time.perf_counter()
            survey = survey_files(name)
            seconds.append(time.perf_counter() - started)
        spent = time.process_time() - spent
        assert survey.counts["sound"] == given.files, survey.counts
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = {
        "integrity_s": round(statistics.median(seconds[1:]), 3),
        "integrity_cpu_s": round(spent / (given.rounds + 1), 3),
        "integrity_files": given.files,
        "integrity_peak_kib": peak,
        "integrity_grown_kib": peak - before,
        "cores": len(os.sched_getaffinity(0)),
    }
    print(json.dumps(found))
    return 0


def _fill(folder: Path, files: int, size: int) -> None:
    """Write half of the files as torch.save does, half as safetensors does, in 100 folders."""
    contents = (make_pt((b"\1" * (size - 900),)), make_safetensors((b"\1" * (size - 128),)))
    for number in range(files):
        below = folder / f"{number % 100}"
        below.mkdir(exist_ok=True)
        ending = ("pt", "safetensors")[number // 100 % 2]
        (below / f"{number}.{ending}").write_bytes(contents[number // 100 % 2])


if __name__ == "__main__":
    sys.exit(main())
