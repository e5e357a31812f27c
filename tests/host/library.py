"""Put our library on a guest, so that it measures and predicts there without Ansible."""

# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import base64
import io
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from .connection import Host

LIBRARY = Path(__file__).parents[2] / "plugins" / "module_utils"
FOLDER = "/opt"
"""Where ``import mlhost_limits`` finds it: ``PYTHONPATH=/opt python3 …``."""


def carry(host: Host, files: Mapping[str, Path] | None = None, seconds: float = 120) -> None:
    """Copy the library to ``/opt/mlhost_limits`` of a guest, and other files beside it.

    :param files: What else to copy, by its path below ``/opt``.
    :param seconds: How long that may take.
    """
    with TemporaryDirectory(prefix="mlhost-library-") as folder:
        packed = _pack({"mlhost_limits": _compile(Path(folder) / "mlhost_limits"), **(files or {})})
    text = base64.b64encode(packed).decode()
    host.run(f"base64 -d | tar -xz -C {FOLDER}", input=text, timeout=seconds)


def _pack(files: Mapping[str, Path]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=1) as archive:
        for name, path in files.items():
            archive.add(path, name)
    return packed.getvalue()


def _compile(folder: Path) -> Path:
    """Copy the library with what Python keeps of it, which takes an emulated host a while."""
    shutil.copytree(LIBRARY, folder, ignore=shutil.ignore_patterns("__pycache__"))
    words = [sys.executable, "-m", "compileall", "-q", "-j", "2"]
    words += ["-s", str(folder.parent), "-p", FOLDER, str(folder)]
    subprocess.run(words, check=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": ""})
    return folder
