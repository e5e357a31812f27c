# SPDX-License-Identifier: BSD-2-Clause
"""Keep a report of each run that ended on this host, for root alone: so many of each user, no more.

Whoever makes processes die by the thousand loses their own older reports, and nobody else's.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from ..host.door import open_file, read_handle
from ..host.files import list_folder
from ..write.temporary import remove_written, replace_text

FOLDER = "/var/lib/mlhost-limits/ends"
MOST_OF_USER, MOST = 16, 256
_NAME = re.compile(r"(\d{12})-(\d{17})-(\d{1,10})-(\d{1,10})\.json")
"""The how many-eth it is, which goes on where the clock is set back; when in milliseconds of the
clock, whose, and which process ended last."""

_LARGEST = 2**18


def keep(report: Mapping[str, object], at: float, uid: int, pid: int, folder: str = FOLDER) -> str:
    """Write a report, and remove the oldest of its user, or of all, where there are too many.

    :param at: When it ended, by the clock.
    :raises OSError: If it cannot be written.
    """
    make_folder(folder)
    newest = next(iter(list_names(folder)), "0")
    number = int(newest.partition("-")[0]) + 1
    path = f"{folder}/{number:012}-{int(at * 1000):017}-{uid}-{pid}.json"
    text = json.dumps(report)
    if len(text) > _LARGEST:  # Paths of cgroups are as long as their users like.
        text = json.dumps({**report, "events": [], "limits": []})
    if len(text) > _LARGEST:
        raise OSError(f"{path}: the report is larger than {_LARGEST} bytes")
    replace_text(path, f"{text}\n", mode=0o600)
    for name in list_surplus(list_names(folder)):
        remove_written(f"{folder}/{name}")
    return path


def make_folder(folder: str) -> None:
    """Make the folder, and see that it can be read as it is written.

    :raises OSError: If it is somebody else's, or cannot be made.
    """
    os.makedirs(folder, 0o700, exist_ok=True)
    list_folder(folder)
    if os.stat(folder).st_mode & 0o077:
        os.chmod(folder, 0o700)


def list_surplus(names: Sequence[str]) -> list[str]:
    """Return which reports go, the oldest of whoever has most.

    :param names: Of all, the newest first.
    """
    kept: dict[str, list[str]] = {}
    for name in names:
        kept.setdefault(name.split("-")[2], []).append(name)
    gone = []
    for own in kept.values():
        gone += own[MOST_OF_USER:]
        del own[MOST_OF_USER:]
    for _more in range(sum(map(len, kept.values())) - MOST):
        gone.append(max(kept.values(), key=len).pop())
    return gone


def list_names(folder: str = FOLDER) -> list[str]:
    """Return the names of the reports, the newest first."""
    return sorted(filter(_NAME.fullmatch, list_folder(folder)), reverse=True)


def read_reports(folder: str = FOLDER) -> Iterator[tuple[float, str]]:
    """Yield when each run ended, by the clock, and its report, the newest first; of one that cannot
    be read, no text.

    :raises OSError: If only root may read them.
    """
    for name in list_names(folder):
        path, text = f"{folder}/{name}", ""
        with suppress(OSError):
            text = read_handle(open_file(path), _LARGEST, path).decode("utf-8", "replace")
        yield int(name.split("-")[1]) / 1000, text
