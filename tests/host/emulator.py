"""QEMU of one release of Debian, whatever this machine has, run out of a folder of its own.

Version 10 takes three quarters of the time of bookworm's 7.2 for the same work in a guest.
"""

# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from functools import cache
from pathlib import Path

from .cache import cache_root, produce, require_space, say
from .tool import run_tool

NAME = "qemu-system-x86_64"
_RELEASE = "trixie"
_PACKAGES = "qemu-system-x86,qemu-utils"
_GIB = 0.5


@cache
def find(program: str = NAME) -> tuple[str, ...]:
    """Return the words that start one of QEMU's programs, installing them if the cache has none.

    Their own loader and libraries are used, and none of this machine's.
    """
    usr = produce(cache_root() / "qemu" / _RELEASE, "installing QEMU", _fill) / "usr"
    loader = next(usr.glob("lib*/ld-linux-*.so.*"))
    libraries = next(usr.glob("lib/*-linux-gnu"))
    words = (str(loader), "--library-path", str(libraries), str(usr / "bin" / program))
    if program != NAME:
        return words
    return (*words, "-L", str(usr / "share/qemu"), "-L", str(usr / "share/seabios"))


def _fill(folder: Path) -> None:
    require_space(folder, _GIB)
    say("installing QEMU into the cache (ten seconds, once)")
    log = folder.with_suffix(".log")
    words = ["mmdebstrap", "--variant=extract", f"--include={_PACKAGES}", _RELEASE]
    run_tool([*words, folder], log, 600)
