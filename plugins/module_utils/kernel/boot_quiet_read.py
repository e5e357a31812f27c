# SPDX-License-Identifier: BSD-2-Clause
"""Keep which scripts matter at boot until they, or what they call, change.

Hardly any does, and to see that costs more than all else of a boot: each may call others.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Iterable, Mapping, Sequence

from ..write.cache import FOLDER, keep_cached, read_cached

READERS = (
    *("boot_called_read", "boot_calls", "boot_conditions_read", "boot_loads", "boot_quiet_read"),
    *("boot_read", "boot_scripts", "boot_scripts_read", "boot_shell", "boot_units"),
    *("boot_units_read", "glob_pattern"),
)
"""The files beside this one that decide."""
_SETTLED = 2.0  # Seconds after which what changes gets another time than it had.
_OF_OWNER = 3  # Of what is seen of a file: its mode and whose it is.


class Loud:
    """Which scripts matter, as an earlier look has found it; see :meth:`Called.may_matter`."""

    def __init__(self, scripts: Mapping[str, str], started: Mapping[str, bool], name: str) -> None:
        """Take what decides besides the files that are looked at: the texts, and what starts.

        :param name: What the scripts are wanted for.
        """
        self._start = time.time()
        self._name, self._key = f"boot-{name}", _digest(scripts, started)

    def recall(self) -> list[str] | None:
        """Return the paths of those that matter; ``None`` where that is not known any more."""
        kept = read_cached(self._name, self._key)
        if isinstance(kept, dict) and kept["seen"] == _see(kept["looked"]):
            return list(kept["loud"])
        return None

    def keep(self, loud: Sequence[str], looked: Iterable[str]) -> None:
        """Keep what was found where something of ours is kept already: a look alone leaves nothing.

        :param looked: The files that decided; with a slash at the end, folders that were listed.
        """
        if not os.path.isdir(FOLDER):
            return
        looked = sorted(looked)
        seen = _see(looked)
        if _is_settled(seen, self._start):
            kept = {"loud": list(loud), "looked": looked, "seen": seen}
            keep_cached(self._name, self._key, kept)


def _digest(scripts: Mapping[str, str], started: Mapping[str, bool]) -> str:
    """Return what names these scripts, as this very library reads them."""
    whole = hashlib.sha256(f"{_see_library()} {sorted(started.items())}".encode())
    for path, text in scripts.items():
        whole.update(f"\0{path}\0{len(text)}\0{text}".encode("utf-8", "surrogateescape"))
    return whole.hexdigest()


def _see_library() -> list[object]:
    """Return what changes with the code that reads them: its files, or the one that holds all."""
    folder = os.path.dirname(__file__)
    seen = [_stat(f"{folder}/{name}.py") for name in READERS]
    while not os.path.exists(folder):
        folder = os.path.dirname(folder)
    return [folder, _stat(folder), *seen]


def _see(paths: Iterable[str]) -> list[list[int]]:
    """Return what changes with a file, with what lies in a folder, or with who may change it."""
    paths = list(paths)
    folders = sorted({path.rstrip("/").rpartition("/")[0] or "/" for path in paths})
    return list(map(_stat, [*folders, *paths]))


def _stat(path: str) -> list[int]:
    try:
        found = os.stat(path)
    except OSError:
        return []
    owner = [found.st_mode, found.st_uid, found.st_gid]
    if stat.S_ISDIR(found.st_mode) and not path.endswith("/"):
        return owner
    return [*owner, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]


def _is_settled(seen: Iterable[list[int]], start: float) -> bool:
    """Tell whether nothing changed while it was read, or so shortly before that none can tell."""
    since = int((start - _SETTLED) * 1e9)
    return all(one[-1] < since for one in seen if len(one) > _OF_OWNER)
