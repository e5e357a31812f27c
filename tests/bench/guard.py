# SPDX-License-Identifier: GPL-3.0-or-later
"""Let processes die of a limit, and count who was warned first: ``python -m tests.bench.guard``.

Each is a real process that takes as much as it can in a tight loop. What the guard says is written
before the first error, at it (the last words), or never.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

LIBRARY = Path(__file__).parents[2] / "plugins" / "module_utils"
_RUNS = 20
_UIDS = itertools.count(100000 + os.getpid() % 5000 * 1000)
"""Of each run its own: what another left running would count against nproc."""
_CGROUPS = Path("/sys/fs/cgroup")
_MEMORY = 2 * 2**30
_START = """
import importlib.util, logging, os, resource, sys, time
spec = importlib.util.spec_from_file_location(
    "mlhost_limits", {path!r}, submodule_search_locations=[{folder!r}])
sys.modules["mlhost_limits"] = module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
logging.disable()
from mlhost_limits import guard
import mlhost_limits.training.guard_measure  # Before it becomes somebody who may not read it.
def say(word): os.write(1, (word + "\\n").encode())
held = []
def limit(number, soft, hard=None): resource.setrlimit(number, (soft, hard or soft))
def be_nobody(): os.setgid({uid}); os.setuid({uid})
{before}
watch = guard(raise_limits=False, on_limit=lambda reached: say("warned " + reached.level.where))
time.sleep({rest})
try:
    while True:
        {step}
except (OSError, RuntimeError, MemoryError, ValueError) as exc:
    say("error")
    raise
"""


class Case(NamedTuple):
    """One way to die: what is set before, and what is done over and over.

    ``is_seen`` says that the warning comes for certain; else Python does not tell of what is done,
    and only the last words do. ``needs`` is what is started round it.
    """

    name: str
    before: str
    step: str
    is_seen: bool = True
    warnings: int = 1
    needs: str = ""


_SHM = "import multiprocessing.shared_memory as shared\nblock = b'x' * 2**20"
_FORK = "held.append(os.fork()); held[-1] or (time.sleep(5), os._exit(0))"
_THREADS = "import threading\nend = threading.Event()"
_THREAD = "threading.Thread(target=end.wait, daemon=True).start()"
CASES = (
    Case("files, 1024", "limit(7, 1024)", "held.append(open('/dev/null'))"),
    Case(
        "files, 1024 of 4096", "limit(7, 1024, 4096)", "held.append(open('/dev/null'))", warnings=2
    ),
    Case("sockets, 1024", "limit(7, 1024)\nimport socket", "held.append(socket.socket())"),
    Case("copies, 1024", "limit(7, 1024)", "os.dup(0)", is_seen=False),
    Case(
        "mappings, 65530",
        "import mmap",
        "held.append(mmap.mmap(-1, 4096, prot=1 + len(held) % 2 * 2))",
    ),
    Case("address space", "limit(9, 2**30)\nimport mmap", "held.append(mmap.mmap(-1, 2**20))"),
    Case("children, 64", "limit(6, 64)\nbe_nobody()", _FORK, needs="root"),
    Case(
        "threads, 200",
        f"limit(6, 200)\nbe_nobody()\n{_THREADS}",
        _THREAD,
        is_seen=sys.version_info >= (3, 12),
        needs="root",
    ),
    Case(
        "/dev/shm, 64 MiB",
        _SHM,
        "held.append(shared.SharedMemory(create=True, size=2**20)); held[-1].buf[:] = block",
        needs="shm",
    ),
    Case(
        "memory, 2 GiB, 1 GiB/s",
        "",
        "held.append(b'x' * 2**20); time.sleep(0.001)",
        needs="memory",
    ),
)


class Outcome(NamedTuple):
    """How often it died, and was told before, at the error, or not."""

    died: int
    warned: int
    last_words: int


def is_possible(case: Case) -> bool:
    """Tell whether this machine can show it."""
    if case.needs == "memory":
        return os.access(_CGROUPS / "memory", os.W_OK) or os.access(
            _CGROUPS / "cgroup.procs", os.W_OK
        )
    return not case.needs or os.geteuid() == 0


def try_case(case: Case, runs: int) -> Outcome:
    """Let it die so many times."""
    died = warned = last = 0
    for number in range(runs):
        status, lines = _run(case, number)
        died += status != 0
        before = lines[: lines.index("error")] if "error" in lines else lines
        told = sum(line.startswith("warned") for line in before)
        warned += told >= case.warnings
        last += told < case.warnings <= sum(line.startswith("warned") for line in lines)
    return Outcome(died, warned, last)


def _run(case: Case, number: int) -> tuple[int, list[str]]:
    text = _START.format(
        path=str(LIBRARY / "__init__.py"),
        folder=str(LIBRARY),
        before=case.before,
        step=case.step,
        rest=0.2 + number % 7 * 0.05,  # At any moment between two looks.
        uid=next(_UIDS),
    )
    words = [sys.executable, "-c", text]
    if case.needs == "shm":
        mount = "mount -t tmpfs -o size=64m tmpfs /dev/shm"
        words = ["unshare", "-m", "sh", "-c", f'{mount} && exec "$@"', "sh", *words]
    if case.needs == "memory":
        return _run_in_cgroup(words)
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()


def _run_in_cgroup(words: list[str]) -> tuple[int, list[str]]:
    """Run in a cgroup of its own whose memory is bounded; version 1 or 2."""
    is_first = (_CGROUPS / "memory").is_dir()
    folder = (_CGROUPS / "memory" if is_first else _CGROUPS) / f"mlhost-guard-{os.getpid()}"
    folder.mkdir()
    try:
        name = "memory.limit_in_bytes" if is_first else "memory.max"
        (folder / name).write_text(str(_MEMORY))
        enter = f'echo $$ > {folder}/cgroup.procs && exec "$@"'
        done = subprocess.run(
            ["sh", "-c", enter, "sh", *words], capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout.splitlines()
    finally:
        time.sleep(0.05)
        folder.rmdir()


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else _RUNS
    for case in CASES:
        if not is_possible(case) or (case.needs == "shm" and not shutil.which("unshare")):
            print(f"{case.name:24}not possible here")
            continue
        died, warned, last = try_case(case, runs)
        print(f"{case.name:24}{warned} of {died} warned before, {last} at the error")


if __name__ == "__main__":
    main()
