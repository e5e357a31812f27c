# SPDX-License-Identifier: BSD-2-Clause
"""Find the library that a target keeps: all that a run needs where it is kept.

Ansible has Python compile what a module imports each time, so that this imports nothing of ours.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat

PACKAGE = "mlhost_limits"
DIGEST = re.compile(r"[0-9a-f]{64}")


def seal(text: str) -> str:
    """Return a text with what shows that it arrived whole."""
    return f"{_sum(text)}:{text}"


def unseal(text: str) -> str:
    """Return what was sealed.

    :raises ValueError: If it is not whole.
    """
    told, _colon, content = text.partition(":")
    if told != _sum(content):
        raise ValueError("the library did not arrive whole")
    return content


def _sum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def name_folder() -> str:
    """Return where this user's libraries are kept, if they are: in memory."""
    uid = os.geteuid()
    return f"/run{f'/user/{uid}' if uid else ''}/mlhost-limits/library"


def find_library(digest: str, folder: str) -> str | None:
    """Return the folder to import from, if the library is kept and only this user can write it."""
    if not DIGEST.fullmatch(digest):
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
