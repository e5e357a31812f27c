# SPDX-License-Identifier: GPL-3.0-or-later
"""Let runs die that nobody watches but the black box of the host, and read what it kept of each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.conftest import load_library

load_library()

from mlhost_limits.watch.ring_read import FOLDER

GROUPS = Path("/sys/fs/cgroup/freezer")
"""In a hierarchy that bounds nothing each run has a group of its own, as a unit or a job has."""

NOT_ASKED = ("of-somebody-else",)
"""Kinds of death beside which another run dies of a limit, which a host is right to tell."""

_BEGINS, _LATEST = 3.0, 30.0


@contextmanager
def black_box(program: Path) -> Iterator[None]:
    """Have the black box of this host run, as the service of the role does."""
    with subprocess.Popen(
        [sys.executable, "-IS", str(program), "watch", "--host"], stderr=subprocess.DEVNULL
    ) as box:
        time.sleep(_BEGINS)
        try:
            yield
        finally:
            box.terminate()


@contextmanager
def own_group(name: str) -> Iterator[str]:
    """Give the shell that begins a run in a group of its own."""
    folder = GROUPS / f"mlhost-box-{name}"
    folder.mkdir(exist_ok=True)
    try:
        yield f"echo $$ > {folder}/cgroup.procs"
    finally:
        for _attempt in range(50):
            with suppress(OSError):
                folder.rmdir()
                break
            for pid in (folder / "cgroup.procs").read_text().split():
                with suppress(ProcessLookupError):
                    os.kill(int(pid), 9)
            time.sleep(0.1)


def find_reports(name: str, is_expected: bool) -> list[dict[str, Any]]:
    """Return what was kept of a run, the reports of its processes in their order."""
    for _attempt in range(int(_LATEST if is_expected else _BEGINS * 2)):
        found = [one for one in _read() if f"mlhost-box-{name}\n" in f"{one['cgroup']}\n"]
        if found:
            return found
        time.sleep(1)
    return []


def _read() -> Iterator[dict[str, Any]]:
    for path in sorted(Path(FOLDER).glob("*.json")):
        with suppress(OSError):
            yield json.loads(path.read_text())
