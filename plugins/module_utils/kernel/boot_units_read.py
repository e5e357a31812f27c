# SPDX-License-Identifier: BSD-2-Clause
"""List the units that a boot starts, as far as the administrator's files decide it."""

from __future__ import annotations

import os
import re
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping

from ..core.values import Declaration
from ..host.files import follow_links, list_folder, read_each, read_text, under
from .boot_conditions_read import judge_conditions
from .boot_loader import find_loader_units
from .boot_loader_read import read_loader
from .boot_presets_read import find_alias, list_linked, list_strays, read_preset_starts
from .boot_quiet_read import Looked
from .boot_units import Script, has_ended, merge, parse_unit, settle_unit

UNITS = "/etc/systemd/system"

APPLIER = "systemd-sysctl.service"
_AFTER_FILES = {APPLIER, *(f"{one}.target" for one in ("sysinit", "basic", "multi-user"))}
_NO = ("0", "no", "n", "false", "f", "off")
_MASK = "/dev/null"
_LOCAL_UNITS = "/usr/local/lib/systemd/system"
OWN_UNITS = (UNITS, _LOCAL_UNITS)
_UNITS_OF_PACKAGES = "/usr/lib/systemd/system"
ALL_UNITS = (UNITS, _LOCAL_UNITS, _UNITS_OF_PACKAGES)
_OF_PACKAGES = ("/usr/lib/", "/lib/")
_STARTS = {
    **dict.fromkeys(("Wants", "Requires", "BindsTo", "Upholds", "OnSuccess"), ("Unit",)),
    "Unit": ("Timer", "Path"),
    "Service": ("Socket",),
}
_MAY_START = {"OnFailure": ("Unit",)}
_NOT_AT_BOOT = re.compile(
    r"(?:rescue|emergency|shutdown|reboot|soft-reboot|poweroff|halt|kexec|exit|umount|final|sleep"
    r"|suspend|hibernate|hybrid-sleep|suspend-then-hibernate|system-update|factory-reset)\.target"
)
"""Targets of systemd.special(7) that no boot reaches."""
_LINKS = ("wants", "requires", "upholds")
_STARTERS = (".timer", ".path", ".socket")
_DROP_INS = (".service.d", ".socket.d")
_RUNS = (".service", ".socket")
"""What has commands: the others of systemd.exec(5) have none that a line could set."""


def read_script(path: str, root: str) -> str:
    """Return a script; one that only root may read says nothing to others."""
    try:
        return read_text(path, root) or ""
    except PermissionError:
        return ""


def list_units(root: str, started: Mapping[str, bool], of_packages: bool) -> Iterator[str]:
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
                _is_started(name, started) is not False
                and _is_own(path, folder, root)
                and not _is_replaced(name, folder, root)
            ):
                yield path
    yield from (one for one in list_strays(ALL_UNITS, root) if one.endswith(_RUNS))


def read_unit(unit: str, root: str) -> dict[str, str]:
    """Return the text of a unit and of its drop-ins, in the order in which systemd reads them."""
    main = next((f"{one}/{unit}" for one in ALL_UNITS if has_unit(unit, root, [one])), "")
    stem, _dot, end = unit.rpartition(".")
    wider = [stem[: at + 1] for at, char in enumerate(stem) if char == "-"]
    drop_ins = {
        name: f"{folder}/{owner}.d/{name}"
        for owner in (end, *(f"{one}.{end}" for one in wider), unit)
        for folder in reversed(ALL_UNITS)
        for name in list_folder(f"{folder}/{owner}.d", root)
        if name.endswith(".conf")
    }
    paths = [main] * bool(main) + [drop_ins[name] for name in sorted(drop_ins)]
    return {path: read_script(path, root) for path in paths}


def has_unit(unit: str, root: str, folders: Iterable[str] = (UNITS, _UNITS_OF_PACKAGES)) -> bool:
    """Tell whether there is a unit, or a link in its place."""
    return any(os.path.lexists(f"{root.rstrip('/')}{one}/{unit}") for one in folders)


def is_masked(unit: str, root: str) -> bool:
    """Tell whether the administrator has a link to /dev/null in the place of a unit."""
    path = f"{UNITS}/{unit}"
    return os.path.islink(f"{root.rstrip('/')}{path}") and follow_links(path, root) == _MASK


def find_mask(unit: str, root: str) -> Declaration | None:
    """Return the link or the empty file that masks a unit, where the first one is that."""
    for folder in ALL_UNITS:
        here = f"{under(folder, root)}/{unit}"
        if os.path.lexists(here):
            path = f"{folder}/{unit}"
            if (read_text(path, root) or "").strip():
                return None
            target = f"a link to {os.readlink(here)}" if os.path.islink(here) else "an empty file"
            return Declaration(path, 0, target, "")
    return None


def find_started(root: str, of_packages: bool = False) -> dict[str, bool]:
    """Return the units that a boot starts, and whether it surely does.

    Links say so, or the administrator's units that do. A target of the administrator's own, or the
    graphical one where another is the default, starts nothing unless something starts it.

    :param of_packages: Whether the units that packages bring are asked as well.
    """
    own = frozenset(list_folder(UNITS, root))
    by_owner = _list_starts(own, root)
    for owner, names in read_preset_starts(ALL_UNITS, root, read_script).items():
        by_owner.setdefault(owner, set()).update(names)
    asked = {
        one
        for one in own
        if one.endswith(".target") and not has_unit(one, root, [_UNITS_OF_PACKAGES])
    }
    default = follow_links(f"{UNITS}/default.target", root).rpartition("/")[2]
    asked |= {"graphical.target"} if default == "multi-user.target" else set()
    waiting = deque(one for owner in by_owner.keys() - asked for one in by_owner[owner])
    waiting.append((default, True))
    waiting.extend((one, False) for one in find_loader_units(read_loader(root)))
    started: dict[str, bool] = {}
    while waiting:
        name, is_sure = waiting.popleft()
        if started.get(name, False) or (name in started and not is_sure):
            continue
        if name in own and is_masked(name, root):
            continue
        started[name] = is_sure
        more = {*by_owner.get(name, ()), *_find_own(name, name in own, root, of_packages)}
        waiting.extend((one, is_sure and starts) for one, starts in more)
    return started


def _find_own(name: str, is_own: bool, root: str, of_packages: bool) -> set[tuple[str, bool]]:
    """Return what a unit itself starts, or the unit of another name that it is.

    :param is_own: Whether the administrator has a unit or a link of that name.
    """
    if is_own:
        alias = find_alias(f"{UNITS}/{name}", ALL_UNITS, root)
        named = _find_named(read_script(f"{UNITS}/{name}", root))
        return {*named, (alias, True)} if alias else named
    if not of_packages:
        return set()
    folders = (_LOCAL_UNITS, _UNITS_OF_PACKAGES)
    texts = filter(None, (read_script(f"{one}/{name}", root) for one in folders))
    return _find_named(next(texts, ""))


def _list_starts(own: Collection[str], root: str) -> dict[str, set[tuple[str, bool]]]:
    """Return which units others start, by links and by drop-ins of targets and services."""
    found: dict[str, set[tuple[str, bool]]] = {}
    for folder in ALL_UNITS:
        for name in own if folder == UNITS else list_folder(folder, root):
            owner, _dot, end = name.rpartition(".")
            if end in _LINKS and not _NOT_AT_BOOT.fullmatch(owner):
                links = list_linked(f"{folder}/{name}", ALL_UNITS, root)
                found.setdefault(owner, set()).update(links)
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


def _find_named(text: str) -> set[tuple[str, bool]]:
    """Return the units that a unit starts, and whether it surely does."""
    sections = {**_STARTS, **_MAY_START}
    lines = [one for one in parse_unit("", text) if one.section in sections.get(one.name, ())]
    ends = has_ended(parse_unit("", text))
    sure = {one.name for one in lines if one.name in _STARTS and (ends or one.name != "OnSuccess")}
    return {(name, one.name in sure) for one in lines for name in one.value.split()}


def _is_started(name: str, started: Mapping[str, bool]) -> bool | None:
    """Tell whether a unit with commands is started at boot, or by one that is; or an instance.

    ``None`` where it may be.
    """
    stem, dot, kind = name.rpartition(".")
    end = dot + kind
    if end not in _RUNS:
        return False
    if stem.endswith("@"):
        by = [one for one in started if one.startswith(stem) and one.endswith((end, *_STARTERS))]
    else:
        by = [name, *(stem + one for one in _STARTERS if end == ".service")]
    found = [started[one] for one in by if one in started]
    return True if any(found) else None if found else False


def _is_replaced(name: str, folder: str, root: str) -> bool:
    """Tell whether a unit of the administrator, or a mask, stands in the place of a weaker one."""
    path = f"{UNITS}/{name}"
    return folder != UNITS and has_unit(name, root, [UNITS]) and _is_own(path, UNITS, root)


def _is_own(path: str, folder: str, root: str) -> bool:
    """Tell whether a unit lies where it is listed, and is not a link to that of a package."""
    return folder == _UNITS_OF_PACKAGES or not follow_links(path, root).startswith(_OF_PACKAGES)


def settle_units(
    texts: Mapping[str, str], started: Mapping[str, bool], root: str, looked: Looked
) -> dict[str, str]:
    """Return the texts, those of units without the commands that no boot runs as root.

    :param looked: Gets the files besides the texts that decide it.
    """
    found, by_unit = dict(texts), defaultdict(list)
    for path in texts:
        folder, name = path.split("/")[-2:]
        if folder.endswith(_DROP_INS):
            by_unit[folder[: -len(".d")]].append(path)
        elif name.endswith(_RUNS):
            by_unit[name].append(path)
        elif folder in ("service.d", "socket.d"):
            found.update(settle_unit({path: texts[path]}))
    for unit, paths in by_unit.items():
        settled = _settle(unit, {path: texts[path] for path in paths}, started, root, looked)
        found.update({path: settled.get(path, "") for path in paths})
    return found


def _settle(
    unit: str,
    texts: Mapping[str, str],
    started: Mapping[str, bool],
    root: str,
    looked: Looked,
) -> dict[str, Script]:
    """Return a unit and its drop-ins as they are read; those that others hide are left out."""
    by_name = {
        path.rpartition("/")[2]: path for path in texts if path.split("/")[-2].endswith(_DROP_INS)
    }
    drop_ins = [by_name[name] for name in sorted(by_name)]
    whole = [path for path in texts if not path.split("/")[-2].endswith(_DROP_INS)]
    base = texts[whole[-1]] if whole else _read_base(unit, root, looked)
    first = whole[-1] if whole else unit
    parts = {first: base, **{path: texts[path] for path in drop_ins}}
    runs: bool | None = _is_started(unit, started) or None
    is_met = judge_conditions(parts, root, looked)
    is_early = unit == APPLIER or _may_come_before_files(parts)
    if is_met and is_early:
        is_met = None  # The files have the last word, where they have one.
    settled = settle_unit(parts, runs if is_met else is_met)
    for one in settled.values():
        one.early = is_early
    return settled


def _may_come_before_files(texts: Mapping[str, str]) -> bool:
    """Tell whether a unit may run before systemd applies the files of sysctl.d.

    Those that ask for no default dependencies are not ordered after it.
    """
    if not any(APPLIER in text or "DefaultDependencies" in text for text in texts.values()):
        return False
    settings = [one for path, text in texts.items() for one in parse_unit(path, text)]
    before, after, defaults = (
        [word for one in merge(settings, name) for word in one.value.split()]
        for name in ("Before", "After", "DefaultDependencies")
    )
    is_free = defaults[-1:] and defaults[-1].lower() in _NO
    return APPLIER in before or bool(is_free and _AFTER_FILES.isdisjoint(after))


def _read_base(unit: str, root: str, looked: Looked) -> str:
    """Return the text of a unit of which only drop-ins are listed."""
    stem, at, instance = unit.partition("@")
    names = [unit, f"{stem}@.{instance.rpartition('.')[2]}"] if at else [unit]
    paths = [f"{folder}/{name}" for name in names for folder in ALL_UNITS]
    looked.update(paths)
    return next(filter(None, (read_script(path, root) for path in paths)), "")
