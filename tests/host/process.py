"""Find and end the processes that work for one of our folders, and no others."""

# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import select
import signal
import time
from contextlib import ExitStack, suppress
from pathlib import Path

QEMU = b"qemu-system-x86_64"
_END_SECONDS = 20  # mmdebstrap removes half a system when it is told to end


def find_workers(folder: Path) -> list[int]:
    """Return the ids of the QEMU and mmdebstrap processes that write to a folder.

    The command line is read, not the pid file: an id in a file may be stale and belong
    to someone else by now, and a daemon that is just starting has written none.
    """
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue  # It has ended since.
            if is_worker(words, os.fsencode(folder) + b"/"):
                found.append(int(entry.name))
    return found


def is_worker(words: list[bytes], prefix: bytes) -> bool:
    """Tell whether a command line is of a program of ours that writes below a prefix.

    A QEMU of another folder may read its kernel from this one, so only its pid file
    tells. mmdebstrap is a script: its own name comes second; QEMU's comes after its loader's.
    """
    programs = [os.path.basename(word) for word in words[:4]]
    if QEMU in programs and b"-pidfile" in words:
        return words[words.index(b"-pidfile") + 1].startswith(prefix)
    return b"mmdebstrap" in programs and any(word.startswith(prefix) for word in words)


def end_all(pids: list[int]) -> None:
    """End processes, by force if they do not go by themselves, and wait until they are gone.

    All are asked before any is waited for: mmdebstrap's parts clean up together.
    """
    with ExitStack() as stack:
        handles = []
        for pid in pids:
            with suppress(ProcessLookupError):
                handles.append(os.pidfd_open(pid))
                stack.callback(os.close, handles[-1])
        for number in (signal.SIGTERM, signal.SIGKILL):
            for handle in handles:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(handle, number)
            handles = _wait(handles)


def _wait(handles: list[int]) -> list[int]:
    """Return the processes that are still there when the time is over."""
    deadline = time.monotonic() + _END_SECONDS
    while handles and (left := deadline - time.monotonic()) > 0:
        gone = select.select(handles, [], [], left)[0]
        handles = [handle for handle in handles if handle not in gone]
    return handles
