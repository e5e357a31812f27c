# SPDX-License-Identifier: BSD-2-Clause
"""Hear from the kernel of a run what nobody has to ask for: counters that rise, ends, pressure.

Sources: inotify(7), pidfd_open(2), Documentation/accounting/psi.rst, cgroups(7);
``pidfd_info()`` in fs/pidfs.c for how a process ended that another has waited for (Linux 6.15).
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import struct
from collections.abc import Iterable
from contextlib import suppress

from ..core.values import NamedTuple
from .tree_read import read_stat

_MODIFIED = 0x2
_PSI = "/proc/pressure/memory"
_STALLED = b"some 200000 2000000\0"
"""0.2 s of 2 s: users may ask for windows of whole 2 s."""

_MOST_ENDS = 384
_GET_INFO = 3 << 30 | 64 << 16 | 0xFF << 8 | 11
_EXIT = 1 << 3
_EXIT_CODE = 60
"""Of ``struct pidfd_info``: where the status of wait(2) stands in it, in its first 64 bytes."""


class Heard(NamedTuple):
    """What has happened: which counters may have risen, who ended and with which status of wait(2),
    ``None`` where the kernel does not tell. ``is_woken`` is somebody's wish, ``counted_at`` when a
    counter was last heard of."""

    has_counted: bool = False
    ended: tuple[tuple[int, int | None], ...] = ()
    is_pressed: bool = False
    is_woken: bool = False
    counted_at: float = 0.0


class Events:
    """What the kernel tells of a run. Whatever it cannot have is polled by whoever asks."""

    def __init__(self, wake: int) -> None:
        """:param wake: A descriptor that can be read when somebody wants to be heard."""
        self._poll = select.poll()
        self._wake = wake
        self._poll.register(wake, select.POLLIN)
        self._inotify = self._open_inotify()
        self._pressure = self._open_pressure()
        self._watched: set[str] = set()
        self._ends: dict[int, int] = {}
        self._pids: set[int] = set()

    @staticmethod
    def _find_libc() -> ctypes.CDLL:
        return ctypes.CDLL(None, use_errno=True)

    def _open_inotify(self) -> int:
        try:
            handle: int = self._find_libc().inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        except (OSError, AttributeError):
            return -1
        if handle >= 0:
            self._poll.register(handle, select.POLLIN)
        return handle

    def _open_pressure(self) -> int:
        try:
            handle = os.open(_PSI, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return -1
        try:
            os.write(handle, _STALLED)
        except OSError:
            os.close(handle)
            return -1
        self._poll.register(handle, select.POLLPRI)
        return handle

    def watch_files(self, paths: Iterable[str]) -> None:
        """Hear when the kernel has counted something in a file of a cgroup."""
        before, self._watched = self._watched, set(paths)
        for path in self._watched - before:
            if self._inotify >= 0:
                self._find_libc().inotify_add_watch(self._inotify, os.fsencode(path), _MODIFIED)

    def watch_end(self, pid: int) -> None:
        """Hear when a process ends, and how, as far as there are descriptors for it."""
        opens = getattr(os, "pidfd_open", None)  # Since Python 3.9.
        if opens is None or len(self._ends) >= _MOST_ENDS or pid in self._pids:
            return
        with suppress(OSError):
            handle = opens(pid)
            self._ends[handle] = pid
            self._pids.add(pid)
            self._poll.register(handle, select.POLLIN)

    def wait(self, seconds: float) -> Heard:
        """Return what happened within some time, as soon as anything does."""
        has_counted = is_pressed = is_woken = False
        ended = []
        for handle, _event in self._poll.poll(max(seconds, 0.0) * 1000):
            if handle == self._wake:
                is_woken = True
                self._poll.unregister(handle)
            elif handle == self._inotify:
                has_counted = True
                with suppress(OSError):
                    os.read(handle, 65536)
            elif handle == self._pressure:
                is_pressed = True
            else:
                ended.append(self._hear_end(handle))
        return Heard(has_counted, tuple(ended), is_pressed, is_woken)

    def _hear_end(self, handle: int) -> tuple[int, int | None]:
        pid = self._ends.pop(handle)
        self._pids.discard(pid)
        status = read_status(handle, pid)
        self._poll.unregister(handle)
        os.close(handle)
        return pid, status


def read_status(handle: int, pid: int) -> int | None:
    """Return with which status of wait(2) a process ended, once it has; ``None`` if not told.

    Before its parent has waited for it /proc tells, and after that the kernel's descriptor.
    """
    status = _ask_kernel(handle)
    if status is None:
        with suppress(OSError, ValueError, IndexError):
            fields = read_stat(pid)[1]
            status = int(fields[49]) if fields[0] == "Z" else None
    return _ask_kernel(handle) if status is None else status


def _ask_kernel(handle: int) -> int | None:
    answer = bytearray(struct.pack("<Q", _EXIT) + bytes(56))
    try:
        fcntl.ioctl(handle, _GET_INFO, answer)
    except OSError:
        return None  # Before Linux 6.13.
    is_told = struct.unpack_from("<Q", answer)[0] & _EXIT
    return int(struct.unpack_from("<i", answer, _EXIT_CODE)[0]) if is_told else None
