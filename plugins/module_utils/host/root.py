# SPDX-License-Identifier: BSD-2-Clause
"""Tell whether this process is root's, which alone changes a host."""

from __future__ import annotations

import os


def require_root() -> None:
    """Refuse to change a host as anybody else, before anything of it is read.

    :raises PermissionError: If the caller is not root.
    """
    if not is_root():
        raise PermissionError(
            "must run as root: it writes files of the whole host (sudo; in Ansible, become: true)"
        )


def is_root() -> bool:
    return os.geteuid() == 0
