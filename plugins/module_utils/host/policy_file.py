# SPDX-License-Identifier: BSD-2-Clause
"""Read the file of a policy: a regular one, of a size that a person would write."""

from __future__ import annotations

import os
import stat

LARGEST = 2**20


def read_policy_file(path: str) -> bytes:
    """Return what a file holds; what is no regular file is named and neither opened nor waited for.

    :raises OSError: If it is absent, no regular file, or larger than 1 MiB.
    """
    handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(f"{path}: is no regular file")
        with open(f"/proc/self/fd/{handle}", "rb") as file:
            content = file.read(LARGEST + 1)
    finally:
        os.close(handle)
    if len(content) > LARGEST:
        raise OSError(f"{path}: is larger than 1 MiB")
    return content
