# SPDX-License-Identifier: GPL-3.0-or-later
"""Print what the functions for training code cost: ``python -m tests.bench.training``."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

LIBRARY = Path(__file__).parents[2] / "plugins" / "module_utils"
_ROUNDS = 11
_WATCHED = 20.0
_LOAD = """
import importlib.util, sys, time
begin = time.process_time()
spec = importlib.util.spec_from_file_location(
    "mlhost_limits", {path!r}, submodule_search_locations=[{folder!r}])
sys.modules["mlhost_limits"] = module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
from mlhost_limits import check
from mlhost_limits import plan_workers
from mlhost_limits import raise_soft_limits
from mlhost_limits import watch_descriptors
"""
_IMPORT = _LOAD + "print(time.process_time() - begin)"
_PLAN = _LOAD + "plan_workers(tensors_per_batch=8)\nprint(time.process_time() - begin)"
_WATCH = (
    _LOAD
    + """
import os, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
files = [os.open("/dev/null", os.O_RDONLY) for file in range({files})]
watch = watch_descriptors(0.99)
begin = time.process_time()
with watch:
    time.sleep({seconds})
print((time.process_time() - begin) / {seconds})
"""
)


def measure(code: str, cache: str, **words: object) -> float:
    """Return what a fresh interpreter prints; as an installed library, it is compiled once."""
    text = code.format(path=str(LIBRARY / "__init__.py"), folder=str(LIBRARY), **words)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment = {**kept, "PYTHONPYCACHEPREFIX": cache}
    return float(subprocess.check_output([sys.executable, "-c", text], env=environment))


def measure_training() -> dict[str, float]:
    """Return processor seconds of an import and of a plan, and the percent of a core that a watch takes."""
    figures = {}
    with tempfile.TemporaryDirectory() as cache:
        for name, code in (("training_import_s", _IMPORT), ("plan_workers_s", _PLAN)):
            measure(code, cache)  # It is compiled once.
            figures[name] = statistics.median(measure(code, cache) for _round in range(_ROUNDS))
        for files in (10, 10000):
            share = measure(_WATCH, cache, files=files, seconds=_WATCHED)
            figures[f"watch_{files}_percent"] = share * 100
    return figures


if __name__ == "__main__":
    for name, figure in measure_training().items():
        print(f"{name:22}{figure:8.4f}")
