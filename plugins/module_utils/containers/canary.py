# SPDX-License-Identifier: BSD-2-Clause
"""A program that pauses, made on the spot, for a container that is only looked at."""

from __future__ import annotations

import struct

_ADDRESS = 0x400000
_HEADERS = 120  # The ELF header's 64 bytes and one program header's 56.
_SLEEP = (120).to_bytes(8, "little") + bytes(8)  # A struct timespec; longer than the time limit.
_CODE = {
    # nanosleep(timespec after the code, NULL); exit(0)
    "x86_64": (62, bytes.fromhex("488d3d0e00000031f66a23580f056a3c5831ff0f05")),
    "aarch64": (
        183,
        bytes.fromhex("00010010010080d2a80c80d2010000d4000080d2a80b80d2010000d41f2003d5"),
    ),
}


def refuse_machine(machine: str) -> str:
    """Return why no container can be tried on a machine; nothing where one can."""
    return "" if machine in _CODE else f"there is no canary program for {machine}"


def build_program(machine: str) -> bytes:
    """Return a static ELF program that sleeps for two minutes and exits: elf(5).

    :param machine: As ``uname -m`` names it: ``x86_64`` or ``aarch64``.
    """
    number, code = _CODE[machine]
    size = _HEADERS + len(code) + len(_SLEEP)
    file_header = struct.pack(
        "<16sHHIQQQIHHHHHH",
        *(b"\x7fELF\x02\x01\x01", 2, number, 1, _ADDRESS + _HEADERS),
        *(64, 0, 0, 64, 56, 1, 0, 0, 0),
    )
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, _ADDRESS, _ADDRESS, size, size, 0x10000)
    return file_header + segment + code + _SLEEP
