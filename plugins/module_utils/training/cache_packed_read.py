# SPDX-License-Identifier: BSD-2-Clause
"""Unpack what gzip made, and look at what is in it, for no longer than a look may take.

Source: RFC 1952. SimpleTuner writes the files of its cache so, under the ending that torch has.
"""

from __future__ import annotations

import time
import zlib

from .cache_packed import GZIP, check_packed
from .file_verdict import CORRUPT, SOUND, UNSEEN, Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .file_verdict import Read

_AT_ONCE = 2**18
_KEPT = 64 * 2**20
"""Bytes of what was unpacked that are kept, to be looked at."""
_GZIP_FORMAT = 31  # For zlib: with the head and the checksum of gzip.
_ALLOWED = 20.0


class Patience:
    """How many seconds files may be unpacked, all together; ``None`` for as long as it takes."""

    def __init__(self, seconds: float | None = _ALLOWED) -> None:
        self._left, self._started = seconds, 0.0

    @property
    def is_over(self) -> bool:
        return self._left is not None and time.monotonic() - self._started > self._left

    def __enter__(self) -> Patience:
        self._started = time.monotonic()
        return self

    def __exit__(self, *error: object) -> None:
        if self._left is not None:
            self._left -= time.monotonic() - self._started


def check_compressed(
    read: Read, size: int, patience: Patience, look_into: Callable[[Read, int], Verdict]
) -> Verdict:
    """Return whether a compressed file is whole, and of gzip's what it holds.

    :param look_into: Is asked about the content, where that is small enough to be kept.
    """
    if not size or read(0, 2) != GZIP:
        return check_packed(read, size)
    kept, made = [], 0
    try:
        with patience:
            for part in _unpack(read):
                made += len(part)
                if made <= _KEPT:
                    kept.append(part)
                if patience.is_over:
                    return Verdict(UNSEEN, "is compressed, and unpacking it takes too long")
    except EOFError:
        return Verdict(CORRUPT, "ends in the middle of its compressed data")
    except zlib.error as error:
        return Verdict(CORRUPT, f"cannot be unpacked: {error}")
    if made > _KEPT:
        return Verdict(SOUND)
    content = b"".join(kept)
    return look_into(lambda offset, length: content[offset : offset + length], len(content))


def _unpack(read: Read) -> Iterator[bytes]:
    """Yield what is in a file; several may have been joined, and zeros may fill it up (gzip(1)).

    :raises EOFError: If it ends too early.
    :raises zlib.error: If it holds something else.
    """
    at, rest, unpacker = 0, b"", zlib.decompressobj(_GZIP_FORMAT)
    while True:
        if not rest:
            rest = read(at, _AT_ONCE)
            at += len(rest)
        if unpacker.eof:
            if not rest.strip(b"\0"):
                return
            unpacker = zlib.decompressobj(_GZIP_FORMAT)
        is_last = not rest
        part = unpacker.decompress(rest, _AT_ONCE)
        rest = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
        if is_last and not unpacker.eof:
            raise EOFError
        yield part
