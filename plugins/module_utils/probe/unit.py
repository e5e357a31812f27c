# SPDX-License-Identifier: BSD-2-Clause
"""Read the files of systemd units, on a host or in a tree that will be one."""

from __future__ import annotations

import os
from fnmatch import fnmatchcase

from ..policy.dockerd_flags import Flag, find_flags
from ..policy.unit_file import (
    UNIT_DIRECTORIES,
    Setting,
    Source,
    merge_units,
    parse_environment,
    parse_environment_file,
)
from .files import list_folder, read_text, under


def read_unit(unit: str, root: str = "/") -> list[Setting]:
    """Return what the files of a systemd unit state, drop-ins merged in.

    :param root: The tree to read; the paths in the result are those inside it.
    :returns: An empty list for a unit that is absent or masked.
    """
    mains = (f"{folder}/{unit}" for folder in UNIT_DIRECTORIES)
    main = next((path for path in mains if _is_there(path, root)), None)
    dropins = [
        _read_source(f"{base}/{folder}.d/{name}", root)
        for folder in (unit, unit.rpartition(".")[2])
        for base in UNIT_DIRECTORIES
        for name in list_folder(f"{base}/{folder}.d", root)
        if name.endswith(".conf")
    ]
    return merge_units(_read_source(main, root) if main else None, dropins)


def _is_there(path: str, root: str) -> bool:
    folder, name = path.rpartition("/")[::2]
    return os.path.lexists(f"{under(folder, root)}/{name}")


def _read_source(path: str, root: str) -> Source:
    return Source(path, read_text(path, root) or "")  # /dev/null may be missing from the tree.


def read_dockerd_flags(root: str = "/", unit: str = "docker.service") -> list[Flag]:
    """Return the flags that the unit's files give dockerd at its next start, with their places.

    :raises ValueError: If a line cannot be split into words.
    """
    settings = [setting for setting in read_unit(unit, root) if setting.section == "Service"]
    environment = {}
    for setting in settings:
        if setting.key == "Environment":
            environment.update({entry.key: entry for entry in parse_environment(setting)})
    for setting in settings:
        if setting.key == "EnvironmentFile":
            for path in _find_files(setting.value.lstrip("-"), root):
                assigned = parse_environment_file(read_text(path, root) or "", path)
                environment.update({entry.key: entry for entry in assigned})
    return find_flags(settings, environment)


def _find_files(pattern: str, root: str) -> list[str]:
    folder, name = pattern.rpartition("/")[::2]
    names = list_folder(folder, root)
    return [f"{folder}/{found}" for found in names if fnmatchcase(found, name)]
