# SPDX-License-Identifier: BSD-2-Clause
"""What fstab(5) makes of /dev/shm at a boot: the first line for it counts, as mount(8) finds it."""

from __future__ import annotations

import re

from ..core.values import UNLIMITED, Declaration, NamedTuple

SHM = "/dev/shm"  # noqa: S108 - the kernel's, and no file of ours
FSTAB = "/etc/fstab"
PAGE = 4096
_SIZE = re.compile(r"(0[xX][0-9a-fA-F]{1,40}|0[0-7]{0,40}|[1-9][0-9]{0,39})([kKmMgGtTpPeE]?)(%?)")
_ESCAPE = re.compile(r"\\([0-7]{3})")
_LINE = re.compile(r"\s*([^\s#]\S*)\s+(\S+)\s+\S+\s+(\S+)")


QUOTA_SHARE = 80
"""Of each hundred bytes, what systemd since 258 lets an ordinary user take of a tmpfs."""


class Quota(NamedTuple):
    """How much a user may take of a tmpfs, and has taken, in bytes.

    ``is_set`` tells whether the kernel holds to it now, or will from the next first login on.
    """

    limit: int
    used: int
    is_set: bool = True

    @property
    def free(self) -> int:
        return max(self.limit - self.used, 0)


def foresee_quota(size: int) -> int:
    """Return what systemd lets an ordinary user take of a tmpfs of a size."""
    return size // 100 * QUOTA_SHARE


def find_size_for(quota: int) -> int:
    """Return the least size of a tmpfs that gives a user so much."""
    return -(-quota // QUOTA_SHARE) * 100


def find_lines(text: str, memory: int) -> list[Declaration]:
    """Return fstab's lines for /dev/shm, the first of which counts; each with its size in bytes.

    :param memory: The host's memory in bytes; half of it is what a line without a size gives.
    """
    found = []
    for number, row in enumerate(text.split("\n"), start=1):
        match = _LINE.match(row)
        target = _ESCAPE.sub(lambda code: chr(int(code[1], 8)), match[2]) if match else ""
        if match and target.rstrip("/") == SHM:
            size = _read_size(match[3], memory)
            found.append(Declaration(FSTAB, number, row, size))
    return found


def _read_size(options: str, memory: int) -> int:
    """Return the size that mount options give; the last that the kernel can read counts."""
    size = find_default(memory)
    for option in options.split(","):
        name, _equals, value = option.partition("=")
        blocks = parse_tmpfs_size(value, memory) if name in ("size", "nr_blocks") else None
        if blocks is not None:
            size = blocks * PAGE if name == "nr_blocks" and blocks < UNLIMITED else blocks
    return size


def parse_tmpfs_size(text: str, memory: int) -> int | None:
    """Return a size as tmpfs(5) takes it, in bytes; 0 means no limit, and begins an octal number.

    Source: ``memparse()`` of the kernel.
    """
    match = _SIZE.fullmatch(text)
    if match is None or (match[2] and match[3]):
        return None
    is_octal = match[1][0] == "0" and match[1][1:2] not in ("x", "X")
    number = int(match[1], 8 if is_octal else 0)
    if match[3]:
        return memory * number // 100
    power = " kmgtpe".index(match[2].lower() or " ")
    return (number << 10 * power) or UNLIMITED


def find_default(memory: int) -> int:
    """Return the size of a /dev/shm for which nobody states one."""
    return memory // 2


def format_line(size: int) -> str:
    """Return the line of fstab that gives a size."""
    return f"tmpfs {SHM} tmpfs rw,nosuid,nodev,size={size} 0 0"
