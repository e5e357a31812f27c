"""A loader without torch, whose workers pass each tensor as a descriptor.

``pass_descriptors.py WORKERS PREFETCH TENSORS [BYTES]``. The main process holds what a DataLoader
does with its default way of sharing, and fails as it does where its limit is too low. ``BYTES`` of
/dev/shm are written besides.
"""

# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import errno
import os
import socket
import sys
import tempfile


def start_worker(tensors: int) -> tuple[socket.socket, int, int, int]:
    """Fork a worker that answers each byte with a batch; return what the main process has of it."""
    ours, theirs = socket.socketpair()
    more = (*os.pipe(), os.dup(0))
    if os.fork():
        theirs.close()
        return (ours, *more)
    ours.close()
    with tempfile.TemporaryFile(dir="/dev/shm") as file:
        while theirs.recv(1):
            socket.send_fds(theirs, [b"batch"], [file.fileno()] * tensors)
    os._exit(0)


def main(workers: int, prefetch: int, tensors: int, size: int = 0) -> None:
    """Hold as many batches as are under way, and say so.

    :raises OSError: Where the limit does not let it; the kernel drops descriptors without a word.
    """
    started = [start_worker(tensors) for _number in range(workers)]
    held: list[int] = []
    for number in range((workers - 1) * prefetch + 2):
        link = started[number % workers][0]
        link.send(b"x")
        handles = socket.recv_fds(link, 5, tensors)[1]
        if len(handles) < tensors:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        held += handles
    with tempfile.TemporaryFile(dir="/dev/shm") as file:
        os.posix_fallocate(file.fileno(), 0, size or 1)
    print(f"trained with {len(os.listdir('/proc/self/fd'))} descriptors")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
