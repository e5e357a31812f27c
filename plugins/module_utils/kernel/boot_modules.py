# SPDX-License-Identifier: BSD-2-Clause
"""Find the modules that a boot loads before the files of sysctl.d are read, and what stops some.

systemd-modules-load(8) heeds ``blacklist`` and ``install`` of modprobe.d(5), as libkmod does for
it (``KMOD_PROBE_APPLY_BLACKLIST``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ..core.values import Declaration

_STOP = re.compile(r"\s*(blacklist|install)\s+([\w-]+)(.*)")
_LOADS_IT = r"\bmodprobe\b.*(?:--ignore-install|\s-\w*i)"


def find_loads(texts: Mapping[str, str]) -> frozenset[str]:
    """Return the modules that files of modules-load.d(5) name."""
    lines = (line.strip() for text in texts.values() for line in text.split("\n"))
    return frozenset(line.replace("-", "_") for line in lines if line[:1] not in ("", "#", ";"))


def find_stops(texts: Mapping[str, str]) -> dict[str, Declaration]:
    """Return the lines of modprobe.d(5) that keep a module from being loaded, by module."""
    found: dict[str, Declaration] = {}
    for path, text in texts.items():
        for number, line in enumerate(text.split("\n"), 1):
            stop = _STOP.match(line)
            if stop and not (stop[1] == "install" and re.search(_LOADS_IT, stop[3])):
                name = stop[2].replace("-", "_")
                found.setdefault(name, Declaration(path, number, line.strip(), ""))
    return found


def find_hidden(layers: Sequence[Mapping[str, str]]) -> dict[str, Declaration]:
    """Return the files that hide one of the same name, by the modules that are not loaded for it.

    :param layers: The files of each folder by path, the strongest folder first.
    """
    winners: dict[str, str] = {}
    found: dict[str, Declaration] = {}
    for layer in layers:
        for path, text in layer.items():
            name = path.rpartition("/")[2]
            if name in winners:
                at = Declaration(winners[name], 0, f"a file named {name}", "")
                found.update(dict.fromkeys(find_loads({path: text}), at))
            winners.setdefault(name, path)
    return found


def pick_strongest(layers: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the files that count: of those of one name, that of the strongest folder."""
    found = {
        path.rpartition("/")[2]: (path, text)
        for layer in reversed(layers)
        for path, text in layer.items()
    }
    return dict(found.values())
