"""Build pam_limits without Debian's patches, so that a guest refuses logins as Red Hat does."""

# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from .cache import cache_root, produce, say
from .source import unpack_source
from .tool import run_tool

RELEASE = "bullseye"
"""Its upstream release, 1.4.0, lies between those of Red Hat 8 (1.3.1) and 9 (1.5.1)."""

_PLACE = "/lib/x86_64-linux-gnu/security/pam_limits.so"
CARRIED = "pam_limits.so"
"""Its name below /opt of a guest, for ``carry``; the commands expect it there."""

# Renamed, not copied, over the old one: sessions that are open have that mapped.
INSTALL = (
    f"cp -a {_PLACE} {_PLACE}.debian && cp /opt/{CARRIED} {_PLACE}.new && mv {_PLACE}.new {_PLACE}"
)
UNINSTALL = f"mv {_PLACE}.debian {_PLACE}"

_DEFINES = (
    'LIMITS_FILE="/etc/security/limits.conf"',
    'SCONFIG_DIR="/etc/security"',  # Since 1.6 it puts the two together itself.
    "HAVE_SYS_PRCTL_H=1",
    "UNUSED=",
    "_(text)=text",
)


def build(release: str = RELEASE) -> Path:
    """Return the shared object, made once; what an interrupted build left is made anew.

    :param release: The Debian whose upstream version it is.
    """
    name = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:12]
    target = cache_root() / "pam" / f"{release}-{name}"
    return produce(target, "building pam_limits", lambda to: _fill(to, release)) / "pam_limits.so"


def _fill(folder: Path, release: str) -> None:
    say("building upstream's pam_limits (a few seconds, once)")
    log, work = folder / "build.log", folder / "work"
    source = unpack_source("pam", release, work, log)
    (work / "config.h").touch()
    # A symbol that nobody has would only show as "Module is unknown" when a session opens.
    words: list[str | Path] = ["gcc", "-shared", "-fPIC", "-O2", "-w", "-Wl,--no-undefined"]
    program = source / "modules" / "pam_limits" / "pam_limits.c"
    pattern = "" if '(LIMITS_FILE_DIR "/*.conf")' in program.read_text() else "/*.conf"
    words += [f"-D{define}" for define in _DEFINES]
    words += [f'-DLIMITS_FILE_DIR="/etc/security/limits.d{pattern}"']
    words += [f"-I{path}" for path in (work, source / "libpam" / "include", source / "libpam")]
    words += [program, "-l:libpam.so.0"]
    run_tool([*words, "-o", folder / "pam_limits.so"], log, 120)
    shutil.rmtree(work)
