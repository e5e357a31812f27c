# SPDX-License-Identifier: GPL-3.0-or-later
"""On a guest: take up to 95 % of a limit, wait until somebody has looked, and go on to the end.

``climb.py KIND FIRST ALL``: ``KIND.ready`` in the directory says that FIRST are taken, ``KIND.go``
lets it go on, and ``KIND.end`` has ``whole`` or why it died.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

FOLDER = Path("/var/tmp/climb")
KEPT: list[object] = []
RESERVED = os.open("/dev/null", os.O_RDONLY)
"""What the last words of a run without a descriptor are written with."""

_libc = ctypes.CDLL(None, use_errno=True)


def open_file() -> None:
    KEPT.append(os.open("/dev/null", os.O_RDONLY))


def map_page() -> None:
    prot = mmap.PROT_READ | (mmap.PROT_WRITE if len(KEPT) % 2 else 0)  # Neighbors would merge.
    KEPT.append(mmap.mmap(-1, mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot))


def lock_memory() -> None:
    area = mmap.mmap(-1, 2**16)
    KEPT.append(area)
    start = ctypes.addressof(ctypes.c_char.from_buffer(area))
    if _libc.mlock(ctypes.c_void_p(start), ctypes.c_size_t(2**16)):
        raise OSError(ctypes.get_errno(), "mlock")


def start_thread() -> None:
    threading.stack_size(2**16)
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    KEPT.append(None)


def fill_shm() -> None:
    with open(f"/dev/shm/climb-{os.getuid()}", "ab") as file:
        file.write(bytes(2**20))
    KEPT.append(None)


STEPS: dict[str, Callable[[], None]] = {
    "nofile": open_file,
    "mappings": map_page,
    "memlock": lock_memory,
    "tasks": start_thread,
    "nproc": start_thread,
    "shm": fill_shm,
}


def main(kind: str, first: int, whole: int) -> str:
    try:
        for number in range(whole):
            if number == first:
                (FOLDER / f"{kind}.ready").write_text(str(os.getpid()))
                while not (FOLDER / f"{kind}.go").exists():
                    time.sleep(0.1)
            STEPS[kind]()
    except (OSError, RuntimeError, MemoryError) as error:
        os.close(RESERVED)
        return repr(error)
    return "whole"


ended = main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
(FOLDER / f"{sys.argv[1]}.end").write_text(ended)
os._exit(0)
