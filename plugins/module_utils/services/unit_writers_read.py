# SPDX-License-Identifier: BSD-2-Clause
"""Read what a boot of a tree runs that may write units, or drop-ins of some, with limits."""

from __future__ import annotations

import re
from functools import cached_property

from ..core.values import Declaration
from ..kernel.boot_calls import is_unit
from ..kernel.boot_scripts_read import read_boot_scripts
from ..kernel.boot_units import list_unread

_LIMIT = re.compile(r"(?:Limit[A-Z]+|TasksMax)=")
_PLACE = re.compile(r"systemd/|\[(?:Service|Manager)\]|\.(?:service|slice|scope)\b|system\.conf")
_ANY_UNIT = re.compile(
    r"Default(?:Limit|TasksMax)|[$`*]\{?\w*\}?\.(?:service|slice)\b|/service\.d\b"
)


def is_about_units(text: str) -> bool:
    """Tell whether a script may write a limit of units."""
    return _LIMIT.search(text) is not None and _PLACE.search(text) is not None


class UnitWriters:
    """What may write units while a tree boots: generators, cloud-init, scripts."""

    def __init__(self, root: str) -> None:
        self._root = root

    @cached_property
    def _texts(self) -> dict[str, str]:
        found = read_boot_scripts(self._root, of_packages=True, is_wanted=is_about_units)
        return {path: text for path, text in found.items() if not is_unit(path)}

    def find(self, unit: str) -> Declaration | None:
        """Return a line that may write a limit of a unit, or of all where no unit is named."""
        stem, _dot, kind = unit.rpartition(".")
        named = re.compile(rf"(?<![\w-]){re.escape(stem.partition('@')[0])}(?:@[^\s/]*)?\.{kind}\b")
        for path, text in self._texts.items():
            is_named = not unit or named.search(text) or _ANY_UNIT.search(text)
            unread = list_unread(text)
            for number, line in enumerate(text.split("\n"), 1):
                states = _LIMIT.search(line) and not line.lstrip().startswith("#")
                if (states and is_named) or number in unread:
                    return Declaration(path, number, line.strip(), "")
        return None
