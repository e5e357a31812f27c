# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs on a guest: build with BuildKit, over the daemon's own socket, and print a step's limits.

The step is a program that sleeps. It is killed once it was looked at, so that no image is made.
"""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import tarfile
import threading
import time

from mlhost_limits.probe.canary import build_program
from mlhost_limits.probe.docker import exchange, find_daemon
from mlhost_limits.probe.process import find_processes, read_limits, read_parent

DOCKERFILE = b'FROM scratch\nADD a-step /\nRUN ["/a-step"]\n'


def pack() -> bytes:
    """Return the context of the build."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        files = {"Dockerfile": DOCKERFILE, "a-step": build_program(os.uname().machine)}
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755
            archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def build() -> None:
    path = "/build?version=2&networkmode=none"
    answer = exchange("POST", path, pack(), kind="application/x-tar", timeout=300)
    sys.stderr.write(answer[-500:].decode("utf-8", "replace"))


def main() -> None:
    daemon = find_daemon()
    building = threading.Thread(target=build)
    building.start()
    found = None
    while building.is_alive() and not found:
        found = next((one for one in find_processes() if one.comm == "a-step"), None)
        time.sleep(0.05)
    assert found
    assert daemon
    json.dump(read_limits(found.pid), sys.stdout)
    assert read_parent(read_parent(found.pid)) == daemon.process.pid  # By way of runc.
    os.kill(found.pid, signal.SIGKILL)
    building.join()


main()
