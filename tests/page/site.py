# SPDX-License-Identifier: GPL-3.0-or-later
"""The site of the documents, built by ``make docs`` if it is older than what it is made of."""

from __future__ import annotations

import subprocess
from pathlib import Path

TOP = Path(__file__).parents[2]
SITE = TOP / "build" / "site"
_MADE_OF = ("docs", "plugins", "roles", "tests/reference")


def build_site() -> Path:
    """Return the folder of the site, of the documents as they are."""
    index = SITE / "index.html"
    newest = max(
        path.stat().st_mtime
        for name in _MADE_OF
        for path in (TOP / name).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    )
    if not index.exists() or index.stat().st_mtime < newest:
        subprocess.run(["make", "docs"], cwd=TOP, check=True, capture_output=True, text=True)
    return SITE
