# SPDX-License-Identifier: BSD-2-Clause
"""List the units that a boot starts, as far as the administrator's files decide it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from ..host.files import follow_links, list_folder, read_each, read_text

UNITS = "/etc/systemd/system"

_MASK = "/dev/null"
_LOCAL_UNITS = "/usr/local/lib/systemd/system"
_UNITS_OF_PACKAGES = "/usr/lib/systemd/system"
_OF_PACKAGES = ("/usr/lib/", "/lib/")
_STARTS = re.compile(
    r"^[ \t]*(?:Wants|Requires|Requisite|BindsTo|Upholds|OnSuccess|Unit)[ \t]*=(.*)", re.MULTILINE
)
_NOT_AT_BOOT = re.compile(
    r"(?:rescue|emergency|shutdown|reboot|soft-reboot|poweroff|halt|kexec|exit|umount|final|sleep"
    r"|suspend|hibernate|hybrid-sleep|suspend-then-hibernate|system-update|factory-reset)\.target"
)
"""Targets of systemd.special(7) that no boot reaches."""
_LINKS = ("wants", "requires", "upholds")
_STARTERS = (".timer", ".path", ".socket")
_RUNS = (".service", ".socket")
"""What has commands: the others of systemd.exec(5) have none that a line could set."""


def read_script(path: str, root: str) -> str:
    """Return a script; one that only root may read says nothing to others."""
    try:
        return read_text(path, root) or ""
    except PermissionError:
        return ""


def list_units(root: str, started: set[str], of_packages: bool) -> Iterator[str]:
    """Yield the units that a boot starts, and the drop-ins of those that it may start.

    :param of_packages: Whether the units that packages bring are listed as well.
    """
    for folder in (*((_UNITS_OF_PACKAGES,) if of_packages else ()), _LOCAL_UNITS, UNITS):
        for name in list_folder(folder, root):
            path = f"{folder}/{name}"
            if name.endswith((".service.d", ".socket.d")) or name in ("service.d", "socket.d"):
                if not is_masked(name[: -len(".d")], root):
                    drop_ins = list_folder(path, root)
                    yield from (f"{path}/{one}" for one in drop_ins if one.endswith(".conf"))
            elif (
                _is_started(name, started)
                and _is_own(path, folder, root)
                and not _is_replaced(name, folder, root)
            ):
                yield path


def has_unit(unit: str, root: str, folders: Iterable[str] = (UNITS, _UNITS_OF_PACKAGES)) -> bool:
    """Tell whether there is a unit, or a link in its place."""
    return any(os.path.lexists(f"{root.rstrip('/')}{one}/{unit}") for one in folders)


def is_masked(unit: str, root: str) -> bool:
    """Tell whether the administrator has a link to /dev/null in the place of a unit."""
    path = f"{UNITS}/{unit}"
    return os.path.islink(f"{root.rstrip('/')}{path}") and follow_links(path, root) == _MASK


def find_started(root: str) -> set[str]:
    """Return the units that a boot starts: links say so, or the administrator's units that do.

    A target of the administrator's own, or the graphical one where another is the default,
    starts nothing unless something starts it.
    """
    own = frozenset(list_folder(UNITS, root))
    by_owner = _list_starts(own, root)
    asked = {
        one
        for one in own
        if one.endswith(".target") and not has_unit(one, root, [_UNITS_OF_PACKAGES])
    }
    default = follow_links(f"{UNITS}/default.target", root).rpartition("/")[2]
    asked |= {"graphical.target"} if default == "multi-user.target" else set()
    waiting = [one for owner in by_owner.keys() - asked for one in by_owner[owner]] + [default]
    started: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in started or (name in own and is_masked(name, root)):
            continue
        started.add(name)
        waiting += by_owner.get(name, ())
        waiting += _find_named(read_script(f"{UNITS}/{name}", root)) if name in own else ()
    return started


def _list_starts(own: Iterable[str], root: str) -> dict[str, set[str]]:
    """Return which units others start, by links and by drop-ins of targets and services."""
    found: dict[str, set[str]] = {}
    for folder in (UNITS, _UNITS_OF_PACKAGES):
        for name in own if folder == UNITS else list_folder(folder, root):
            owner, _dot, end = name.rpartition(".")
            if end in _LINKS and not _NOT_AT_BOOT.fullmatch(owner):
                found.setdefault(owner, set()).update(list_folder(f"{folder}/{name}", root))
    owners = [
        one for one in own
        if one.endswith((".target.d", ".service.d")) and not _NOT_AT_BOOT.fullmatch(one[:-2])
    ]  # fmt: skip
    paths = [
        f"{UNITS}/{one}/{name}" for one in owners for name in list_folder(f"{UNITS}/{one}", root)
    ]
    for path, text in read_each(paths, root, read_script):
        if path.endswith(".conf"):
            owner = path.split("/")[-2][: -len(".d")]
            found.setdefault(owner, set()).update(_find_named(text))
    return found


def _find_named(text: str) -> set[str]:
    lines = text.replace("\\\n", " ")
    return {name for words in _STARTS.findall(lines) for name in words.split()}


def _is_started(name: str, started: set[str]) -> bool:
    """Tell whether a unit with commands is started at boot, or by one that is; or an instance."""
    stem, dot, kind = name.rpartition(".")
    end = dot + kind
    if end not in _RUNS:
        return False
    if stem.endswith("@"):
        return any(one.startswith(stem) and one.endswith((end, *_STARTERS)) for one in started)
    return name in started or (
        end == ".service" and any(stem + kind in started for kind in _STARTERS)
    )


def _is_replaced(name: str, folder: str, root: str) -> bool:
    """Tell whether a unit of the administrator, or a mask, stands in the place of a weaker one."""
    path = f"{UNITS}/{name}"
    return folder != UNITS and has_unit(name, root, [UNITS]) and _is_own(path, UNITS, root)


def _is_own(path: str, folder: str, root: str) -> bool:
    """Tell whether a unit lies where it is listed, and is not a link to that of a package."""
    return folder == _UNITS_OF_PACKAGES or not follow_links(path, root).startswith(_OF_PACKAGES)
