# SPDX-License-Identifier: GPL-3.0-or-later
"""Who opens what only root may read: the kernel holds each one up until we have looked (fanotify)."""

from __future__ import annotations

import ctypes
import os
import select
import struct
import threading

SECRETS = (
    *("/etc/shadow", "/etc/sudoers.d/canary"),
    *("/srv/canary", "/srv/canary/kept", "/srv/open/secret"),
)
_EVENT = struct.Struct("=IBBHQii")
_ANSWER = struct.Struct("=iI")
_CONTENT_CLASS = 4
_CLOSE_ON_EXEC = 1
_ADD = 1
_OPEN_PERM = 0x10000
_AND_FOLDERS = 0x40000000
_ALLOW = 1
_AT_FDCWD = -100
_CEILING = 64
"""How far up from an opener root's command is looked for."""


class Opens(threading.Thread):
    """Notes each secret that a command of root, or its child, opens as root."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.seen: set[str] = set()
        self.session = 0
        """The session of root's command; 0 while none runs."""
        self._over = threading.Event()
        libc = ctypes.CDLL(None, use_errno=True)
        self._handle = libc.fanotify_init(_CONTENT_CLASS | _CLOSE_ON_EXEC, os.O_RDONLY)
        if self._handle < 0:
            raise OSError(ctypes.get_errno(), "fanotify_init")
        mask = ctypes.c_uint64(_OPEN_PERM | _AND_FOLDERS)
        for path in filter(os.path.exists, SECRETS):
            if libc.fanotify_mark(self._handle, _ADD, mask, _AT_FDCWD, path.encode()) < 0:
                raise OSError(ctypes.get_errno(), "fanotify_mark", path)

    def run(self) -> None:
        while not self._over.is_set():
            if select.select([self._handle], [], [], 0.25)[0]:
                self._answer(os.read(self._handle, 4096))
        os.close(self._handle)

    def stop(self) -> list[str]:
        """Let everybody open everything again; return what was seen."""
        self._over.set()
        self.join()
        return sorted(self.seen)

    def _answer(self, events: bytes) -> None:
        while events:
            length, _version, _pad, _head, _mask, handle, pid = _EVENT.unpack_from(events)
            events = events[length:]
            try:
                if self.session and is_of(pid, self.session):
                    path = os.readlink(f"/proc/self/fd/{handle}")
                    self.seen.add(f"{read_name(pid)} opened {path}")
            finally:
                os.write(self._handle, _ANSWER.pack(handle, _ALLOW))
                os.close(handle)


def read_name(pid: int) -> str:
    """Return what a process calls itself: what a login opens is not what our look opens."""
    with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
        return file.read().strip()


def is_of(pid: int, session: int) -> bool:
    """Tell whether a process with root's rights is of a session, or descends from one that is."""
    for _step in range(_CEILING):
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
            with open(f"/proc/{pid}/status", "rb") as file:
                effective = next(line for line in file if line.startswith(b"Uid:")).split()[2]
        except (OSError, StopIteration):
            return False
        if effective != b"0":
            return False
        if int(fields[3]) == session:
            return True
        pid = int(fields[1])
    return False
