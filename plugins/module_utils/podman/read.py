# SPDX-License-Identifier: BSD-2-Clause
"""Read what decides the limits of Podman's containers: its files, its version, who may use it."""

from __future__ import annotations

import os
import pwd
import re
from functools import partial

from ..host.files import read_folder, read_text
from ..host.owned import ask_owner
from ..host.program import run_program
from .containers_conf import DROP_INS, MAIN, USERS_MAIN, VENDOR

PROGRAMS = ("/usr/bin/podman", "/usr/local/bin/podman", "/usr/sbin/podman")
_READS_ROOTS_OWN = (4, 9)
_TIME_LIMIT = 60.0


def find_podman() -> str | None:
    """Return the program, or ``None`` where Podman is not installed."""
    return next((path for path in PROGRAMS if os.access(path, os.X_OK)), None)


def read_version() -> tuple[int, ...]:
    """Return the version, such as ``(4, 3, 1)``; empty where it is not told."""
    program = find_podman()
    if program is None:
        return ()
    text = run_program([program, "--version"], _TIME_LIMIT, with_errors=False)[1]
    found = re.search(r"version ([0-9]+(?:\.[0-9]+)+)", text)
    return tuple(int(part) for part in found[1].split(".")) if found else ()


def read_conf_files(user: str = "") -> dict[str, str]:
    """Return the files that Podman reads for a user, as latin-1, by path.

    :param user: Empty for root, whose own files count since Podman 4.9.
    :raises OSError: If one cannot be read.
    """
    files = read_tree_conf_files("/")
    own = _find_own(user)
    if own and user:
        told = ask_owner(pwd.getpwnam(user).pw_uid, partial(_read_own, own))
        files.update({str(path): str(text) for path, text in told.items()})
    elif own and _has_own(own):
        files.update(_read_own(own))
    return files


def _read_own(own: str) -> dict[str, str]:
    text = read_text(own)
    return {**({} if text is None else {own: text}), **read_folder(f"{own}.d")}


def read_tree_conf_files(root: str) -> dict[str, str]:
    """Return the files that Podman reads for everyone, in a tree that will be a host."""
    named = {path: read_text(path, root) for path in (VENDOR, MAIN)}
    files = {path: text for path, text in named.items() if text is not None}
    return {**files, **read_folder(DROP_INS, root)}


def _has_own(own: str) -> bool:
    """Tell whether root has files of its own that this Podman reads."""
    there = os.path.exists(own) or os.path.isdir(f"{own}.d")
    return there and read_version() >= _READS_ROOTS_OWN


def _find_own(user: str) -> str:
    try:
        return f"{pwd.getpwnam(user or 'root').pw_dir}/{USERS_MAIN}"
    except KeyError:
        return ""
