# SPDX-License-Identifier: BSD-2-Clause
"""Read how the pam_limits of a host, or of a tree that will be one, reads its files."""

from __future__ import annotations

import os

from ..core.distribution import Dialect
from ..host.door import NoFileError
from ..host.files import read_bytes, read_distribution
from .pam_build import VENDOR, is_build, read_build

_FOLDERS = (
    f"/usr/lib/{os.uname().machine}-linux-gnu/security",
    "/usr/lib64/security",
    "/usr/lib/security",
    f"/lib/{os.uname().machine}-linux-gnu/security",
    "/lib64/security",
    "/lib/security",
)


def read_dialect(root: str = "/") -> Dialect:
    """Return how pam_limits reads: as the module itself tells, or else its distribution."""
    likely = read_distribution(root).pam
    content = _read_module(root)
    return read_build(content, likely) if is_build(content) else likely


def reads_vendor_files(root: str = "/") -> bool:
    """Tell whether pam_limits looks into /usr/etc/security as well, as SUSE builds it."""
    return VENDOR in _read_module(root)


def _read_module(root: str) -> bytes:
    for folder in _FOLDERS:
        try:
            content = read_bytes(f"{folder}/pam_limits.so", root)
        except (OSError, NoFileError):
            continue
        if content:
            return content
    return b""
