# SPDX-License-Identifier: BSD-2-Clause
"""Read what links beside those of units in their place have a boot start: presets, aliases."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

from ..host.booted import is_booted
from ..host.files import follow_links, list_folder, read_each, read_text, under
from .boot_presets import find_preset_starts, is_first_boot, parse_presets

_PRESETS = tuple(f"{top}/systemd/system-preset" for top in ("/etc", "/usr/local/lib", "/usr/lib"))
_MACHINE_ID = "/etc/machine-id"
_KINDS = (".service", ".socket", ".timer", ".path", ".target")
_LINKS = (".wants", ".requires", ".upholds")

TYPE_CHECKING = False
if TYPE_CHECKING:
    Starts = dict[str, set[tuple[str, bool]]]


def read_preset_starts(
    folders: Sequence[str], root: str, read: Callable[[str, str], str]
) -> Starts:
    """Return which units others start once the first boot has enabled what presets say.

    :param folders: Where units lie, the strongest first.
    :returns: Each as one that may be started; none where the next boot is not the first.
    """
    if root == "/" and is_booted():
        return {}
    if not is_first_boot(read_text(_MACHINE_ID, root)):
        return {}
    texts: dict[str, str] = {}
    for folder in folders:
        names = (one for one in list_folder(folder, root) if one.endswith(_KINDS))
        paths = [f"{folder}/{one}" for one in names if one not in texts]
        found = dict(read_each(paths, root, read))
        texts.update({path.rpartition("/")[2]: found.get(path, "") for path in paths})
    units = {name: text for name, text in texts.items() if "[Install]" in text}
    return find_preset_starts(units, parse_presets(_read_presets(root))) if units else {}


def _read_presets(root: str) -> list[str]:
    """Return the preset files in the order of their names; of two of one name, the stronger."""
    paths = {
        name: f"{folder}/{name}"
        for folder in reversed(_PRESETS)
        for name in list_folder(folder, root)
        if name.endswith(".preset")
    }
    return [read_text(paths[name], root) or "" for name in sorted(paths)]


def list_linked(folder: str, units: Sequence[str], root: str) -> Iterator[tuple[str, bool]]:
    """Yield what a folder of links starts, and whether it surely does.

    A link may lead to a unit of another name. One to a file that lies where no unit is looked for
    starts it in old versions of systemd alone.

    :param units: The folders where units are looked for.
    """
    for name in list_folder(folder, root):
        target = _follow(f"{folder}/{name}", root)
        place, _slash, other = target.rpartition("/")
        yield name, place in (folder, *units) or not _is_stray(name, target, units, root)
        if place in units and other != name and "@." not in other:
            yield other, False


def list_strays(folders: Sequence[str], root: str) -> Iterator[str]:
    """Yield the files where no unit is looked for to which links lead that start units."""
    for folder in folders:
        for owner in (one for one in list_folder(folder, root) if one.endswith(_LINKS)):
            for name in list_folder(f"{folder}/{owner}", root):
                target = _follow(f"{folder}/{owner}/{name}", root)
                is_link = target != f"{folder}/{owner}/{name}"
                if is_link and _is_stray(name, target, folders, root):
                    yield target


def find_alias(path: str, units: Sequence[str], root: str) -> str:
    """Return the other name of a unit that a link in its place leads to, or nothing."""
    place, _slash, name = _follow(path, root).rpartition("/")
    return name if place in units and name != path.rpartition("/")[2] else ""


def _follow(path: str, root: str) -> str:
    try:
        return follow_links(path, root) if os.path.islink(f"{root.rstrip('/')}{path}") else path
    except OSError:  # A loop of links.
        return path


def _is_stray(name: str, target: str, units: Sequence[str], root: str) -> bool:
    """Tell whether a link of a name leads to a file that systemd does not find by that name."""
    if target.rpartition("/")[0] in units or not os.path.isfile(under(target, root)):
        return False
    stem, at, instance = name.partition("@")
    names = [name, f"{stem}@.{instance.rpartition('.')[2]}"] if at else [name]
    top = root.rstrip("/")
    return not any(os.path.lexists(f"{top}{one}/{unit}") for one in units for unit in names)
