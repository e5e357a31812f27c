# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel lets through of all that happens to processes: ends in failure, of whole ones."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import struct
import subprocess
import sys
from contextlib import closing, suppress

import pytest
from mlhost_limits.watch import ends_read
from mlhost_limits.watch.ends_read import Ended, Ends

EXIT, FORK, NONE = 0x80000000, 0x00000001, 0
SECOND = 10**9


def message(what: int, task: int, pid: int, status: int) -> bytes:
    """An event as the kernel sends it; little or big end first is the machine's."""
    head = struct.pack("=IHHII", 76, 3, 0, 0, 0) + struct.pack("=IIIIHH", 1, 1, 0, 0, 40, 0)
    return head + struct.pack("=IIQIIII", what, 0, 5 * SECOND, task, pid, status, 17)


def filtered(mask: int) -> tuple[socket.socket, socket.socket]:
    """A pair of sockets, of which the second hears through our filter: any kind has one."""
    sends, hears = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    text = b"".join(struct.pack("=HBBI", *one) for one in ends_read._list_steps(mask))
    steps = ctypes.create_string_buffer(text, len(text))
    program = struct.pack("@HP", len(text) // 8, ctypes.addressof(steps))
    hears.setsockopt(socket.SOL_SOCKET, ends_read._ATTACH, program)
    hears.setblocking(False)
    return sends, hears


SIGNAL, STATUS = ends_read._SIGNAL, ends_read._STATUS


@pytest.mark.parametrize(
    ("event", "mask", "is_heard"),
    [
        (message(EXIT, 7, 7, 256), STATUS, True),
        (message(EXIT, 7, 7, 256), SIGNAL, False),
        (message(EXIT, 7, 7, 9), SIGNAL, True),
        (message(EXIT, 7, 7, 9), STATUS, False),
        (message(EXIT, 7, 7, 0), STATUS, False),
        (message(EXIT, 7, 7, 0), SIGNAL, False),
        (message(EXIT, 8, 7, 9), SIGNAL, False),
        (message(FORK, 7, 7, 256), STATUS, False),
        (message(NONE, 0, 0, 0), SIGNAL, True),
        (message(EXIT, 2**22 - 1, 2**22 - 1, 0x8B), SIGNAL, True),
        (message(EXIT, 2**22 - 1, 2**22 - 1, 255 << 8), STATUS, True),
    ],
)
def test_the_kernel_leaves_out_what_nobody_needs(event: bytes, mask: int, is_heard: bool) -> None:
    sends, hears = filtered(mask)
    with sends, hears:
        sends.send(event)
        heard = b""
        with suppress(BlockingIOError):
            heard = hears.recv(4096)
        assert heard == (event if is_heard else b"")


def test_who_ends_by_the_thousand_with_1_crowds_out_no_crash() -> None:
    ends = Ends.__new__(Ends)
    (kills, signals), (fails, others) = filtered(SIGNAL), filtered(STATUS)
    ends._sockets = [signals, others]
    with kills, signals, fails, others:
        fails.setblocking(False)
        for number in range(5000):
            with suppress(BlockingIOError):
                fails.send(message(EXIT, number, number, 256))
        for event in (message(NONE, 0, 0, 0), message(EXIT, 8, 8, 9)):
            kills.send(event)
        found = list(ends.read())
        assert Ended(5.0, 8, 9) in found
        assert len(found) <= ends_read._MOST + 1


@pytest.mark.skipif(os.geteuid() != 0, reason="the kernel tells root alone")
def test_how_real_processes_end_is_heard() -> None:
    """Where the kernel does not tell (a container), it says so at once."""
    try:
        ends = Ends()
    except OSError as error:
        assert error.errno or isinstance(error, TimeoutError)  # noqa: PT017 - both are right
        return
    wanted = {}
    with closing(ends):
        for program in ("raise SystemExit(7)", "import os; os.kill(os.getpid(), 9)", "pass"):
            child = subprocess.Popen([sys.executable, "-c", program])
            status = child.wait()
            if status:
                wanted[child.pid] = status << 8 if status > 0 else -status
        found = {one.pid: one.status for one in ends.read() if one.pid in wanted}
    assert found == wanted
    assert signal.SIGKILL in found.values()
