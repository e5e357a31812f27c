# SPDX-License-Identifier: BSD-2-Clause
"""Tell whether systemd runs this host, and whether this is a tree of another machine."""

from __future__ import annotations

import os
from functools import lru_cache

_BOOTED = "/run/systemd/system"


def is_booted() -> bool:
    """Tell whether systemd runs this host (sd_booted(3)); in an image it does not."""
    return os.path.isdir(_BOOTED) and not os.path.islink(_BOOTED) and not is_chroot()


@lru_cache(maxsize=None)
def is_chroot() -> bool:
    """Tell whether this is a tree of a machine that goes on outside of it.

    What /proc shows there, if it is mounted at all, are the processes and values of that machine.
    """
    try:
        first = os.stat("/proc/1/root/.")
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False  # Only root may look; whoever is not builds no image.
    own = os.stat("/")
    return (own.st_dev, own.st_ino) != (first.st_dev, first.st_ino)
