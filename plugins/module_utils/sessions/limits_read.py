# SPDX-License-Identifier: BSD-2-Clause
"""Read the limits files of a host, or of a tree that will be one."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from ..host.files import leads_to_null, list_folder, read_folder, read_text, under
from .pam_limits import LIMITS_CONF, LIMITS_D


def read_limits_files(root: str = "/") -> dict[str, str]:
    """Return limits.conf and every file of limits.d that pam_limits may read, by path."""
    main = read_text(LIMITS_CONF, root)
    return {**({} if main is None else {LIMITS_CONF: main}), **read_folder(LIMITS_D, root)}


def find_broken_files(strict: bool, root: str = "/") -> Iterator[tuple[str, str]]:
    """Yield the limits files on which PAM stops every login, each with the reason.

    :param strict: Whether PAM refuses sessions where it cannot open a file (before 1.5.3).
    """
    names = [name for name in list_folder(LIMITS_D, root) if _is_read(name)]
    for path in (LIMITS_CONF, *(f"{LIMITS_D}/{name}" for name in names)):
        try:
            mode = os.stat(under(path, root)).st_mode
        except OSError:
            if strict and not leads_to_null(path, root):
                yield path, _describe_missing(root.rstrip("/") + path)
            continue
        if stat.S_ISFIFO(mode):
            yield path, "is a named pipe, on which every login waits"


def find_hanging_limits_files(root: str = "/") -> list[str]:
    """Return the links of limits.d that lead nowhere and that pam_limits would try to read."""
    broken = [path for path, reason in find_broken_files(True, root) if path != LIMITS_CONF]
    return [path for path in broken if os.path.islink(root.rstrip("/") + path)]


def _is_read(name: str) -> bool:
    return name.endswith(".conf") and not name.startswith(".")


def _describe_missing(path: str) -> str:
    if os.path.islink(path):
        return f"is a link to {os.readlink(path)}, which cannot be opened"
    return "is missing"
