# SPDX-License-Identifier: BSD-2-Clause
"""Judge the conditions of a unit, as far as the files of its tree decide them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping

from ..host.files import under
from .boot_quiet_read import Looked
from .boot_units import Setting, parse_unit

_KINDS: dict[str, Callable[[str], bool]] = {
    "PathExists": os.path.lexists,
    "PathIsDirectory": os.path.isdir,
    "FileIsExecutable": lambda path: os.path.isfile(path) and os.access(path, os.X_OK),
    "FileNotEmpty": lambda path: os.path.isfile(path) and os.path.getsize(path) > 0,
}
_WORDS = {"User": ("root", "0", "@system"), "Group": ("root", "0")}
OF_BOOT = ("/dev/", "/proc/", "/run/", "/sys/", "/var/run/")
"""Folders that a boot makes: what is to be there is not there before."""
_EVERYWHERE = ("/dev", "/proc", "/proc/sys", "/proc/sys/kernel", "/proc/sys/vm", "/run", "/sys")


def judge_conditions(texts: Mapping[str, str], root: str, looked: Looked) -> bool | None:
    """Tell whether the conditions of a unit hold at boot; ``None`` where that is not known.

    :param texts: The unit and its drop-ins, in the order in which systemd reads them.
    :param looked: Gets the files that decide it.
    """
    if not any("Condition" in text or "Assert" in text for text in texts.values()):
        return True
    settings = [one for path, text in texts.items() for one in parse_unit(path, text)]
    settings = [one for one in settings if one.section == "Unit"]
    found = [*_list_all(settings, "Condition"), *_list_all(settings, "Assert")]
    sure: list[bool | None] = []
    triggers: list[bool | None] = []
    for one in found:
        of_any = one.value.startswith("|")
        (triggers if of_any else sure).append(_judge(one, root, looked))
    if triggers:  # One of those is enough.
        sure.append(True if True in triggers else None if None in triggers else False)
    return _join(sure)


def _list_all(settings: Iterable[Setting], start: str) -> list[Setting]:
    """Return what must hold, of every kind: an empty setting takes back all before it."""
    found: list[Setting] = []
    for one in settings:
        if one.name.startswith(start) and one.value:
            found.append(one)
        elif one.name.startswith(start):
            found.clear()
    return found


def _join(answers: Iterable[bool | None]) -> bool | None:
    found = set(answers)
    return False if False in found else None if None in found else True


def _judge(setting: Setting, root: str, looked: Looked) -> bool | None:
    kind = setting.name.replace("Condition", "", 1).replace("Assert", "", 1)
    value = setting.value.lstrip("|").strip()
    wanted = not value.startswith("!")
    value = value.lstrip("!").strip()
    if kind in _WORDS:
        return (value in _WORDS[kind]) is wanted
    is_path = value.startswith("/") and not any(mark in value for mark in "%\"'\\")
    if kind not in (*_KINDS, "PathIsReadWrite") or not is_path:
        return None
    if value.rstrip("/") in _EVERYWHERE:
        return wanted
    if f"{value}/".startswith(OF_BOOT) or kind not in _KINDS:
        return None  # What a boot makes is not in a tree, and that of a host may be gone.
    looked.add(value)
    try:
        return _KINDS[kind](under(value, root)) is wanted
    except OSError:
        return None
