# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a command of root on the guest beside an attack, and say as JSON what was seen of it.

Root has secrets here as a root has: a key in the session keyring, a variable, an open file.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from typing import Any

try:
    import eyes  # type: ignore[import-not-found]
    from opens import Opens  # type: ignore[import-not-found]
except ImportError:  # On the controller.
    from . import eyes
    from .opens import Opens

MARKS = {
    "shadow": "MARK-shadow-5f1e",
    "file": "MARK-file-77ab",
    "key": "MARK-key-91cd",
    "environment": "MARK-variable-a3c4",
    "sudoers": "MARK_SUDOERS_C0DE",
}
"""What only root may read, by where it is; ``base`` puts the files there."""
_LONGEST = 400_000
_ADD_KEY, _KEYCTL = 248, 250  # Of x86_64.
_SESSION, _USER = -3, -4


def main() -> None:
    spec = json.loads(sys.argv[1])
    started = time.time()
    files, pids = eyes.look_at_files(), set(eyes.list_processes())
    helpers: set[str] = set()
    over = threading.Event()
    watcher = threading.Thread(target=watch, args=(over, helpers))
    opens = Opens()
    watcher.start()
    opens.start()
    runs = []
    for _number in range(spec["rounds"]):
        runs.append(run(spec["argv"], spec["limit"], opens))
        if runs[-1]["hung"]:
            break
    if spec["after"]:
        runs.append(follow(spec["after"], runs[-1]["stdout"], opens))
    over.set()
    watcher.join()
    time.sleep(spec["settle"])
    seen = {
        "runs": runs,
        "opens": opens.stop(),
        "files": eyes.compare(files, eyes.look_at_files()),
        "strays": eyes.find_strays(pids),
        "helpers": sorted(helpers),
        "marks": eyes.find_marks(MARKS, started - 2),
        "loot": eyes.read_loot(),
        "owners": find_owners(),
        "slurm": ask_slurm(),
    }
    json.dump(seen, sys.stdout)
    sys.stdout.write("\n")


def run(words: list[str], limit: float, opens: Opens) -> dict[str, Any]:
    """Run root's command to its end, or to the end of its time."""
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as errors:
        start = time.monotonic()
        child = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=errors,
            preexec_fn=hold_secrets,
            close_fds=False,
            cwd="/opt",
            env={**os.environ, "PYTHONPATH": "/opt", "ROOTS_TOKEN": MARKS["environment"]},
        )
        opens.session = child.pid
        hung = False
        try:
            child.wait(limit)
        except subprocess.TimeoutExpired:
            hung = True
            os.killpg(child.pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):  # No signal ends who waits for FUSE.
                child.wait(5)
        opens.session = 0
        seconds = time.monotonic() - start
        text = [read_back(file) for file in (said, errors)]
    told = {"status": child.returncode, "seconds": round(seconds, 1), "hung": hung}
    return {**told, "stdout": text[0], "stderr": text[1]}


def read_back(file: Any) -> str:
    file.seek(0)
    return str(file.read(_LONGEST).decode("utf-8", "replace"))


def hold_secrets() -> None:
    """Give this process what a root's session has: keys of its own, and a file that is open."""
    os.setsid()
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall(_KEYCTL, 1, None)
    mark = MARKS["key"].encode()
    for ring in (_SESSION, _USER):
        libc.syscall(_ADD_KEY, b"user", b"mlhost-canary", mark, len(mark), ctypes.c_long(ring))
    libc.syscall(_KEYCTL, 8, ctypes.c_long(_USER), ctypes.c_long(_SESSION))
    handle = os.open("/root/canary/secret", os.O_RDONLY)
    os.dup2(handle, 9, inheritable=True)


def follow(program: str, report: str, opens: Opens) -> dict[str, Any]:
    """Do what the report told root to do."""
    with open("/root/hostile/report", "w", encoding="utf-8", errors="replace") as file:
        file.write(report)
    head = "report = open('/root/hostile/report', errors='replace').read()\n"
    return run([sys.executable, "-c", head + program], 60, opens)


def watch(over: threading.Event, helpers: set[str]) -> None:
    """Look for the attacker's programs among root's processes while root's command runs."""
    while not over.wait(0.25):
        helpers.update(eyes.find_root_helpers())


def find_owners() -> dict[int, str]:
    """Return whose each process is that is not root's."""
    return {
        pid: one["uids"].split()[0]
        for pid, one in eyes.list_processes().items()
        if one["uids"].split()[0] != "0"
    }


def ask_slurm() -> str:
    words = ["sinfo", "-h", "-N", "-p", "debug", "-o", "%T|%E"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()


if __name__ == "__main__":
    main()
