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


@pytest.fixture
def filtered() -> tuple[socket.socket, socket.socket]:
    """A pair of sockets, of which the second hears through our filter: any kind has one."""
    sends, hears = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    text = b"".join(struct.pack("=HBBI", *one) for one in ends_read._list_steps())
    steps = ctypes.create_string_buffer(text, len(text))
    program = struct.pack("@HP", len(text) // 8, ctypes.addressof(steps))
    hears.setsockopt(socket.SOL_SOCKET, ends_read._ATTACH, program)
    hears.setblocking(False)
    return sends, hears


@pytest.mark.parametrize(
    ("event", "is_heard"),
    [
        (message(EXIT, 7, 7, 256), True),
        (message(EXIT, 7, 7, 9), True),
        (message(EXIT, 7, 7, 0), False),
        (message(EXIT, 8, 7, 9), False),
        (message(FORK, 7, 7, 256), False),
        (message(NONE, 0, 0, 0), True),
        (message(EXIT, 2**22 - 1, 2**22 - 1, 0x8B), True),
    ],
)
def test_the_kernel_leaves_out_what_nobody_needs(
    filtered: tuple[socket.socket, socket.socket], event: bytes, is_heard: bool
) -> None:
    sends, hears = filtered
    with sends, hears:
        sends.send(event)
        heard = b""
        with suppress(BlockingIOError):
            heard = hears.recv(4096)
        assert heard == (event if is_heard else b"")


def test_what_is_heard_is_read_whatever_was_lost(
    filtered: tuple[socket.socket, socket.socket],
) -> None:
    sends, hears = filtered
    ends = Ends.__new__(Ends)
    ends._socket = hears
    with sends, hears:
        for event in (message(EXIT, 7, 7, 256), message(NONE, 0, 0, 0), message(EXIT, 8, 8, 9)):
            sends.send(event)
        assert list(ends.read()) == [Ended(5.0, 7, 256), Ended(5.0, 8, 9)]
        assert list(ends.read()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="the kernel tells root alone")
def test_how_real_processes_end_is_heard() -> None:
    """Where the kernel does not tell (a container), it says so at once."""
    try:
        ends = Ends()
    except OSError as error:
        assert error.errno or isinstance(error, TimeoutError)  # noqa: PT017 - both are right
        return
    wanted = {}
    with closing(ends._socket):
        for program in ("raise SystemExit(7)", "import os; os.kill(os.getpid(), 9)", "pass"):
            child = subprocess.Popen([sys.executable, "-c", program])
            status = child.wait()
            if status:
                wanted[child.pid] = status << 8 if status > 0 else -status
        found = {one.pid: one.status for one in ends.read() if one.pid in wanted}
    assert found == wanted
    assert signal.SIGKILL in found.values()
