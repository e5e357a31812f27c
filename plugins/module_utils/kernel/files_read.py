# SPDX-License-Identifier: BSD-2-Clause
"""Read the files of sysctl.d of a host, or of a tree that will be one."""

from __future__ import annotations

from ..host.files import list_folder, read_text
from .sysctl_conf import SYSCTL_DIRECTORIES


def read_sysctl_files(root: str = "/") -> dict[str, str]:
    """Return every file in the folders of sysctl.d(5), by path.

    A link that hangs is empty here: it hides its namesakes all the same.
    """
    return {
        f"{folder}/{name}": read_text(f"{folder}/{name}", root) or ""
        for folder in SYSCTL_DIRECTORIES
        for name in list_folder(folder, root)
        if name.endswith(".conf")
    }
