# SPDX-License-Identifier: BSD-2-Clause
"""Keep this library on a target until its next boot, so that a run need not bring it along.

A module of Ansible brings all that it imports, in a zip file whose sources Python compiles each
time. What is kept is brought once and compiled once; in memory, since what is in ``/run`` is gone
after a power cut, never half written.
"""

from __future__ import annotations

import base64
import binascii
import io
import os
import re
import zipfile
from collections.abc import Mapping

from .host.image import is_image
from .host.scratch import make_scratch, remove_scratch
from .kept_folder import DIGEST, PACKAGE, digest_files, find_library, name_folder, seal, unseal

_FILE = re.compile(r"(?:[a-z_]+/)?[a-z0-9_]+\.py")
_TOP = f"{PACKAGE}/"
_NEW = ".new-"
_MOST = 3  # Of kept ones: a run of an older collection may be going on.


def pack(files: Mapping[str, bytes]) -> str:
    """Return a library as text that a module takes as an argument: a zip file to import from."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            member = zipfile.ZipInfo(f"{PACKAGE}/{name}")
            archive.writestr(member, files[name], zipfile.ZIP_DEFLATED)
    return seal(base64.b64encode(target.getvalue()).decode("ascii"))


def unpack(text: str, digest: str) -> dict[str, bytes]:
    """Return the files of a packed library.

    :raises ValueError: If they are not those of the digest.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(base64.b64decode(unseal(text), validate=True))) as archive:
            files = {name: archive.read(name) for name in archive.namelist()}
    except (binascii.Error, zipfile.BadZipFile) as exc:
        raise ValueError(f"the library did not arrive whole: {exc}") from None
    found = {name[len(_TOP) :]: content for name, content in files.items() if _is_ours(name)}
    if len(found) < len(files) or digest_files(found) != digest:
        raise ValueError("the library that arrived is not the one that was sent")
    return found


def _is_ours(name: str) -> bool:
    return name.startswith(_TOP) and _FILE.fullmatch(name[len(_TOP) :]) is not None


def find_folder() -> str | None:
    """Return where a library can be kept; ``None`` where there is no place.

    An image is not a place: what is built holds nothing of how it was built.
    """
    folder = name_folder()
    fit = os.path.isdir(os.path.dirname(os.path.dirname(folder))) and not is_image()
    return folder if fit else None


def keep_library(files: Mapping[str, bytes], digest: str, folder: str | None) -> str | None:
    """Keep a library and return the folder to import from; ``None`` where it cannot be kept."""
    if folder is None:
        return None
    before = os.umask(0o077)
    try:
        os.makedirs(folder, exist_ok=True)
        new = make_scratch(folder, _NEW)
        try:
            _write(files, f"{new}/{PACKAGE}")
            os.rename(new, f"{folder}/{digest}")
        except OSError:
            remove_scratch(new)  # Another run was faster, or there is no room.
        _forget(folder, digest)
    except OSError:
        return None
    finally:
        os.umask(before)
    return find_library(digest, folder)


def write_library(files: Mapping[str, bytes], folder: str) -> str:
    """Write a library for this run alone, into an empty folder that goes with it."""
    _write(files, f"{folder}/{PACKAGE}")
    return folder


def _write(files: Mapping[str, bytes], top: str) -> None:
    for name, content in files.items():
        path = f"{top}/{name}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)


def _forget(folder: str, current: str) -> None:
    """Remove the oldest of other libraries."""
    with os.scandir(folder) as entries:
        ages = {entry.name: entry.stat(follow_symlinks=False).st_mtime for entry in entries}
    others = [name for name in ages if DIGEST.fullmatch(name) and name != current]
    others.sort(key=lambda name: -ages[name])
    for name in others[_MOST - 1 :]:
        remove_scratch(f"{folder}/{name}")
