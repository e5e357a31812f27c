# SPDX-License-Identifier: GPL-3.0-or-later
"""Take processor time and memory of a node that checks itself, and of a loop in C beside it."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from .crowd import LIBRARY, hold_crowd

PROCESSES, FEW = 10000, 300
ROUNDS = 7
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
_LOOP = Path(__file__).with_name("read_processes.c")
_BUILD = """
import sys
sys.path.insert(0, sys.argv[1])
from mlhost_limits.node.zipapp_read import build_zipapp, read_library
with open(sys.argv[2], "wb") as file:
    file.write(build_zipapp(read_library(), sys.executable))
"""
_PROFILE = (
    "import json, mlhost_limits.core.profiles as p; print(json.dumps(p.PROFILES['training']))"
)
_RULES = {"processes": [{"user": "root", "limits": {"nofile": {"soft": 64}, "memlock": "4KiB"}}]}


class Cost(NamedTuple):
    """Seconds of processor time, and the most memory in MB; a MB is 1 000 000 bytes."""

    seconds: float
    memory: float


class Tools(NamedTuple):
    """The programs that are compared: the words that start each."""

    loop: list[str]
    rules: list[str]
    training: list[str]
    prolog: list[str]


def measure_node(rounds: int = ROUNDS) -> dict[str, float]:
    """Return medians; the loop and our look take turns, so that a load hits both."""
    with _tools() as tools:
        with hold_crowd(PROCESSES):
            loop, ours = _take_turns(rounds, tools.loop, tools.rules)
        with hold_crowd(FEW - _count_processes()):
            (check,) = _take_turns(rounds, tools.training)
            _run(tools.rules)  # It passes, and a prolog believes it.
            (prolog,) = _take_turns(rounds, tools.prolog)
    return {
        "node_processes": PROCESSES,
        "node_loop_cpu_s": loop.seconds,
        "node_look_cpu_s": ours.seconds,
        "node_look_vs_loop": ours.seconds / loop.seconds,
        "node_look_mb": ours.memory,
        "node_check_cpu_s": check.seconds,
        "node_check_mb": check.memory,
        "node_prolog_cpu_s": prolog.seconds,
    }


def _count_processes() -> int:
    return sum(name.isdigit() for name in os.listdir("/proc"))


@contextmanager
def _tools() -> Iterator[Tools]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        (path / "mlhost_limits").symlink_to(LIBRARY)
        program, loop = path / "mlhost-limits.pyz", path / "loop"
        subprocess.run(["gcc", "-O2", "-o", loop, _LOOP], check=True)
        subprocess.run([PYTHON, "-I", "-c", _BUILD, folder, program], check=True)
        environment = {**os.environ, "PYTHONPATH": folder}
        training = subprocess.check_output([PYTHON, "-c", _PROFILE], env=environment)
        (path / "training.json").write_bytes(training)
        (path / "rules.json").write_text(json.dumps(_RULES))
        python = [PYTHON, "-IS"]
        metrics = str(path / "x.prom")
        look = [*python, str(program), "monitor", "--metrics", metrics, "--policy"]
        code = (
            "import sys; sys.path.insert(0, sys.argv[1])\n"
            "from mlhost_limits import node_health\n"
            "node_health.POLICY = sys.argv[2]\n"
            "raise SystemExit(node_health.main({'SLURM_JOB_ID': '1'}))\n"
        )
        rules = str(path / "rules.json")
        prolog = [*python, "-c", code, str(program), rules]
        yield Tools([str(loop)], [*look, rules], [*look, str(path / "training.json")], prolog)


def _take_turns(rounds: int, *commands: list[str]) -> list[Cost]:
    costs: list[list[Cost]] = [[_run(words) for words in commands] for _round in range(rounds)]
    return [
        Cost(
            statistics.median(one.seconds for one in column),
            statistics.median(one.memory for one in column),
        )
        for column in zip(*costs)
    ]


def _run(words: list[str]) -> Cost:
    """Run a program to its end; 1 says that this machine falls short of the profile."""
    with subprocess.Popen(words, stdout=subprocess.DEVNULL) as process:
        _pid, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise RuntimeError(f"{words} ended with {process.returncode}")
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e6)


if __name__ == "__main__":
    for name, figure in measure_node().items():
        print(f"{name:22}{figure:10.4f}")
