"""Put our library on a guest, so that it measures and predicts there without Ansible."""

# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import base64
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

from .connection import Host

LIBRARY = Path(__file__).parents[2] / "plugins" / "module_utils"
FOLDER = "/opt"
"""Where ``import mlhost_limits`` finds it: ``PYTHONPATH=/opt python3 …``."""


def carry(host: Host, files: Mapping[str, Path] | None = None) -> None:
    """Copy the library to ``/opt/mlhost_limits`` of a guest, and other files beside it.

    :param files: What else to copy, by its path below ``/opt``.
    """
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        archive.add(LIBRARY, "mlhost_limits", filter=_without_caches)
        for name, path in (files or {}).items():
            archive.add(path, name)
    text = base64.b64encode(packed.getvalue()).decode()
    host.ssh(f"base64 -d | tar -xz -C {FOLDER}", input=text)


def _without_caches(file: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if "__pycache__" in file.name else file
