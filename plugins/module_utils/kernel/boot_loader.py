# SPDX-License-Identifier: BSD-2-Clause
"""Find what words of a kernel's command line, besides those of sysctls, decide of a boot."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ..core.values import Declaration

MATTERS = re.compile(
    r"sysctl[./]|systemd\.(?:mask|wants|run|set_credential)|blacklist="
    r"|\bfstab=|systemd\.mount-extra="
)
"""What a file of a boot loader has that may set a sysctl, or keep one from being set, or mounts."""

_DOUBTS = (
    r"systemd\.mask=systemd-sysctl(?:\.service)?(?=[\s\"',]|$)"
    r"|systemd\.set_credential(?:_binary)?=(?:sysctl|tmpfiles)\.extra:[^\s\"']*"
    r"|systemd\.run=\S*"
)
_MOUNTS = (
    r"(?<![\w.-])(?:fstab=(?:0|n|no|f|false|off)(?=[\s\"',]|$)"
    r"|systemd\.mount-extra=[^\s\"',]*:/dev/shm[^\s\"',]*"
    r"|systemd\.mask=systemd-remount-fs(?:\.service)?(?=[\s\"',]|$))"
)
_WANTS = r"(?<![\w.])systemd\.wants=([\w@.:-]+)"
_STOPS = r"(?<![\w.])(?:modprobe\.|module_)blacklist=([\w,-]+)"
_NO_MODULES = r"(?<![\w.])systemd\.mask=systemd-modules-load(?:\.service)?(?=[\s\"',]|$)"


def _find(pattern: str, texts: Mapping[str, str]) -> Iterator[tuple[Declaration, re.Match[str]]]:
    for path, text in texts.items():
        for number, line in enumerate(text.split("\n"), 1):
            if not line.lstrip().startswith("#"):
                for found in re.finditer(pattern, line):
                    yield Declaration(path, number, found[0], ""), found


def find_loader_doubts(texts: Mapping[str, str]) -> Iterator[Declaration]:
    """Yield the words that may have a boot set other sysctls than its files state."""
    return (at for at, _found in _find(rf"(?<![\w.])(?:{_DOUBTS})", texts))


def find_loader_mounts(texts: Mapping[str, str]) -> Iterator[Declaration]:
    """Yield the words with which a boot may mount something else at /dev/shm than fstab says."""
    return (at for at, _found in _find(_MOUNTS, texts))


def find_loader_units(texts: Mapping[str, str]) -> list[str]:
    """Return the units that a command line may have a boot start."""
    names = (found[1] for _at, found in _find(_WANTS, texts))
    return [name if "." in name else f"{name}.service" for name in names]


def find_loader_stops(texts: Mapping[str, str]) -> dict[str, Declaration]:
    """Return the words that keep modules from being loaded, by module; nothing for all of them."""
    found = {
        name.replace("-", "_"): at
        for at, words in _find(_STOPS, texts)
        for name in words[1].split(",")
    }
    found.update(("", at) for at, _words in _find(_NO_MODULES, texts))
    return found
