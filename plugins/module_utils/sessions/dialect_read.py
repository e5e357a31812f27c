# SPDX-License-Identifier: BSD-2-Clause
"""Read how the pam_limits of a host, or of a tree that will be one, reads its files."""

from __future__ import annotations

import os

from ..core.distribution import Dialect
from ..host.door import NoFileError
from ..host.files import read_bytes, read_distribution

MODULE_FOLDERS = (
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
    for folder in MODULE_FOLDERS:
        try:
            content = read_bytes(f"{folder}/pam_limits.so", root)
        except (OSError, NoFileError):
            continue
        if content:
            return content
    return b""


_ITEMS = ("rttime", "chroot", "nonewprivs")
_LINE_LENGTH = 1023
VENDOR = b"/usr/etc/security/limits"


def read_build(content: bytes, likely: Dialect) -> Dialect:
    """Return how a build of pam_limits reads its files.

    chroot is an item of Debian's patch, which spares root as well; lines are read with
    ``getline()`` since 1.6.0; where fs.nr_open is read, an unlimited nofile becomes it.

    :param likely: How its distribution is known to build it. Whether a file may be missing
        (since 1.5.3) is not to be seen in a build before 1.6.0: one that is not known may not.
    """
    unknown = tuple(item for item in _ITEMS if item.encode() not in content)
    has_buffer = b"getdelim" not in content and b"getline" not in content
    return Dialect(
        line_length=_LINE_LENGTH if has_buffer else 0,
        wildcard_root="chroot" in unknown,
        reads_nr_open=b"/sys/fs/nr_open" in content,
        unknown=unknown,
        needs_files=has_buffer and likely.needs_files,
    )


def is_build(content: bytes) -> bool:
    """Tell whether this is a pam_limits that can be asked."""
    return content.startswith(b"\x7fELF") and b"memlock" in content and b"nofile" in content
