# SPDX-License-Identifier: GPL-3.0-or-later
"""Take the processor time of a check on a host with thousands of processes.

``python -m tests.bench.crowd 7000 50000`` (above 32,768 with a higher ``kernel.pid_max``).
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

PROCESSES = 7000  # Of 5,000 units and 2,000 containers, one each.
CROWD = Path(__file__).parent / "crowd.c"
LIBRARY = Path(__file__).parents[2] / "plugins" / "module_utils"
POLICY = {
    "processes": [
        {"user": "root", "limits": {"nofile": {"soft": 64}, "memlock": "4KiB"}},
        {"name": "python3", "limits": {"nofile": {"soft": 64}}},
    ]
}


def measure_crowd(count: int = PROCESSES) -> dict[str, float]:
    """Return the seconds of processor time of a check beside so many idle processes."""
    with tempfile.TemporaryDirectory() as folder, hold_crowd(count):
        path = Path(folder)
        (path / "mlhost_limits").symlink_to(LIBRARY)
        (path / "policy.json").write_text(json.dumps(POLICY))
        words = ["check", "--profile", "none", "--policy", str(path / "policy.json")]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [sys.executable, "-m", "mlhost_limits.cli", *words, "--canary", "never"],
            env={**os.environ, "PYTHONPATH": folder},
            stdout=subprocess.PIPE,
            check=False,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(f"the check ended with {done.returncode}: {done.stdout!r}")
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"crowd_processes": count, "crowd_check_cpu_s": spent}


@contextlib.contextmanager
def hold_crowd(count: int) -> Iterator[None]:
    """Keep that many processes that do nothing, for the length of a ``with`` block.

    :raises RuntimeError: If the kernel refuses as many (``kernel.pid_max``, pids.max, nproc).
    """
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/python3"  # The name by which the policy finds them.
        subprocess.run(["gcc", "-O2", "-static", "-o", program, CROWD], check=True)
        words = [program, str(max(count, 0))]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as crowd:
            assert crowd.stdin
            assert crowd.stdout
            started = int(crowd.stdout.readline())
            try:
                if started < count:
                    raise RuntimeError(f"only {started} of {count} processes could be started")
                yield
            finally:
                crowd.stdin.close()


def main() -> None:
    """Take the time beside each number of processes that is given."""
    for word in sys.argv[1:]:
        figures = measure_crowd(int(word))
        print(f"{int(word):>8,} processes: {figures['crowd_check_cpu_s']:.2f} s", flush=True)


if __name__ == "__main__":
    main()
