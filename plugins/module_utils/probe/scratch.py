# SPDX-License-Identifier: BSD-2-Clause
"""A folder for one measurement, which only root can look into and which outlives nobody."""

from __future__ import annotations

import os

PARENT = os.environ.get("RUNTIME_DIRECTORY", "/run")
"""Where such folders are; a hardened service may write nowhere else."""

_PREFIX = "mlhost-limits-"


def make_scratch(parent: str = PARENT) -> str:
    """Make a folder whose name nobody can guess; its owner is in it, see :func:`find_abandoned`."""
    folder = f"{parent}/{_PREFIX}{os.getpid()}-{os.urandom(8).hex()}"
    os.mkdir(folder, 0o700)
    return folder


def remove_scratch(folder: str) -> None:
    """Remove a folder of :func:`make_scratch` with all that is in it."""
    with os.scandir(folder) as entries:
        for entry in list(entries):
            if entry.is_dir(follow_symlinks=False):
                remove_scratch(entry.path)
            else:
                os.unlink(entry.path)
    os.rmdir(folder)


def find_abandoned(parent: str = PARENT) -> list[str]:
    """Return the folders whose process is gone: it was killed."""
    return [
        f"{parent}/{name}"
        for name in sorted(os.listdir(parent))
        if name.startswith(_PREFIX) and not os.path.exists(f"/proc/{name.split('-')[2]}")
    ]
