# SPDX-License-Identifier: BSD-2-Clause
"""Keep a report of each run that ended on this host, for root alone: so many of each user, no more.

Whoever makes processes die by the thousand loses their own older reports, and nobody else's.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress

from ..host.door import open_file, read_handle
from ..host.files import list_folder
from ..write.temporary import remove_written, replace_text

FOLDER = "/var/lib/mlhost-limits/ends"
MOST_OF_USER, MOST = 16, 256
_NAME = re.compile(r"(\d{17})-(\d{1,10})-(\d{1,10})\.json")
"""When in milliseconds of the clock, whose, and which process ended last."""

_LARGEST = 2**18


def keep(report: Mapping[str, object], at: float, uid: int, pid: int, folder: str = FOLDER) -> str:
    """Write a report, and remove the oldest of its user, or of all, where there are too many.

    :param at: When it ended, by the clock.
    :raises OSError: If it cannot be written.
    """
    os.makedirs(folder, 0o700, exist_ok=True)
    path = f"{folder}/{int(at * 1000):017}-{uid}-{pid}.json"
    replace_text(path, f"{json.dumps(report)}\n", mode=0o600)
    names = list_names(folder)
    own = [one for one in names if one.split("-")[1] == str(uid)]
    for name in {*own[MOST_OF_USER:], *names[MOST:]}:
        remove_written(f"{folder}/{name}")
    return path


def list_names(folder: str = FOLDER) -> list[str]:
    """Return the names of the reports, the newest first."""
    return sorted(filter(_NAME.fullmatch, list_folder(folder)), reverse=True)


def read_reports(folder: str = FOLDER) -> Iterator[tuple[float, str]]:
    """Yield when each run ended, by the clock, and its report, the newest first.

    :raises OSError: If only root may read them.
    """
    for name in list_names(folder):
        with suppress(FileNotFoundError):  # A newer one has taken its place.
            path = f"{folder}/{name}"
            text = read_handle(open_file(path), _LARGEST, path).decode("utf-8", "replace")
            yield int(name[:17]) / 1000, text
