# SPDX-License-Identifier: BSD-2-Clause
"""Read and write a size of /dev/shm as dockerd does (``RAMInBytes`` of docker/go-units)."""

from __future__ import annotations

import re

DEFAULT_SHM_SIZE = 64 * 2**20
TOO_LARGE = 2**63
_UNITS = "kmgtp"
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([kmgtp]?)i?b?", re.IGNORECASE)


def parse_shm_size(text: str) -> int | None:
    """Return a size in bytes; ``None`` for what dockerd refuses.

    With :data:`TOO_LARGE`, which stands for more as well, dockerd starts and no container does.
    0 stands for the default in daemon.json; of a flag it is a tmpfs without any limit.

    :param text: As dockerd sees it: a JSON string's own text, its escapes not decoded.
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        return None
    number = float(match[1])
    if number == float("inf"):  # A number of hundreds of digits.
        return None
    power = _UNITS.index(match[2].lower()) + 1 if match[2] else 0
    return int(min(number * (1 << 10 * power), TOO_LARGE))


def format_shm_size(size: int) -> str:
    """Write a size for dockerd: ``8G``, or plain bytes where it is not a whole number of KiB."""
    for power in range(len(_UNITS), 0, -1):
        if size and size % (1 << 10 * power) == 0:
            return f"{size >> 10 * power}{_UNITS[power - 1].upper()}"
    return str(size)
