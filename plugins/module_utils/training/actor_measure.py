# SPDX-License-Identifier: BSD-2-Clause
"""Find out as whom a remedy in a directory of a run is carried out, so that no link misleads it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .folder_facts import FolderFacts


def find_actor(facts: FolderFacts, paths: Iterable[str]) -> str | None:
    """Return who carries out a remedy: empty for whoever looks, ``None`` where nobody safely can.

    Root does so only where every folder on the way is root's, and closed to others: there nobody
    puts a link in the way before it is pasted. Elsewhere the user does who will work there, or
    whose the directory is.

    :param paths: What the remedy changes: the directory, or what it holds.
    """
    folders = {os.path.dirname(os.path.abspath(path)) for path in paths}
    if os.geteuid() != 0 or all(map(is_roots, folders)):
        return ""
    names = (name for name in (facts.user, facts.owner) if name not in ("", "root"))
    return next(names, None)


def is_roots(path: str) -> bool:
    """Tell whether every folder of a path, as far as there are any, is root's and closed.

    In a sticky folder such as /tmp, a folder that is root's already stays where it is.
    """
    here, parts = "", path.strip("/").split("/")
    for part in ["", *parts]:
        above, here = here, f"{here}/{part}" if part else here
        try:
            found = os.lstat(here or "/")
        except FileNotFoundError:
            return not _is_open(above or "/")
        except OSError:
            return False
        if found.st_uid != 0 or not stat.S_ISDIR(found.st_mode):
            return False
        if _is_open(here or "/") and not found.st_mode & stat.S_ISVTX:
            return False
    return not _is_open(path)


def _is_open(folder: str) -> bool:
    """Tell whether others than root may make entries in a folder."""
    return bool(os.lstat(folder).st_mode & (stat.S_IWGRP | stat.S_IWOTH))
