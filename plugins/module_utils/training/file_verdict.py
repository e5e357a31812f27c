# SPDX-License-Identifier: BSD-2-Clause
"""What a cheap look at one file says of it, and which files are looked at."""

from __future__ import annotations

import re
from collections.abc import Callable

from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    Read = Callable[[int, int], bytes]
    """Returns bytes from an offset on, as many as are asked for or there are."""

SOUND, CORRUPT, UNSEEN, LEFTOVER = "sound", "corrupt", "unknown", "leftover"
CLOSED, SKIPPED, WRITTEN = "closed", "skipped", "written"
"""The user may not read it; nobody knows its format; it changes while it is looked at."""

PT, SAFETENSORS, PICKLE, NPY, NPZ = "pt", "safetensors", "pickle", "npy", "npz"
PARQUET, ARROW, JSONL, TAR, PACKED = "parquet", "arrow", "jsonl", "tar", "packed"
QUARANTINE = ".quarantine"
"""The folder that damaged files are moved to; what is in it is not looked at."""

_TEMPORARY = re.compile(
    r".*\.temp(?P<pid>[0-9]+)|.*\.(tmp|temp|part|partial|incomplete)|\.?tmp[-_.].*", re.IGNORECASE
)
_ENDINGS = {
    **dict.fromkeys((".pt", ".pth", ".ckpt"), PT),
    ".safetensors": SAFETENSORS,
    **dict.fromkeys((".pkl", ".pickle"), PICKLE),
    ".npy": NPY,
    ".npz": NPZ,
    ".parquet": PARQUET,
    ".arrow": ARROW,
    **dict.fromkeys((".jsonl", ".ndjson"), JSONL),
    ".tar": TAR,
    **dict.fromkeys((".gz", ".tgz", ".zst", ".zstd", ".lz4", ".xz"), PACKED),
}
_TORCH_BIN = re.compile(
    r"(.*_)?(pytorch_model|adapter_model|optimizer|scheduler|scaler|training_args)([._-].*)?\.bin"
)
"""What torch.save writes under an ending that other programs use for anything."""

_POINTER = b"version https://git-lfs"


class Verdict(NamedTuple):
    """Sound, corrupt or unknown, and why it is not sound."""

    status: str
    reason: str = ""


EMPTY = Verdict(CORRUPT, "is empty")


def find_kind(name: str) -> str:
    """Return how a file is looked at, by its name; nothing for one that is not."""
    ending = name[name.rfind(".") :].lower()
    if ending == ".bin" and _TORCH_BIN.fullmatch(name):
        return PT
    return _ENDINGS.get(ending, "")


def find_stand_in(head: bytes) -> Verdict | None:
    """Return what is wrong with a file that stands for another; nothing where it stands for none.

    :param head: Its first bytes, 32 or as many as there are.
    """
    if head.startswith(_POINTER):
        return Verdict(CORRUPT, "is a pointer of Git LFS, not the file itself")
    if head.lstrip().lower().startswith((b"<!doctype", b"<html", b"<?xml")):
        return Verdict(CORRUPT, "is a page of a web server, not the file itself")
    return None


def is_temporary(name: str) -> bool:
    """Tell whether a name is one that libraries give to what they have not finished."""
    return bool(_TEMPORARY.fullmatch(name))


def find_owner(name: str) -> int | None:
    """Return the pid that webdataset writes into the name of a temporary file."""
    match = _TEMPORARY.fullmatch(name)
    return int(match["pid"]) if match and match["pid"] else None


def read_number(raw: bytes, start: int, size: int) -> int:
    """Return a little-endian number."""
    return int.from_bytes(raw[start : start + size], "little")
