# SPDX-License-Identifier: BSD-2-Clause
"""Read the heads of files of weights: an archive of torch's or of numpy's, or safetensors."""

from __future__ import annotations

import json

from .file_verdict import CORRUPT, EMPTY, SOUND, UNSEEN, Verdict, read_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .file_verdict import Read

_LOCAL, _CENTRAL, _END = b"PK\3\4", b"PK\1\2", b"PK\5\6"
_LOCATOR_64, _END_64 = b"PK\6\7", b"PK\6\6"
_PICKLE = b"\x80"
_LOCAL_SIZE, _CENTRAL_SIZE, _END_SIZE = 30, 46, 22
_LOCATOR_SIZE, _END_64_SIZE = 20, 56
_LONGEST_COMMENT = 65535
_LARGEST_DIRECTORY = 2**26
_FULL = 0xFFFFFFFF  # The number stands in the extra field.
_ZIP_64 = 1


def check_pt(read: Read, size: int) -> Verdict:
    """Return whether a file of this size is a whole archive of torch.save, a zip (APPNOTE 6.3).

    Its directory is written last, so that whatever cuts the file short is seen. What changes bytes
    of the data and not their number is not; the checksums of the archive tell that.
    """
    if size == 0:
        return EMPTY
    head = read(0, 4)
    if head != _LOCAL:
        return Verdict(CORRUPT, "is neither a zip archive nor a pickle")
    return _check_zip(read, size, b"/data.pkl")


def check_npz(read: Read, size: int) -> Verdict:
    """Return whether a file is a whole archive of numpy.savez, a zip that may hold nothing."""
    if size == 0:
        return EMPTY
    head = read(0, 4)
    if head in (_LOCAL, _END):
        return _check_zip(read, size)
    if head[:1] == _PICKLE:
        return Verdict(UNSEEN, "is a pickle under the name of an archive")
    return Verdict(CORRUPT, "is not a zip archive")


def is_zip(head: bytes) -> bool:
    """Tell by its first bytes whether a file is a zip archive, or was to become one."""
    return head.startswith((_LOCAL, _END))


def _check_zip(read: Read, size: int, needed: bytes = b"") -> Verdict:
    found = _find_directory(read, size)
    if found is None:
        return Verdict(CORRUPT, "has no central directory: its end is missing")
    start, length, count = found
    if length > _LARGEST_DIRECTORY:
        return Verdict(CORRUPT, "has a central directory of more than 64 MiB")
    return _check_entries(read, start, read(start, length), count, needed)


def _find_directory(read: Read, size: int) -> tuple[int, int, int] | None:
    """Return where the central directory is, its length and its number of entries."""
    for length in (_END_SIZE, _END_SIZE + _LONGEST_COMMENT):
        start = max(0, size - length)
        tail = read(start, length)
        at = tail.rfind(_END)
        if at >= 0 and len(tail) - at >= _END_SIZE:
            end = tail[at : at + _END_SIZE]
            whole = at + _END_SIZE + read_number(end, 20, 2) <= len(tail)
            return _read_end(read, start + at, end) if whole else None
    return None


def _read_end(read: Read, at: int, end: bytes) -> tuple[int, int, int] | None:
    """Read the end of the directory, of 64 bits where there is one; it must touch the directory."""
    count, length, start = (read_number(end, *where) for where in ((10, 2), (12, 4), (16, 4)))
    locator = read(at - _LOCATOR_SIZE, _LOCATOR_SIZE) if at >= _LOCATOR_SIZE else b""
    if locator[:4] == _LOCATOR_64:
        at = read_number(locator, 8, 8)
        large = read(at, _END_64_SIZE)
        if large[:4] != _END_64 or len(large) < _END_64_SIZE:
            return None
        count, length, start = (read_number(large, where, 8) for where in (32, 40, 48))
    return (start, length, count) if start + length == at else None


def _check_entries(read: Read, start: int, directory: bytes, count: int, needed: bytes) -> Verdict:
    """See that every file of the archive lies before the directory, and the needed is among them.

    :param needed: What the name of one of them ends with.
    """
    at, seen, has_needed = 0, 0, not needed
    while directory[at : at + 4] == _CENTRAL and len(directory) - at >= _CENTRAL_SIZE:
        name_size, extra_size, comment_size = (
            read_number(directory, at + where, 2) for where in (28, 30, 32)
        )
        name_at = at + _CENTRAL_SIZE
        name = directory[name_at : name_at + name_size]
        extra_at = name_at + name_size
        extra = directory[extra_at : extra_at + extra_size]
        length, offset = _read_place(directory[at : at + _CENTRAL_SIZE], extra)
        if offset + _LOCAL_SIZE + name_size + length > start or read(offset, 4) != _LOCAL:
            return Verdict(CORRUPT, "has entries that lie outside of it")
        has_needed = has_needed or name.endswith(needed)
        at = extra_at + extra_size + comment_size
        seen += 1
    if at != len(directory) or seen != count:
        return Verdict(CORRUPT, "has a damaged central directory")
    return Verdict(SOUND) if has_needed else Verdict(CORRUPT, "has no data.pkl in it")


def _read_place(entry: bytes, extra: bytes) -> tuple[int, int]:
    """Return how many bytes a file of the archive has in it, and where."""
    length, plain, offset = (read_number(entry, where, 4) for where in (20, 24, 42))
    if _FULL not in (length, plain, offset):
        return length, offset
    at = 0
    while at < len(extra) and read_number(extra, at, 2) != _ZIP_64:
        at += 4 + read_number(extra, at + 2, 2)
    at += 4
    wide = []
    for number in (plain, length, offset):  # In this order, those that did not fit.
        wide.append(read_number(extra, at, 8) if number == _FULL else number)
        at += 8 * (number == _FULL)
    return wide[1], wide[2]


_LARGEST_HEADER = 100_000_000  # As safetensors itself refuses (MAX_HEADER_SIZE).
_METADATA = "__metadata__"
_WIDTHS = {
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3"), 1),
    **dict.fromkeys(("F16", "BF16", "I16", "U16"), 2),
    **dict.fromkeys(("F32", "I32", "U32"), 4),
    **dict.fromkeys(("F64", "I64", "U64"), 8),
}
"""Bytes of a number by its type; newer types need not fill bytes."""


def check_safetensors(read: Read, size: int) -> Verdict:
    """Return whether a file of this size holds all that its header states."""
    if size < 8:
        return EMPTY if size == 0 else Verdict(CORRUPT, "ends within its first 8 bytes")
    length = read_number(read(0, 8), 0, 8)
    if length > _LARGEST_HEADER or 8 + length > size:
        return Verdict(CORRUPT, "ends within its header, or begins with something else")
    try:
        header = json.loads(read(8, length).decode("utf-8"))
        end = _find_end(header)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return Verdict(CORRUPT, "has a header that states no tensors")
    if 8 + length + end != size:
        return Verdict(CORRUPT, f"has {size} bytes, and its header states {8 + length + end}")
    return Verdict(SOUND)


def _find_end(header: dict[str, dict[str, Any]]) -> int:
    """Return where the last tensor ends, after the header; each begins where another ends.

    :raises ValueError, TypeError, LookupError: If the header states something else.
    """
    places = []
    for name, tensor in header.items():
        if name != _METADATA:
            start, end = tensor["data_offsets"]
            if not 0 <= start <= end or _count_bytes(tensor) not in (None, end - start):
                raise ValueError(name)
            places.append((start, end))
    last = 0
    for start, end in sorted(places):
        if start != last:
            raise ValueError(start)
        last = end
    return last


def _count_bytes(tensor: dict[str, Any]) -> int | None:
    """Return how many bytes a tensor of a known type takes."""
    number = _WIDTHS.get(tensor["dtype"])
    for length in tensor["shape"] if number else ():
        number *= length
    return number
