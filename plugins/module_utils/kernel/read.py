# SPDX-License-Identifier: BSD-2-Clause
"""Read the kernel's running values from /proc/sys."""

from __future__ import annotations

from ..host.door import read_kernel_file


def sysctl_path(key: str, proc: str = "/proc") -> str:
    """Return the file of a key with dots; a slash inside stands for a dot of a name."""
    return f"{proc}/sys/" + key.translate(str.maketrans("./", "/."))


def read_sysctl(key: str, proc: str = "/proc") -> str | None:
    """Return a running value, or ``None`` where this kernel has no such key.

    :raises OSError: If the key is there and cannot be read.
    """
    try:
        return read_kernel_file(sysctl_path(key, proc)).decode("ascii", "replace").strip()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
