# SPDX-License-Identifier: BSD-2-Clause
"""Find what may keep systemd-sysctl from applying the files of sysctl.d as its package has it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..core.values import Declaration
from ..host.files import list_folder
from .boot_units import Setting, may_set, merge, parse_unit
from .boot_units_read import ALL_UNITS, APPLIER, has_unit, is_masked, read_unit

_PLAIN = r"[-@:+!|]*(?:/usr)?/lib/systemd/systemd-sysctl"
_BEFORE = ("ExecCondition", "ExecStartPre")
_CONFINING = (
    *("CapabilityBoundingSet", "InaccessiblePaths", "ReadOnlyPaths", "RootDirectory"),
    *("RootImage", "RootHash", "PrivateUsers", "SystemCallFilter"),
)
"""Settings of systemd.exec(5) with which it may write no sysctl, or reads files of its own."""
_NEEDS = ("Requires", "BindsTo")
_TARGET, _LINKS = "sysinit.target", (".wants", ".requires", ".upholds")


def find_applier_doubts(root: str) -> Iterator[Declaration]:
    """Yield the lines on account of which it may apply no file at boot, or not each."""
    texts = read_unit(APPLIER, root)
    settings = [one for path, text in texts.items() for one in parse_unit(path, text)]
    service = [one for one in settings if one.section == "Service"]
    needed = [one for one in settings if one.section == "Unit"]
    yield from map(_declare, (*_find_commands(service), *_find_needs(needed, root)))
    main = next((path for path in texts if path.endswith(f"/{APPLIER}")), "")
    if main and not _is_linked(root):
        yield Declaration(main, 0, "is wanted by no target", "")


def _find_commands(settings: Sequence[Setting]) -> Iterator[Setting]:
    """Yield the settings of a service that make it run less than the plain command."""
    starts = merge(settings, "ExecStart")
    plain = [one for one in starts if re.fullmatch(_PLAIN, one.value)]
    yield from starts[-1:] if not plain else ()
    for name in _BEFORE:
        yield from (one for one in merge(settings, name) if not one.value.startswith("-"))
    for name in _CONFINING:
        yield from merge(settings, name)[-1:]
    if plain and may_set(settings, plain[-1].value) is not True:
        names = ("ProtectKernelTunables", "DynamicUser", "User")
        yield from (one for one in settings if one.name in names)


def _find_needs(settings: Sequence[Setting], root: str) -> Iterator[Setting]:
    """Yield the settings that name units without which it does not start, and which are absent."""
    yield from merge(settings, "Requisite")
    for one in (one for name in _NEEDS for one in merge(settings, name)):
        names = one.value.split()
        if any(is_masked(name, root) or not has_unit(name, root, ALL_UNITS) for name in names):
            yield one


def _is_linked(root: str) -> bool:
    """Tell whether a link has it started, where the targets of a boot are there."""
    return not has_unit(_TARGET, root, ALL_UNITS) or any(
        APPLIER in list_folder(f"{folder}/{name}", root)
        for folder in ALL_UNITS
        for name in list_folder(folder, root)
        if name.endswith(_LINKS)
    )


def _declare(at: Setting) -> Declaration:
    return Declaration(at.path, at.first, f"{at.name}={at.value}", "")
