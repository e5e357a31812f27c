"""A host on which root has run the collection once, as on any but a new one.

The first run brings the library and compiles it, which takes an emulated host longer than most
of what it does with it.
"""

# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import hashlib
import shutil
from functools import partial
from pathlib import Path

from . import snapshot
from .cache import discard, is_plain, produce, require_space, say
from .connection import Host, set_clock, write_files
from .image import Image
from .machine import add_overlay, launch, save_state
from .snapshot import SNAPSHOT_GIB, Snapshot
from .tool import run_tool

BUILD = Path(__file__).parents[2] / "build"
LIBRARY = BUILD / "collections" / "ansible_collections" / "mlhost" / "limits" / "plugins"
_RUN = (
    "-m",
    "mlhost.limits.check",
    "-a",
    '{"profile": "none", "policy": {"kernel": {"fs.file-max": 1}}}',
)
_COMPILE = "python3 -m compileall -q /run/mlhost-limits/library; sync"


def take(image: Image) -> Snapshot:
    """Return the snapshot, making it if needed; of a new host where no collection is built."""
    booted = snapshot.take(image)
    if not (LIBRARY.is_dir() and shutil.which("ansible") and is_plain(BUILD)):
        return booted
    target = BUILD / "warm" / image.folder.name / _digest(booted)
    if not target.exists():
        for older in target.parent.glob("*/memory"):
            if not older.parent.suffix:  # Another process may be making ours.
                discard(older.parent)
    return Snapshot(produce(target, "a first run", partial(_run_and_save, image, booted)))


def _digest(booted: Snapshot) -> str:
    """Return what changes with the library, and with the disk that this one adds to."""
    told = hashlib.sha256(str(booted.disk.stat().st_mtime_ns).encode())
    for path in sorted(LIBRARY.rglob("*.py")):
        told.update(str(path).encode() + path.read_bytes())
    return told.hexdigest()[:12]


def _run_and_save(image: Image, booted: Snapshot, folder: Path) -> None:
    require_space(folder, SNAPSHOT_GIB)
    say("running the collection once (half a minute)")
    log = folder / "build.log"
    add_overlay(folder, booted.disk, "qcow2", log)
    host = Host("warm", launch(image, folder, booted.memory), folder)
    write_files(host, image)
    set_clock(host)
    run_tool(["ansible", "all", "-i", host.inventory, *_RUN], log, 300)
    host.ssh(_COMPILE)
    save_state(folder, folder / "memory")
