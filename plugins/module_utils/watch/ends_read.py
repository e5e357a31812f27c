# SPDX-License-Identifier: BSD-2-Clause
"""Hear from the kernel of every process of the host that ends in failure, and how.

The kernel leaves out what ended well, so that a host which starts thousands of programs costs
nothing. Sources: Documentation/driver-api/connector.rst, include/uapi/linux/cn_proc.h and filter.h.
"""

from __future__ import annotations

import ctypes
import socket
import struct
import sys
from collections.abc import Iterator

from ..core.values import NamedTuple

_CONNECTOR, _PROCESSES, _LISTEN = 11, 1, 1
"""NETLINK_CONNECTOR; CN_IDX_PROC, also its group; PROC_CN_MCAST_LISTEN."""

_NONE, _EXIT = 0, 0x80000000
_MEMBERSHIP, _SOL_NETLINK, _ATTACH, _FORCE = 1, 270, 26, 33
_ROOM, _LARGEST, _MOST = 2**20, 4096, 2000
_PATIENCE = 1.0
_HEAD = struct.Struct("=IHHII IIIIHH")
"""Of a message of netlink, and of the connector in it."""

_EVENT = struct.Struct("=IIQ IIII")
"""Which event, on which processor, when; of an end its thread, its process, status, and signal."""

_STEP = 8
_LOAD, _STORE, _EQUAL, _SAME, _ANY, _RETURN = 0x20, 0x07, 0x15, 0x1D, 0x45, 0x06
"""BPF_LD|BPF_W|BPF_ABS; BPF_MISC|BPF_TAX; BPF_JMP|BPF_JEQ with a constant, with X; BPF_JSET;
BPF_RET."""

_SIGNAL, _STATUS = 0x7F, 0xFF00
"""Bits of a status of wait(2)."""


class Ended(NamedTuple):
    """A process that ended in failure: when, by the clock that only goes on, and its status of
    wait(2)."""

    at: float
    pid: int
    status: int


class Ends:
    """What ends on this host."""

    def __init__(self) -> None:
        """Begin to listen.

        :raises OSError: If the kernel does not tell: not root, in a container, or built without.
        """
        self._sockets: list[socket.socket] = []
        try:
            for mask in (_SIGNAL, _STATUS):  # Of their own, so that these never crowd out those.
                own = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _CONNECTOR)
                self._sockets.append(own)
                _listen(own, mask)
        except OSError as error:
            self.close()
            told = "watch --host: the kernel tells root of the host alone how processes end"
            raise OSError(f"{told}: {error.strerror or error}") from None

    def close(self) -> None:
        for one in self._sockets:
            one.close()

    def read(self) -> Iterator[Ended]:
        """Yield what has ended since the last time, so far as there was room for it."""
        for own in self._sockets:
            for _number in range(_MOST):
                try:
                    data = own.recv(_LARGEST)
                except BlockingIOError:
                    break
                except OSError:
                    continue  # ENOBUFS: of so many some are lost, and the others are still there.
                if len(data) >= _HEAD.size + _EVENT.size:
                    what, _cpu, at, _task, pid, status, _signal = _EVENT.unpack_from(
                        data, _HEAD.size
                    )
                    if what == _EXIT:
                        yield Ended(at / 1e9, pid, status)


def _listen(own: socket.socket, mask: int) -> None:
    own.settimeout(_PATIENCE)
    own.setsockopt(socket.SOL_SOCKET, _FORCE, _ROOM)
    text = b"".join(struct.pack("=HBBI", *one) for one in _list_steps(mask))
    steps = ctypes.create_string_buffer(text, len(text))
    program = struct.pack("@HP", len(text) // _STEP, ctypes.addressof(steps))
    own.setsockopt(socket.SOL_SOCKET, _ATTACH, program)
    own.bind((0, _PROCESSES))
    own.setsockopt(_SOL_NETLINK, _MEMBERSHIP, _PROCESSES)
    size = _HEAD.size + 4
    head = _HEAD.pack(size, 3, 0, 0, 0, _PROCESSES, 1, 0, 0, 4, 0)
    own.send(head + struct.pack("=I", _LISTEN))
    own.recv(_LARGEST)  # That it listens; a container hears nothing for ever.
    own.setblocking(False)


def _list_steps(mask: int) -> list[tuple[int, int, int, int]]:
    """Return the program that lets through that we listen, and ends of whole processes in failure.

    :param mask: The bits of the status of which one is set: those of a signal, or of an exit.

    A step is what to do, how many steps to leave out if it is so, and if not, and a number.
    """
    event, own = _HEAD.size, _HEAD.size + 16
    return [
        (_LOAD, 0, 0, event),
        (_EQUAL, 7, 0, _turn(_NONE)),
        (_EQUAL, 0, 7, _turn(_EXIT)),
        (_LOAD, 0, 0, own + 8),
        (_ANY, 0, 5, _turn(mask)),
        (_LOAD, 0, 0, own),
        (_STORE, 0, 0, 0),
        (_LOAD, 0, 0, own + 4),
        (_SAME, 0, 1, 0),
        (_RETURN, 0, 0, _LARGEST),
        (_RETURN, 0, 0, 0),
    ]


def _turn(number: int) -> int:
    """Return a number of this machine as a filter sees it, which reads big-endian."""
    return int.from_bytes(number.to_bytes(4, sys.byteorder), "big")
