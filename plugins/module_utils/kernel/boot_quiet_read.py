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
from contextlib import suppress

from ..host.door import LoopError
from ..host.files import follow_links
from ..write.cache import FOLDER, keep_cached, read_cached

READERS = (
    *(
        "boot_applier_read",
        "boot_called_read",
        "boot_calls",
        "boot_changes",
        "boot_cloud_read",
    ),
    *(
        "boot_conditions_read",
        "boot_credentials",
        "boot_credentials_read",
        "boot_folders_read",
        "boot_loader",
    ),
    *(
        "boot_loader_read",
        "boot_loads",
        "boot_modules",
        "boot_modules_read",
    ),
    *(
        "boot_names",
        "boot_presets",
        "boot_presets_read",
        "boot_quiet_read",
    ),
    *(
        "boot_read",
        "boot_scripts",
        "boot_scripts_read",
        "boot_shell",
        "boot_specifiers",
    ),
    *(
        "boot_units",
        "boot_units_read",
    ),
    *("glob_pattern", "../host/door", "../host/files", "../shared_memory/boot_mounts"),
    "../core/systemd_text",
)
"""The files beside this one that decide."""
_SETTLED = 2.0  # Seconds after which what changes gets another time than it had.


class Looked:
    """The files that decided, each as it was before it was read.

    A path of a folder that was listed has a slash at the end.
    """

    def __init__(self, paths: Iterable[str] = ()) -> None:
        self._ways: dict[str, list[object]] = {}
        self.seen: dict[str, list[object]] = {}
        self.update(paths)

    def update(self, paths: Iterable[str]) -> None:
        for path in paths:
            self.add(path)

    def add(self, path: str) -> None:
        if path in self.seen:
            return
        name = path.rstrip("/")
        folder = os.path.dirname(name)
        if folder not in self._ways:
            self._ways[folder] = _see_way(folder)
        beyond = _see_way(name) if os.path.islink(name) else []
        self.seen[path] = [self._ways[folder], beyond, _see_end(path)]

    def is_settled(self, start: float) -> bool:
        """Tell whether nothing changed since then, or so shortly before that none can tell."""
        since = int((start - _SETTLED) * 1e9)
        ends = [one[-1] for one in self.seen.values() if isinstance(one[-1], list)]
        is_old = all(end[-1] < since for end in ends if len(end) > 1)
        return is_old and Looked(self.seen).seen == self.seen


class Loud:
    """Which scripts matter, as an earlier look has found it; see :meth:`Called.may_matter`."""

    def __init__(
        self, scripts: Mapping[str, str], started: Mapping[str, bool], name: str, code: str = ""
    ) -> None:
        """Take what decides besides the files that are looked at: the texts, and what starts.

        :param name: What the scripts are wanted for.
        :param code: The file of the library that tells which are wanted.
        """
        self._start = time.time()
        self._name, self._key = f"boot-{name}", _digest(scripts, started, code)

    def recall(self) -> list[str] | None:
        """Return the paths of those that matter; ``None`` where that is not known any more."""
        kept = read_cached(self._name, self._key)
        with suppress(KeyError, TypeError):  # Another form was kept.
            if isinstance(kept, dict) and kept["seen"] == Looked(kept["seen"]).seen:
                return list(kept["loud"])
        return None

    def keep(self, loud: Sequence[str], looked: Looked) -> None:
        """Keep what was found, where something of ours is kept: a look alone leaves nothing."""
        if os.path.isdir(FOLDER) and looked.is_settled(self._start):
            kept = {"loud": list(loud), "seen": looked.seen}
            keep_cached(self._name, self._key, kept)


def _digest(scripts: Mapping[str, str], started: Mapping[str, bool], code: str) -> str:
    """Return what names these scripts, as this very library reads them."""
    whole = hashlib.sha256(f"{_see_library()} {_stat(code)} {sorted(started.items())}".encode())
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


def _see_way(path: str) -> list[object]:
    """Return whose each folder and link on the way is, and where a link leads."""
    found: list[object] = []
    with suppress(LoopError):
        follow_links(path, visit=lambda folder, name: found.append(_see_owner(f"{folder}/{name}")))
    return found


def _see_owner(name: str) -> list[object]:
    try:
        found = os.lstat(name)
        target = os.readlink(name) if stat.S_ISLNK(found.st_mode) else ""
    except (OSError, ValueError):
        return []
    return [found.st_mode, found.st_uid, found.st_gid, target]


def _see_end(path: str) -> list[int]:
    """Return what changes with the content of a file, or of a folder that was listed."""
    found = _stat(path)
    is_folder = bool(found) and stat.S_ISDIR(found[0])
    return found[:1] if is_folder and not path.endswith("/") else found


def _stat(path: str) -> list[int]:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return []
    numbers = [found.st_mode, found.st_dev, found.st_ino, found.st_size]
    return [*numbers, found.st_mtime_ns, found.st_ctime_ns]
