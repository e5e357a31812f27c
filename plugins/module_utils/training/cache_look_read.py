# SPDX-License-Identifier: BSD-2-Clause
"""Look at one open file as its format asks for: by its ends, or, where all is read, by its sums."""

from __future__ import annotations

import os
import zlib

from .cache_formats import check_arrow, check_jsonl, check_npy, check_parquet
from .cache_packed import is_packed
from .cache_packed_read import Patience, check_compressed
from .cache_pickle_read import check_pickle
from .cache_tar import check_tar, is_tar
from .file_verdict import (
    ARROW,
    CORRUPT,
    JSONL,
    NPY,
    NPZ,
    PACKED,
    PARQUET,
    PICKLE,
    PT,
    SAFETENSORS,
    SOUND,
    TAR,
    UNSEEN,
    Verdict,
    find_kind,
    find_stand_in,
)
from .weights_file import check_npz, check_pt, check_safetensors, is_zip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .file_verdict import Read

_HEAD = 512
_ALSO_PACKED = (PT, PICKLE, NPY, JSONL, TAR, PACKED)
"""What programs compress and keep the name of, or read whether it is compressed or not."""


def check_open_file(
    handle: int, kind: str, deep: bool = False, patience: Patience | None = None
) -> Verdict:
    """Return what a look says of an open file.

    :param deep: Whether all of it is read, where its format has sums.
    :param patience: How long compressed files may be unpacked.
    :raises OSError, MemoryError: If it cannot be read.
    """

    def read(offset: int, size: int) -> bytes:
        return os.pread(handle, size, offset) if offset < length else b""

    length = os.fstat(handle).st_size
    verdict = _look(read, length, kind, deep, patience or Patience(None if deep else 1.0))
    if deep and verdict.status == SOUND and is_zip(read(0, 4)):
        return _check_sums(handle)
    return verdict


def _look(read: Read, size: int, kind: str, deep: bool, patience: Patience) -> Verdict:
    head = read(0, _HEAD)
    if kind == PT and is_zip(head):  # Nearly all of them.
        return check_pt(read, size)
    stand_in = find_stand_in(head[:64])
    if stand_in is not None:
        return stand_in
    if kind == PACKED or (kind in _ALSO_PACKED and is_packed(head)):
        return check_compressed(read, size, patience, _look_inside)
    if kind == TAR:
        return check_tar(read, size, deep)
    if kind in (PT, PICKLE):
        return _look_at_objects(read, size, kind, head)
    return _FORMATS[kind](read, size)


def _look_at_objects(read: Read, size: int, kind: str, head: bytes) -> Verdict:
    """Look at what torch.save or pickle wrote, in whichever of their formats."""
    if not size or is_zip(head) or (kind == PT and head[:1] not in _PICKLES):
        return check_tar(read, size) if is_tar(head) else check_pt(read, size)
    verdict = check_pickle(read, size)
    if kind == PT and head[:1] != b"\x80" and verdict.status != SOUND:
        return check_pt(read, size)
    return verdict


_PICKLES = (b"\x80", *(bytes((one,)) for one in b"()]}cNIFSVLlpdt"))
"""What a pickle begins with; those of protocol 0 and 1 with an operation of any kind."""


def _look_inside(read: Read, size: int) -> Verdict:
    """Look at what was compressed, where its first bytes tell what it is."""
    head = read(0, _HEAD)
    if is_zip(head):
        return check_npz(read, size)
    if is_tar(head):
        return check_tar(read, size)
    return check_npy(read, size) if head.startswith(b"\x93NUMPY") else Verdict(SOUND)


_FORMATS: Mapping[str, Callable[[Read, int], Verdict]] = {
    SAFETENSORS: check_safetensors,
    NPY: check_npy,
    NPZ: check_npz,
    PARQUET: check_parquet,
    ARROW: check_arrow,
    JSONL: check_jsonl,
}


def check_named_file(handle: int, name: str) -> Verdict | None:
    """Return what a cheap look says of an open file; nothing where its kind is not known."""
    kind = find_kind(name)
    return check_open_file(handle, kind) if kind else None


def load_archives() -> None:
    """Load what unpacks archives, for a process that will not be able to read Python's files."""
    import zipfile  # noqa: F401 - needed only where all is read

    "".encode("cp437")  # The names in an archive are written so.


_NO_SUMS = Verdict(UNSEEN, "was written without checksums")
"""As by torch where ``torch.utils.serialization.config.save.compute_crc32`` is false."""


def _check_sums(handle: int) -> Verdict:
    """Compare the checksums of a zip archive with its content."""
    import zipfile  # Needed only where all is read.

    try:
        with os.fdopen(os.dup(handle), "rb") as file, zipfile.ZipFile(file) as archive:
            if not any(row.CRC for row in archive.infolist() if row.file_size):
                return _NO_SUMS
            bad = archive.testzip()
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as exc:
        return Verdict(CORRUPT, f"cannot be unpacked: {exc}")
    return Verdict(SOUND) if bad is None else Verdict(CORRUPT, f"has a wrong checksum at {bad}")
