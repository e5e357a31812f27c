# SPDX-License-Identifier: GPL-3.0-or-later
"""Take more and more of one thing: ``climb.py WHAT STEP PAUSE [MOST [THEN]]``.

It goes on until the kernel refuses, or until MOST are taken; then it does what THEN says.
"""

from __future__ import annotations

import ctypes
import mmap
import multiprocessing
import os
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable

LIBC = ctypes.CDLL(None, use_errno=True)
MIB = 2**20
held: list[object] = []


def lock(size: int) -> None:
    area = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    held.append(area)
    address = ctypes.addressof(ctypes.c_char.from_buffer(area))
    if LIBC.mlock(ctypes.c_void_p(address), ctypes.c_size_t(size)):
        raise OSError(ctypes.get_errno(), "mlock")


def fork() -> None:
    if not os.fork():
        time.sleep(30)
        os._exit(0)


def rest() -> None:
    threading.stack_size(131072)
    thread = threading.Thread(target=time.sleep, args=(30,), daemon=True)
    thread.start()
    held.append(thread)


def share(size: int) -> None:
    """Map and touch more of a file in /dev/shm; beyond its size that is a bus error."""
    path = f"/dev/shm/torch_{os.getpid()}_{len(held)}"
    with open(path, "w+b") as file:
        file.truncate(size)
        area = mmap.mmap(file.fileno(), size)
    held.append(area)
    for at in range(0, size, 4096):
        area[at] = 1


def write(path: str, size: int) -> None:
    with open(path, "ab") as file:
        file.write(b"x" * size)


def burn() -> None:
    end = time.process_time() + 0.05
    while time.process_time() < end:
        pass


TAKE: dict[str, Callable[[], object]] = {
    "files": lambda: held.append(open("/etc/passwd", "rb")),  # noqa: SIM115 - it stays open
    "sockets": lambda: held.append(socket.socket()),
    "pipes": lambda: held.append(os.pipe()),
    "mappings": lambda: held.append(mmap.mmap(-1, 4096)),
    "locked": lambda: lock(65536),
    "forks": fork,
    "threads": rest,
    "memory": lambda: held.append(bytearray(MIB)),
    "space": lambda: held.append(mmap.mmap(-1, MIB)),
    "private": lambda: held.append(mmap.mmap(-1, MIB, mmap.MAP_PRIVATE)),
    "shared": lambda: share(MIB),
    "shared-file": lambda: write("/dev/shm/file", MIB),
    "growing": lambda: write(os.environ["WORK"] + "/grown", MIB),
    "time": burn,
    "nothing": lambda: None,
}


def climb(what: str, step: int, pause: float, most: int) -> None:
    taken = 0
    while taken < most:
        for _number in range(step):
            TAKE[what]()
            taken += 1
        time.sleep(pause)


def then(what: str) -> None:
    """Die in a way that no limit is at fault for."""
    name, _colon, rest_of = what.partition(":")
    if name == "rank":
        kill_rank()
    if name in ("stay", "release"):
        if name == "release":
            held.clear()
        time.sleep(float(rest_of))
        raise ValueError("it was no good")
    if name in DIE:
        DIE[name](int(rest_of or 0))


DIE: dict[str, Callable[[int], object]] = {
    "raise": lambda _number: os.environ["COLUMN"],
    "exit": os._exit,
    "signal": lambda number: os.kill(os.getpid(), number),
    "segfault": ctypes.string_at,
    "abort": lambda _number: os.abort(),
}


def kill_rank() -> None:
    """Let another rank be killed by hand, and end because it has."""
    worker = multiprocessing.Process(target=time.sleep, args=(60,))
    worker.start()
    time.sleep(0.5)
    os.kill(worker.pid or 0, signal.SIGKILL)
    worker.join()
    sys.exit("a rank ended")


def main() -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    what, step = sys.argv[1], int(sys.argv[2])
    pause = float(sys.argv[3]) * float(os.environ.get("SLOWER", "1"))
    most = int(sys.argv[4]) if len(sys.argv) > 4 else 10**9
    after = sys.argv[5] if len(sys.argv) > 5 else ""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if os.environ.get("IN_CHILD"):
        worker = multiprocessing.Process(target=climb, args=(what, step, pause, most))
        worker.start()
        worker.join()
        sys.exit(1 if worker.exitcode else 0)
    try:
        climb(what, step, pause, most)
    except (OSError, RuntimeError, MemoryError):
        if not after.startswith(("release", "stay")):
            raise
    then(after)


if __name__ == "__main__":
    main()
