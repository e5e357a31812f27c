"""Find and end the processes that work for one of our folders, and no others."""

# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import select
import signal
from pathlib import Path

_END_SECONDS = 10


def find_workers(folder: Path) -> list[int]:
    """Return the ids of the QEMU processes whose pid file lies in this folder.

    The command line is read, not the pid file: an id in a file may be stale and belong
    to someone else by now, and a daemon that is just starting has written none.
    """
    wanted = os.fsencode(folder / "pid")
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and _works_for(int(entry.name), wanted):
            found.append(int(entry.name))
    return found


def _works_for(pid: int, pid_file: bytes) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return words[0].startswith(b"qemu-") and pid_file in words


def end_all(pids: list[int]) -> None:
    """Kill processes and wait until they are gone."""
    for pid in pids:
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            select.select([handle], [], [], _END_SECONDS)
        except ProcessLookupError:
            pass
        finally:
            os.close(handle)
