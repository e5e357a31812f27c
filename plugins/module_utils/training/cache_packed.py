# SPDX-License-Identifier: BSD-2-Clause
"""Tell whether compressed files end as they must, without unpacking them: zstd, lz4, xz.

Sources: RFC 8878 for zstd, the frame format 1.6.4 of lz4, the file format 1.2.1 of xz.
"""

from __future__ import annotations

from .file_verdict import CORRUPT, EMPTY, SOUND, UNSEEN, Verdict, read_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .file_verdict import Read

GZIP = b"\x1f\x8b"
_ZSTD, _LZ4, _XZ, _BZIP2 = b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18", b"\xfd7zXZ\0", b"BZh"
_MAGICS = (GZIP, _ZSTD, _LZ4, _XZ)
_SKIPPED = b"\x2a\x4d\x18"  # After a byte from 0x50 to 0x5f.
_MOST_BLOCKS = 100_000
_CUT = Verdict(CORRUPT, "ends in the middle of its compressed data")
_NO_BLOCK = Verdict(CORRUPT, "holds something other than compressed blocks")
_TOO_MANY = Verdict(UNSEEN, f"has more than {_MOST_BLOCKS} blocks")


def is_packed(head: bytes) -> bool:
    """Tell by its first bytes whether a file is compressed."""
    return head.startswith((*_MAGICS, _BZIP2))


def check_packed(read: Read, size: int) -> Verdict:
    """Return whether a compressed file is there to its end; of gzip only unpacking tells."""
    head = read(0, 6)
    if size == 0:
        return EMPTY
    if head.startswith(_ZSTD) or _is_skipped(head):
        return _check_frames(read, size)
    if head.startswith(_LZ4):
        return _check_frames(read, size)
    if head == _XZ:
        return _check_xz(read, size)
    if head.startswith((GZIP, _BZIP2)):
        return Verdict(UNSEEN, "is compressed, and was not unpacked")
    if not head.strip(b"\0") or any(magic.startswith(head) for magic in _MAGICS):
        return Verdict(CORRUPT, "does not begin as a compressed file")
    return Verdict(UNSEEN, "is compressed in a way that is not known")


def _is_skipped(head: bytes) -> bool:
    return head[1:4] == _SKIPPED and head[0] >> 4 == 5


def _check_frames(read: Read, size: int) -> Verdict:
    """Step from frame to frame; there may be several."""
    at = 0
    while at < size:
        head = read(at, 32)
        if head.startswith(_ZSTD):
            end = _pass_zstd(read, at, head, size)
        elif head.startswith(_LZ4):
            end = _pass_lz4(read, at, head, size)
        elif _is_skipped(head):
            end = at + 8 + read_number(head, 4, 4)
        else:
            return _NO_BLOCK
        if isinstance(end, Verdict):
            return end
        at = end
    return Verdict(SOUND) if at == size else _CUT


def _pass_zstd(read: Read, at: int, head: bytes, size: int) -> int | Verdict:
    """Return where a frame ends: each block states its length, and whether it is the last."""
    flags = head[4] if len(head) > 4 else 0
    is_single, of_dictionary, of_size = flags >> 5 & 1, (0, 1, 2, 4)[flags & 3], flags >> 6
    at += 5 + (not is_single) + of_dictionary + ((is_single, 2, 4, 8)[of_size])
    for _block in range(_MOST_BLOCKS):
        raw = read(at, 3)
        if len(raw) < 3:
            return _CUT
        block = read_number(raw, 0, 3)
        kind = block >> 1 & 3
        if kind == 3:
            return _NO_BLOCK
        at += 3 + (1 if kind == 1 else block >> 3)
        if at > size:
            return _CUT
        if block & 1:
            return at + 4 * (flags >> 2 & 1)
    return _TOO_MANY


def _pass_lz4(read: Read, at: int, head: bytes, size: int) -> int | Verdict:
    flags = head[4] if len(head) > 4 else 0
    at += 7 + 8 * (flags >> 3 & 1) + 4 * (flags & 1)
    for _block in range(_MOST_BLOCKS):
        raw = read(at, 4)
        if len(raw) < 4:
            return _CUT
        length = read_number(raw, 0, 4) & 0x7FFFFFFF
        if not length:
            return at + 4 + 4 * (flags >> 2 & 1)
        at += 4 + length + 4 * (flags >> 4 & 1)
        if at > size:
            return _CUT
    return _TOO_MANY


def _check_xz(read: Read, size: int) -> Verdict:
    """See that the file ends with a footer; zeros may follow it."""
    start = max(0, size - 4096)
    tail = read(start, size - start)
    if not tail.strip(b"\0"):
        return Verdict(CORRUPT, "ends in zeros")
    return Verdict(SOUND) if tail.rstrip(b"\0").endswith(b"YZ") and size % 4 == 0 else _CUT
