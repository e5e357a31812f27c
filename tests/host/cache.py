"""The cache folder: where it is, who may write there, and that it is never half full."""

# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import fcntl
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from . import process

_PLAIN_PATH = re.compile(r"[A-Za-z0-9/_.+@-]+")
_STARTED = time.monotonic()


class HostError(Exception):
    """A test host could not be built, booted or reached; the text is one sentence."""


def say(text: str) -> None:
    """Report progress on stderr, with the seconds since this program began."""
    print(f"{time.monotonic() - _STARTED:5.0f} s  {text}", file=sys.stderr, flush=True)


def cache_root() -> Path:
    """Return the folder that holds images and instances.

    :raises HostError: If its path holds a character that the option lists of QEMU, the
        configuration of ssh or a hook's command line would take for their own.
    """
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    root = Path(os.environ.get("MLHOST_CACHE") or Path(base) / "mlhost-limits")
    if not is_plain(root):
        raise HostError(f"{root} is not a plain path: set MLHOST_CACHE to another")
    return root.absolute()


def is_plain(path: Path) -> bool:
    """Tell whether QEMU, ssh and shells take a path as it is."""
    return _PLAIN_PATH.fullmatch(str(path.absolute())) is not None


def require_space(folder: Path, gib: float) -> None:
    """Refuse to begin what would not fit.

    :raises HostError: If fewer than ``gib`` GiB are free.
    """
    free = shutil.disk_usage(folder).free / 2**30
    if free < gib:
        raise HostError(f"{folder} has {free:.1f} GiB free, {gib} GiB are needed")


@contextmanager
def locked(path: Path, waiting_for: str) -> Iterator[None]:
    """Hold an exclusive lock on a file; the kernel drops it when the holder dies.

    :param waiting_for: What the other holder is doing, for the progress line.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for {waiting_for}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def produce(target: Path, what: str, fill: Callable[[Path], None]) -> Path:
    """Return a folder, filling it first if it is not there yet.

    It is filled under another name and renamed at the end, so whatever has the right
    name is complete. Only one process fills; others wait for it.

    :param fill: Writes the content into the empty folder it is given.
    """
    if target.exists():
        return target
    with locked(target.with_suffix(".lock"), f"another process: {what}"):
        if not target.exists():
            partial = target.with_suffix(".partial")
            # Left by a holder of this lock that was killed.
            discard(partial)
            partial.mkdir(parents=True)
            try:
                fill(partial)
                partial.rename(target)
            finally:
                discard(partial)
    return target


def discard(folder: Path) -> None:
    """End the processes that work for a folder, and remove it."""
    process.end_all(process.find_workers(folder))
    shutil.rmtree(folder, ignore_errors=True)
