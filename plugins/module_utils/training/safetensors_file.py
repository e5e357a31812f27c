# SPDX-License-Identifier: BSD-2-Clause
"""See from its header whether a safetensors file is whole: the header states where the data end."""

from __future__ import annotations

import json

from .file_verdict import CORRUPT, SOUND, Verdict, read_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .file_verdict import Read

_LARGEST_HEADER = 100_000_000  # As safetensors itself refuses (MAX_HEADER_SIZE).
_METADATA = "__metadata__"


def check_safetensors(read: Read, size: int) -> Verdict:
    """Return whether a file of this size holds all that its header states."""
    if size < 8:
        return Verdict(CORRUPT, "is empty" if size == 0 else "ends within its first 8 bytes")
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


def _find_end(header: dict[str, dict[str, list[int]]]) -> int:
    """Return where the last tensor ends, after the header."""
    ends = [0]
    for name, tensor in header.items():
        if name != _METADATA:
            start, end = tensor["data_offsets"]
            if not 0 <= start <= end:
                raise ValueError(name)
            ends.append(end)
    return max(ends)
