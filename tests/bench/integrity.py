# SPDX-License-Identifier: GPL-3.0-or-later
"""Time the cheap look at a cache of 10,000 files of 0.3 MB: ``python -m tests.bench.integrity``."""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.conftest import load_library
from tests.unit.policy.archives import make_pt, make_safetensors

_FILES, _SIZE, _ROUNDS = 10_000, 300_000, 5


def main() -> int:
    """Write the files, look at them until warm, and print the median in seconds."""
    load_library()
    from mlhost_limits.probe.cache_files import survey_files

    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as name:
        _fill(Path(name))
        survey_files(name)
        seconds = []
        for _number in range(_ROUNDS):
            started = time.perf_counter()
            survey = survey_files(name)
            seconds.append(time.perf_counter() - started)
        assert survey.counts["sound"] == _FILES, survey.counts
    found = {"integrity_s": round(statistics.median(seconds), 3), "integrity_files": _FILES}
    print(json.dumps({**found, "cores": len(os.sched_getaffinity(0))}))
    return 0


def _fill(folder: Path) -> None:
    """Write half of the files as torch.save does, half as safetensors does, in 100 folders."""
    contents = (make_pt((b"\1" * (_SIZE - 900),)), make_safetensors((b"\1" * (_SIZE - 128),)))
    for number in range(_FILES):
        below = folder / f"{number % 100}"
        below.mkdir(exist_ok=True)
        ending = ("pt", "safetensors")[number // 100 % 2]
        (below / f"{number}.{ending}").write_bytes(contents[number // 100 % 2])


if __name__ == "__main__":
    sys.exit(main())
