"""Boot an image once and keep the settled guest, so that others resume from there."""

# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from . import emulator
from .cache import produce, require_space, say
from .connection import Host, wait_until_settled, write_files
from .image import Image
from .machine import add_overlay, launch, list_machine, make_kernel_line, save_state

SNAPSHOT_GIB = 2

# Python's start is most of a module's run, so its files should be in the page cache
# already, as they are on a host that anybody has used. sync: the disk is frozen too.
START_SLURM = Path(__file__).with_name("start_slurm.sh")
_WARM_UP = "python3 -c 'import json, subprocess, tempfile, zipfile'; sudo true; sync"


class Snapshot(NamedTuple):
    """The frozen disk and memory of a guest that had settled."""

    folder: Path

    @property
    def disk(self) -> Path:
        """Return the disk, an overlay of the image's."""
        return self.folder / "disk.qcow2"

    @property
    def memory(self) -> Path:
        """Return memory and device states, as QEMU's migration writes them."""
        return self.folder / "memory"


def take(image: Image) -> Snapshot:
    """Return the snapshot of an image, taking it if the cache does not hold it."""
    version = subprocess.run(
        [*emulator.find(), "--version"], capture_output=True, text=True, check=True
    ).stdout
    told = make_kernel_line(image)
    inputs = repr((version, list_machine(image), told, *_list_warm_ups(image)))
    name = hashlib.sha256(inputs.encode()).hexdigest()[:12]
    target = image.folder / f"booted-{name}"
    return Snapshot(produce(target, "booting", lambda to: _boot_and_save(to, image)))


def keep(host: Host, folder: Path) -> Snapshot:
    """End a guest and keep it as it is now, so that others of its release resume from there.

    :param folder: Where to; the files in it are not complete before this returns.
    """
    require_space(folder, SNAPSHOT_GIB)
    host.ssh("sync")
    saved = Snapshot(folder)
    save_state(host.folder, saved.memory)
    shutil.move(host.folder / "disk.qcow2", saved.disk)
    return saved


def _boot_and_save(folder: Path, image: Image) -> None:
    require_space(folder, SNAPSHOT_GIB)
    say("booting the image (half a minute, once)")
    add_overlay(folder, image.disk, "raw", folder / "build.log")
    host = Host("snapshot", launch(image, folder), folder)
    write_files(host, image)
    wait_until_settled(host)
    for script in _list_warm_ups(image):
        host.ssh(script)
    say("booted; saving its memory")
    save_state(folder, folder / "memory")


def _list_warm_ups(image: Image) -> list[str]:
    """Return what is done on a host that has booted; one of Slurm is a cluster from then on."""
    scripts = [START_SLURM.read_text()] if "+slurm" in image.folder.name else []
    return [*scripts, _WARM_UP]
