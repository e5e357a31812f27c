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
from mlhost_limits import guard
from mlhost_limits import plan_workers
"""
_IMPORT = _LOAD + "print(time.process_time() - begin)"
_START = _LOAD + "guard()\nprint(time.process_time() - begin)"
_PLAN = _LOAD + "plan_workers(tensors_per_batch=8)\nprint(time.process_time() - begin)"
_WATCH = (
    _LOAD
    + """
import os
watch = guard(threshold=0.99)
files = [os.open("/dev/null", os.O_RDONLY) for file in range({files})]
time.sleep(1)
begin = time.process_time()
time.sleep({seconds})
print((time.process_time() - begin) / {seconds})
"""
)

_EVENT = (
    _LOAD
    + """
def take(number=20000):
    rounds = []
    for round in range(20):
        begin = time.thread_time()
        for step in range(number): id(step)
        rounds.append((time.thread_time() - begin) / number)
    return min(rounds)
before = take()
watch = guard()
print((take() - before) * 1e6)
"""
)

_BATCH = (
    _LOAD
    + """
def batch():
    for tensor in range(4):  # What torch's loader raises for each tensor that a worker sends.
        sys.audit("pickle.find_class", "", "")
        sys.audit("pickle.find_class", "", "")
        sys.audit("socket.__new__", None, 1, 1, 0)
        sys.audit("socket.connect", None, "")
        sys.audit("array.__new__", "i", b"")
        sys.audit("socket.__new__", None, 1, 1, 0)
def take(number=2000):
    rounds = []
    for round in range(20):
        begin = time.thread_time()
        for step in range(number): batch()
        rounds.append((time.thread_time() - begin) / number)
    return min(rounds)
before = take()
watch = guard()
print((take() - before) * 1e6)
"""
)


def measure(code: str, cache: str, **words: object) -> float:
    """Return what a fresh interpreter prints; as an installed library, it is compiled once."""
    text = code.format(path=str(LIBRARY / "__init__.py"), folder=str(LIBRARY), **words)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment = {**kept, "PYTHONPYCACHEPREFIX": cache}
    return float(subprocess.check_output([sys.executable, "-c", text], env=environment))


def measure_training() -> dict[str, float]:
    """Return processor seconds of an import, a guard and a plan, and what a guard takes then.

    That is the percent of a core while nothing rises, and microseconds for each audit event
    and each batch of four tensors.
    """
    figures = {}
    with tempfile.TemporaryDirectory() as cache:
        for name, code in (
            ("training_import_s", _IMPORT),
            ("guard_start_s", _START),
            ("guard_event_us", _EVENT),
            ("guard_batch_us", _BATCH),
            ("plan_workers_s", _PLAN),
        ):
            measure(code, cache)  # It is compiled once.
            figures[name] = statistics.median(measure(code, cache) for _round in range(_ROUNDS))
        for files in (10, 10000):
            share = measure(_WATCH, cache, files=files, seconds=_WATCHED)
            figures[f"guard_{files}_percent"] = share * 100
    return figures


if __name__ == "__main__":
    for name, figure in measure_training().items():
        print(f"{name:22}{figure:8.4f}")
