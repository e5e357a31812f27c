"""Fetch the source of a Debian package as upstream left it, from the mirror that apt uses here."""

# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

from .cache import HostError
from .tool import run_tool

_SOURCES = "$(REPO_URI) $(RELEASE) $(COMPONENT)"


def unpack_source(package: str, release: str, folder: Path, log: Path) -> Path:
    """Return the folder of a package's source, without Debian's patches, unpacked below *folder*.

    :raises HostError: If it cannot be had.
    """
    folder.mkdir(parents=True)
    with tarfile.open(_download(package, release, folder, log)) as packed:
        packed.extractall(folder, filter="data")
    return next(path for path in folder.iterdir() if path.is_dir() and path.name != "lists")


def _download(package: str, release: str, folder: Path, log: Path) -> Path:
    (folder / "lists" / "partial").mkdir(parents=True)
    (folder / "sources.list").write_text(f"deb-src {_find_mirror()} {release} main\n")
    options = [
        *("-o", f"Dir::Etc::SourceList={folder}/sources.list"),
        *("-o", "Dir::Etc::SourceParts=/dev/null"),
        *("-o", f"Dir::State::Lists={folder}/lists"),
        *("-o", "APT::Sandbox::User=root"),
    ]
    run_tool(["apt-get", *options, "update"], log, 300)
    download = ["apt-get", *options, "source", "--download-only", "--tar-only", package]
    run_tool(["env", "-C", folder, *download], log, 300)
    found = list(folder.glob(f"{package}_*.orig.tar.*"))
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
