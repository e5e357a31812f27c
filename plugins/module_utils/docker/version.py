# SPDX-License-Identifier: BSD-2-Clause
"""Tell the dockerds apart that read their configuration differently."""

from __future__ import annotations

import re


def is_before_23(version: str) -> bool | None:
    """Tell whether a version, ``20.10.24+dfsg1`` or the like, is older than 23.0.

    23.0 reads daemon.json as a whole and checks it as UTF-8, takes a byte order mark and an
    empty file, and reads sizes anew. ``None`` where the version is not known.
    """
    release = re.match("[0-9]+", version)
    return int(release[0]) < 23 if release else None
