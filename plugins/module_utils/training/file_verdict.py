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
PT, SAFETENSORS = "pt", "safetensors"
QUARANTINE = ".quarantine"
"""The folder that damaged files are moved to; what is in it is not looked at."""

_TEMPORARY = re.compile(
    r".*\.temp(?P<pid>[0-9]+)|.*\.(tmp|temp|part|partial|incomplete)|\.?tmp[-_.].*", re.IGNORECASE
)
_ENDINGS = {".pt": PT, ".pth": PT, ".ckpt": PT, ".safetensors": SAFETENSORS}


class Verdict(NamedTuple):
    """Sound, corrupt or unknown, and why it is not sound."""

    status: str
    reason: str = ""


def find_kind(name: str) -> str:
    """Return how a file is looked at, by its ending; nothing for one that is not."""
    return _ENDINGS.get(name[name.rfind(".") :], "")


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
