# SPDX-License-Identifier: BSD-2-Clause
"""Find the library that a target keeps: all that a run needs where it is kept.

Ansible has Python compile what a module imports each time, so that this imports next to nothing.
"""

from __future__ import annotations

import os
import re
import stat

from .host.booted import is_booted

PACKAGE = "mlhost_limits"
DIGEST = re.compile(r"[0-9a-f]{64}")


def find_folder() -> str | None:
    """Return where this user's libraries are kept: in memory; ``None`` where there is no place.

    An image is no place: what is built holds nothing of how it was built.
    """
    uid = os.geteuid()
    parent = "/run" if uid == 0 else f"/run/user/{uid}"
    fit = os.path.isdir(parent) and (is_booted() or _is_host())
    return f"{parent}/mlhost-limits/library" if fit else None


def _is_host() -> bool:
    from .host.image import is_image

    return not is_image()


def find_library(digest: str, folder: str | None) -> str | None:
    """Return the folder to import from, if the library is kept and only this user can write it."""
    if folder is None or not DIGEST.fullmatch(digest):
        return None
    path = f"{folder}/{digest}"
    parts = (os.path.dirname(folder), folder, path, f"{path}/{PACKAGE}")
    return path if all(map(_is_own, parts)) else None


def _is_own(path: str) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    own = found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return own and stat.S_ISDIR(found.st_mode)
