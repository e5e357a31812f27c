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


_NUMBER = r"[0-9]{1,20}"
_VALUES = {
    **dict.fromkeys(("size", "nr_blocks"), _SIZE.pattern),
    "nr_inodes": rf"{_NUMBER}[kKmMgG]?",
    "mode": "[0-7]{1,4}",
    "uid": _NUMBER,
    "gid": _NUMBER,
    "huge": "never|always|within_size|advise",
    "mpol": (
        r"default|local|(?:prefer|prefer_many|bind|(?:weighted_)?interleave)"
        r"(?:=(?:static|relative))?(?::[0-9-]+)?"
    ),
}
_OF_ALL = "atime diratime iversion lazytime mand relatime strictatime auto dev exec suid symfollow"
_ALONE = "async dirsync sync defaults ro rw group owner users silent loud remount nofail _netdev"
_OF_TMPFS = "inode32 inode64 noswap"
_WITHOUT_VALUE = frozenset(
    (
        *(f"{no}{name}" for name in f"{_OF_ALL} user".split() for no in ("", "no")),
        *f"{_ALONE} {_OF_TMPFS}".split(),
    )
)
_FREE = ("x-", "X-", "comment", "context", "fscontext", "defcontext", "rootcontext")
"""What tmpfs and every file system take as a mount option."""

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


def find_refused_option(line: Declaration) -> str:
    """Return the first option of a line of fstab that tmpfs may refuse, and the remount with it.

    Sources: tmpfs(5) and the options of any file system of mount(8).
    """
    match = _LINE.match(line.text)
    options = match[3].split(",") if match else []
    return next((one for one in options if one and not _is_taken(one)), "")


def _is_taken(option: str) -> bool:
    name, equals, value = option.partition("=")
    if name in _VALUES:
        return bool(equals) and re.fullmatch(_VALUES[name], value) is not None
    return name in _WITHOUT_VALUE or name.startswith(_FREE)


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
