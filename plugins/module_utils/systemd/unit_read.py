# SPDX-License-Identifier: BSD-2-Clause
"""Read the files of systemd units, on a host or in a tree that will be one."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from ..core.values import NamedTuple
from ..host.door import list_links
from ..host.files import leave_out_run, list_folder, read_text, under
from .limits import MANAGER
from .unit_file import UNIT_DIRECTORIES, Setting, Source, list_dropin_folders, merge_units

CONF_DIRECTORIES = ("/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib")
_INSTANCE = re.compile("[^@]+@(.+)[.][a-z]+")
_LIBRARIES = (
    "/usr/lib/systemd",
    "/lib/systemd",
    "/usr/lib64/systemd",
    "/usr/lib/x86_64-linux-gnu/systemd",
    "/usr/lib/aarch64-linux-gnu/systemd",
)
"""Where the version of systemd shows in the name of its library."""


class UnitFiles(NamedTuple):
    """The file of a unit, if there is one, and its drop-ins, the strongest first."""

    main: Source | None
    dropins: list[Source]


def read_unit(unit: str, root: str = "/") -> list[Setting]:
    """Return what the files of a systemd unit state, drop-ins merged in.

    :param root: The tree to read; the paths in the result are those inside it.
    :returns: An empty list for a unit that is absent or masked.
    """
    return merge_units(*read_unit_files(unit, root))


def read_unit_files(
    unit: str, root: str = "/", directories: Sequence[str] | None = None
) -> UnitFiles:
    """Return the files of a systemd unit, found by its name or by an alias, which is a link.

    :param directories: Where units lie, the strongest first; by default all that a boot finds.
    """
    directories = leave_out_run(UNIT_DIRECTORIES, root) if directories is None else directories
    main, names = find_unit_names(unit, root, directories)
    dropins = _read_dropins(list_dropin_folders(names, directories), root)
    return UnitFiles(_read_source(main, root) if main else None, dropins)


def find_unit_names(
    unit: str, root: str = "/", directories: Sequence[str] = UNIT_DIRECTORIES
) -> tuple[str, list[str]]:
    """Return the file of a unit, or nothing, and its names: its own, then its aliases.

    An instance has those of its template too, with what makes it one, but for a name that has
    a file of its own. Source: ``unit_file_find_fragment()`` and ``add_names()`` in unit-file.c.
    """
    main, name = _find_main(unit, root, directories)
    instance = _INSTANCE.fullmatch(unit)
    if not instance:
        return main, [name, *_find_aliases(name, root, directories)]
    template = main.rpartition("/")[2] if "@." in main else ""
    own = _name_instance(template, instance[1]) if template else name
    names = [own, *_find_aliases(own, root, directories)]
    for alias in _find_aliases(template, root, directories) if template else ():
        other = _name_instance(alias, instance[1]) if "@." in alias else ""
        if other and _find_main(other, root, directories)[0] == main:
            names.append(other)
    return main, list(dict.fromkeys(names))


def _name_instance(template: str, instance: str) -> str:
    return template.replace("@.", f"@{instance}.", 1)


def read_manager_files(
    root: str = "/", name: str = MANAGER, directories: Sequence[str] | None = None
) -> UnitFiles:
    """Return system.conf, or the other file of that name, and its drop-ins.

    :param directories: What holds their folders; by default all that a boot finds.
    """
    directories = leave_out_run(CONF_DIRECTORIES, root) if directories is None else directories
    mains = (f"{folder}/systemd/{name}" for folder in _find_manager_folders(directories, root))
    main = next((path for path in mains if os.path.exists(under(path, root))), None)
    folders = [f"{one}/systemd/{name}.d" for one in directories]
    return UnitFiles(_read_source(main, root) if main else None, _read_dropins(folders, root))


def _find_manager_folders(directories: Sequence[str], root: str) -> Sequence[str]:
    """Return where system.conf may lie: before systemd 256 only in /etc."""
    lists = (list_folder(folder, root) for folder in _LIBRARIES)
    names = (name for names in lists for name in names)
    found = (re.fullmatch(r"libsystemd-shared-([0-9]+)\b.*\.so", name) for name in names)
    old = any(int(match[1]) < 256 for match in found if match)
    return directories[:1] if old else directories


def _find_main(unit: str, root: str, directories: Sequence[str]) -> tuple[str, str]:
    """Return the file of a unit, or nothing, and the unit's own name if this is an alias."""
    template = re.sub("@.+(?=[.])", "@", unit)
    for name in dict.fromkeys((unit, template)):
        for folder in directories:
            path = f"{folder}/{name}"
            if _is_there(path, root, directories):
                other = _find_alias_target(path, root, directories)
                return _find_main(other, root, directories) if other else (path, unit)
    return "", unit


def _find_alias_target(path: str, root: str, directories: Sequence[str]) -> str:
    """Return the unit that a link from one unit to another stands for; or nothing.

    A link to a file elsewhere is not an alias: systemd reads that file under the link's name.
    """
    folder, name = path.rpartition("/")[::2]
    target = os.path.normpath(os.path.join(folder, _read_link(path, root)))
    into, other = target.rpartition("/")[::2]
    same_kind = other.rpartition(".")[2] == name.rpartition(".")[2]
    return other if same_kind and other != name and into in directories else ""


def _read_link(path: str, root: str) -> str:
    """Return what a link says, or nothing."""
    folder, name = path.rpartition("/")[::2]
    here = f"{under(folder, root)}/{name}"
    return os.readlink(here) if os.path.islink(here) else ""


def _find_aliases(unit: str, root: str, directories: Sequence[str]) -> list[str]:
    found = (
        name
        for folder in directories
        for name in _list_links(folder, root)
        if name.endswith(unit[unit.rfind(".") :])
        and _find_alias_target(f"{folder}/{name}", root, directories) == unit
    )
    return list(dict.fromkeys(found))


def _list_links(folder: str, root: str) -> list[str]:
    """Return the names of the links in a folder, sorted, without a look at each file."""
    try:
        return list_links(folder, root)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _read_dropins(folders: Iterable[str], root: str) -> list[Source]:
    return [
        _read_source(f"{folder}/{name}", root)
        for folder in folders
        for name in list_folder(folder, root)
        if name.endswith(".conf") and not name.startswith(".")
    ]


def _is_there(path: str, root: str, directories: Sequence[str]) -> bool:
    """Tell whether a unit has this file; a broken link is not one, a link to /dev/null is."""
    link = _read_link(path, root)
    return (
        link == "/dev/null"
        or os.path.exists(under(path, root))
        or (bool(link) and bool(_find_alias_target(path, root, directories)))
    )


def _read_source(path: str, root: str) -> Source:
    return Source(path, read_text(path, root) or "")  # /dev/null may be missing from the tree.


def _find_files(pattern: str, root: str) -> list[str]:
    folder, name = pattern.rpartition("/")[::2]
    names = list_folder(folder, root)
    return [f"{folder}/{found}" for found in names if fnmatchcase(found, name)]
