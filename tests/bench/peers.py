# SPDX-License-Identifier: GPL-3.0-or-later
"""Install the collections to compare with, once for each pinned version."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

REQUIREMENTS = Path(__file__).with_name("requirements.txt")


def install_peers(folder: Path) -> Path:
    """Return a folder for ``ANSIBLE_COLLECTIONS_PATH`` that holds the stock modules.

    The package is unpacked apart from every environment: the controller stays the one that the
    tests use, and nothing of ours can import from it.
    """
    stamp = folder / "installed"
    if stamp.exists() and stamp.read_text() == REQUIREMENTS.read_text():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    print("installing the stock modules (two minutes, once)", file=sys.stderr)
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    options = ["--no-deps", "--no-compile", "--target", str(folder), "-r", str(REQUIREMENTS)]
    subprocess.run([*install, *options], check=True)
    shutil.copy(REQUIREMENTS, stamp)
    return folder
