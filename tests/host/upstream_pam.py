"""Build pam_limits without Debian's patches, so that a guest refuses logins as Red Hat does."""

# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import hashlib
import shutil
import subprocess
import tarfile
from pathlib import Path

from .cache import HostError, cache_root, produce, say
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

_SOURCES = "$(REPO_URI) $(RELEASE) $(COMPONENT)"
_DEFINES = (
    'LIMITS_FILE="/etc/security/limits.conf"',
    'LIMITS_FILE_DIR="/etc/security/limits.d/*.conf"',
    "HAVE_SYS_PRCTL_H=1",
    "UNUSED=",
    "_(text)=text",
)


def build() -> Path:
    """Return the shared object, made once; what an interrupted build left is made anew."""
    name = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:12]
    target = cache_root() / "pam" / f"{RELEASE}-{name}"
    return produce(target, "building pam_limits", _fill) / "pam_limits.so"


def _fill(folder: Path) -> None:
    say("building upstream's pam_limits (a few seconds, once)")
    log, work = folder / "build.log", folder / "work"
    source = _unpack(_download(work, log), work)
    (work / "config.h").touch()
    # A symbol that nobody has would only show as "Module is unknown" when a session opens.
    words: list[str | Path] = ["gcc", "-shared", "-fPIC", "-O2", "-w", "-Wl,--no-undefined"]
    words += [f"-D{define}" for define in _DEFINES]
    words += [f"-I{path}" for path in (work, source / "libpam" / "include", source / "libpam")]
    words += [source / "modules" / "pam_limits" / "pam_limits.c", "-l:libpam.so.0"]
    run_tool([*words, "-o", folder / "pam_limits.so"], log, 120)
    shutil.rmtree(work)


def _download(folder: Path, log: Path) -> Path:
    """Return upstream's own archive, from the mirror that this machine's apt uses."""
    (folder / "lists" / "partial").mkdir(parents=True)
    (folder / "sources.list").write_text(f"deb-src {_find_mirror()} {RELEASE} main\n")
    options = [
        *("-o", f"Dir::Etc::SourceList={folder}/sources.list"),
        *("-o", "Dir::Etc::SourceParts=/dev/null"),
        *("-o", f"Dir::State::Lists={folder}/lists"),
        *("-o", "APT::Sandbox::User=root"),
    ]
    run_tool(["apt-get", *options, "update"], log, 300)
    download = ["apt-get", *options, "source", "--download-only", "--tar-only", "pam"]
    run_tool(["env", "-C", folder, *download], log, 300)
    found = list(folder.glob("pam_*.orig.tar.*"))
    if not found:
        raise HostError(f"apt-get source brought no archive; see {log}")
    return found[0]


def _find_mirror() -> str:
    """Return where apt finds Debian's main archive.

    :raises HostError: If this machine has no such source.
    """
    done = subprocess.run(
        ["apt-get", "indextargets", "--format", _SOURCES],
        capture_output=True,
        text=True,
        check=False,
    )
    for line in done.stdout.splitlines():
        address, *names = line.split()
        if len(names) == 2 and names[1] == "main" and "-" not in names[0]:
            return address
    raise HostError("apt has no source of Debian's main archive")


def _unpack(archive: Path, folder: Path) -> Path:
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    return next(path for path in folder.iterdir() if (path / "modules").is_dir())
