# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a command to which some system calls are refused with EPERM, as old container engines do.

Words: their numbers, ``--``, the command. Source: seccomp(2), on x86-64.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, MODE_FILTER = 38, 22, 2
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ERRNO, ALLOW, EPERM = 0x50000, 0x7FFF0000, 1


def main() -> None:
    at = sys.argv.index("--")
    rows = [(LOAD, 0, 0, 0)]
    for number in map(int, sys.argv[1:at]):
        rows += [(EQUAL, 0, 1, number), (RETURN, 0, 0, ERRNO | EPERM)]
    rows.append((RETURN, 0, 0, ALLOW))
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
    head = struct.pack("HxxxxxxP", len(rows), ctypes.addressof(program))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.prctl(PR_SET_SECCOMP, MODE_FILTER, ctypes.create_string_buffer(head)):
        raise OSError(ctypes.get_errno(), "seccomp")
    os.execvp(sys.argv[at + 1], sys.argv[at + 1 :])


main()
