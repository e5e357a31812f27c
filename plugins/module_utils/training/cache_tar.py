# SPDX-License-Identifier: BSD-2-Clause
"""Tell whether a tar archive is there to its end, by the heads of its members.

Sources: tar(5) and pax(1) for the formats, tarfile of Python for what a reader makes of them.
"""

from __future__ import annotations

import re

from .file_verdict import CORRUPT, EMPTY, SOUND, UNSEEN, Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .file_verdict import Read

_BLOCK = 512
_FEW = 1000
_LONGEST_TAIL = 2**16
_EMPTY_TYPES = b"123456"  # Links, devices, folders and pipes: a size that is stated means nothing.
_PAX, _SPARSE = b"x", b"S"
_MOST_ZEROS = 2**20  # After the last member: programs fill up 10 KiB, seldom more.
_SIZE = re.compile(rb"[0-9]+ size=([0-9]+)\n")
_MOST_PAX = 2**20


def is_tar(head: bytes) -> bool:
    """Tell by its first block whether a file is a tar archive."""
    return len(head) == _BLOCK and bool(head.strip(b"\0")) and not _find_trouble(head, 0)


def check_tar(read: Read, size: int, deep: bool = False) -> Verdict:
    """Return whether all members of an archive lie in it.

    Of many members only the first are looked at where the archive ends as it must.

    :param deep: Whether each member is looked at.
    """
    if size == 0:
        return EMPTY
    at, number, stated = 0, 0, None
    while at < size:
        head = read(at, _BLOCK)
        if not head.strip(b"\0"):
            return _judge_end(at, size)
        trouble = _find_trouble(head, at)
        if trouble:
            return Verdict(CORRUPT, trouble)
        number += 1
        if number == _FEW and not deep and _ends_in_zeros(read, size):
            return Verdict(SOUND)
        length = stated if stated is not None else _read_size(head)
        kind = head[156:157]
        stated = _read_pax(read(at + _BLOCK, min(length, _MOST_PAX))) if kind == _PAX else None
        at = _pass_member(read, at, head, length)
        if at > size:
            return Verdict(CORRUPT, f"ends within {_name(head)}")
    return Verdict(UNSEEN, "has no end mark; members may be missing")


def _judge_end(at: int, size: int) -> Verdict:
    """Judge an archive by the zeros after its last member: a crash leaves many."""
    if size - at <= _MOST_ZEROS:
        return Verdict(SOUND)
    if at == 0:
        return Verdict(CORRUPT, "begins with zeros")
    return Verdict(UNSEEN, f"has {size - at} bytes of zeros at its end; members may be missing")


def _find_trouble(head: bytes, at: int) -> str:
    """Return why a block is not the head of a member; nothing where it is."""
    if len(head) < _BLOCK:
        return "ends within the head of a member"
    plain = head[:148] + b" " * 8 + head[156:]
    if _read_number(head[148:156]) in (sum(plain), _sum_signed(plain)):
        return ""
    return f"holds something other than a member at byte {at}" if at else "is not a tar archive"


def _sum_signed(block: bytes) -> int:
    return sum(byte - 256 if byte > 127 else byte for byte in block)


def _read_number(field: bytes) -> int:
    """Return a number of a head: octal digits, or of 256 where it is too large; -1 for neither."""
    if field[:1] in (b"\x80", b"\xff"):
        return int.from_bytes(field[1:], "big")
    text = field.replace(b"\0", b" ").split()
    try:
        return int(text[0], 8) if text else 0
    except ValueError:
        return -1


def _read_size(head: bytes) -> int:
    return max(_read_number(head[124:136]), 0)


def _read_pax(records: bytes) -> int | None:
    """Return the size of the next member, where it is stated apart."""
    found = _SIZE.search(records)
    return int(found[1]) if found else None


def _pass_member(read: Read, at: int, head: bytes, length: int) -> int:
    """Return where the next head is."""
    kind, at = head[156:157], at + _BLOCK
    if kind == _SPARSE and head[482:483] == b"\1":
        while read(at + 504, 1) == b"\1":
            at += _BLOCK
        at += _BLOCK
    if kind and kind in _EMPTY_TYPES:
        return at
    return at + -(-length // _BLOCK) * _BLOCK


def _ends_in_zeros(read: Read, size: int) -> bool:
    """Tell whether an archive ends with two empty blocks, and not with far too many of them."""
    start = max(0, size - _LONGEST_TAIL)
    zeros = size - start - len(read(start, size - start).rstrip(b"\0"))
    return size % _BLOCK == 0 and 2 * _BLOCK <= zeros < _LONGEST_TAIL


def _name(head: bytes) -> str:
    return head[:100].split(b"\0")[0].decode("utf-8", "replace") or "a member"
