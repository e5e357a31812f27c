# SPDX-License-Identifier: BSD-2-Clause
"""Tell from pam_limits.so how it was built: what it names and what it calls is in its text."""

from __future__ import annotations

from ..core.distribution import Dialect

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
