# SPDX-License-Identifier: BSD-2-Clause
"""Read all that decides a unit's limits: what systemd reads, what lies beside it, and when."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence

from ..host.files import list_folder, read_distribution, read_folder, read_text
from .limits import MANAGER
from .model import Files, Stray
from .unit_file import UNIT_DIRECTORIES, Source, list_dropin_folders
from .unit_read import CONF_DIRECTORIES, find_unit_names, read_manager_files, read_unit_files

_WRITABLE = ("/etc/", "/run/systemd/system")
_LEFT_BEHIND = re.compile(
    r".*(~|\.(bak|orig|old|save|swp|swo|disabled|off|dpkg-\w+|rpm\w+|ucf-\w+)|,v)"
)
"""What editors and package managers leave, and what somebody took out of use."""

_TOP, _USER_TOP = "/etc/systemd/system", "/etc/systemd/user"
_USER_UNITS = (_USER_TOP, "/usr/lib/systemd/user")
_LARGEST = 2**18  # Characters, of all files of one unit together.


def read_sources(
    unit: str, directories: Sequence[str] = UNIT_DIRECTORIES, manager: str = MANAGER
) -> Files:
    """Return the files of a unit and of its manager, and those that count for nothing.

    :raises ValueError: If they are too many to be thought through, or name each other in a ring.
    """
    try:
        main, dropins = read_unit_files(unit, "/", directories)
        path, names = find_unit_names(unit, "/", directories)
    except RecursionError:
        raise ValueError(f"{unit}: its aliases form a ring") from None
    conf, conf_dropins = read_manager_files("/", manager)
    others = tuple(_read_others(path, directories)) if main else ()
    folders = list_dropin_folders(names, directories)
    strays = [*_find_misnamed(folders)]
    if manager == MANAGER:
        strays += _find_misplaced(names[0], folders)
    strays += _find_misnamed([f"{folder}/systemd/{manager}.d" for folder in CONF_DIRECTORIES])
    found = (tuple(dropins), conf, tuple(conf_dropins), others, tuple(strays))
    files = Files(main, *found, vendor=read_distribution())
    if sum(len(source.text) for source in list_sources(files)) > _LARGEST:
        raise ValueError(f"{unit}: its files are too large")
    return files


def list_sources(files: Files) -> list[Source]:
    """Return every file."""
    mains = [source for source in (files.main, files.manager) if source]
    strays = (stray.source for stray in files.strays)
    return [*mains, *files.dropins, *files.manager_dropins, *files.others, *strays]


def _read_others(main: str, directories: Sequence[str]) -> Iterator[Source]:
    """Yield the unit files that a stronger one hides."""
    name = main.rpartition("/")[2]
    for folder in directories:
        path = f"{folder}/{name}"
        if path != main and os.path.isfile(path) and not os.path.samefile(path, main):
            yield Source(path, read_text(path) or "")


def _find_misnamed(folders: Iterable[str]) -> Iterator[Stray]:
    """Yield the files of drop-in folders whose names systemd skips."""
    for folder in folders:
        for name in list_folder(folder) if folder.startswith(_WRITABLE) else ():
            path = f"{folder}/{name}"
            read = name.endswith(".conf") and not name.startswith(".")
            if read or _LEFT_BEHIND.fullmatch(name) or not os.path.isfile(path):
                continue
            bare = re.sub(r"\.conf\b.*", "", name, flags=re.IGNORECASE).strip(".") or "site"
            better = f"{folder}/{bare.partition('.')[0]}"
            better += "-site.conf" if os.path.lexists(f"{better}.conf") else ".conf"
            source = Source(path, read_text(path) or "")
            yield Stray(source, "it reads files named *.conf alone", better)


def _find_misplaced(unit: str, folders: Sequence[str]) -> Iterator[Stray]:
    """Yield drop-ins of the system's manager in folders that look like the unit's and are not."""
    right, stem = f"{_TOP}/{unit}.d", unit.rpartition(".")[0]
    near = {f"{unit}.d", f"{stem}.d", unit, f"{unit}s.d", f"{unit}.conf.d"}
    for base in ("/etc/systemd", _TOP, _USER_TOP):
        if base == _USER_TOP and any(os.path.exists(f"{one}/{unit}") for one in _USER_UNITS):
            continue  # It may be meant for that one.
        for name in list_folder(base):
            folder = f"{base}/{name}"
            alike = name in near or name.lower() == f"{unit}.d".lower()
            if alike and folder not in folders and os.path.isdir(folder):
                reason = f"the directory of {unit} is {right}"
                for path, text in read_folder(folder).items():
                    moved = f"{right}/{path.rpartition('/')[2]}"
                    yield Stray(Source(path, text), reason, moved)


def find_change(
    files: Files, unit: str, since: float, directories: Sequence[str] = UNIT_DIRECTORIES
) -> tuple[str, float]:
    """Return which file of a unit changed last, or failing that a folder, since a point in time.

    A file's change time is the kernel's own: it also tells of a file that was moved there. What
    was removed shows in its folder alone.

    :param since: Seconds since the epoch.
    :returns: An empty path and 0 where nothing did.
    """
    counting = [source.path for source in list_sources(files)]
    folders = list_dropin_folders([unit], directories)
    confs = [f"{folder}/systemd/{MANAGER}.d" for folder in CONF_DIRECTORIES]
    for paths in (counting, [*folders, *confs], [*directories, "/etc/systemd"]):
        changes = ((_stat(one), one) for one in paths)
        changed, path = max(changes, default=(0.0, ""))
        if changed > since:
            return path, changed
    return "", 0.0


def _stat(path: str) -> float:
    """Return when a file or the link that names it was last changed, 0 where it is absent."""
    times = []
    for look in (os.lstat, os.stat):
        try:
            times.append(look(path).st_ctime)
        except OSError:
            continue
    return max(times, default=0.0)
