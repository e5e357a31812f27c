# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a real dockerd of each release runs: natively in the test host's own files, or on it.

Natively it takes a third of a second, but no limit can rise above what this machine's root
has; on the emulated host everything can, in ten seconds.
"""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mlhost_limits.core.values import Rlimit

from tests.host import guest, image
from tests.host.library import carry
from tests.places.docker.docker_cases import Case
from tests.places.docker.docker_tree import RIG, RUN, find_version


class World:
    """A running rig, the daemon's version, and what a container has by default there."""

    def __init__(self, rig: subprocess.Popen[str], version: str, privileged: bool) -> None:
        self.rig = rig
        self.version = version
        self.privileged = privileged
        stock = self.try_case(Case({}))
        if stock["kind"] != "started":
            raise PermissionError(f"no container starts here: {stock['message']}")
        self.limits = {name: Rlimit(*pair) for name, pair in stock["limits"].items()}
        self.nr_open = int(Path("/proc/sys/fs/nr_open").read_text())
        if not privileged:  # No limit rises, which looks as if this were the ceiling.
            self.nr_open = self.limits["nofile"].hard

    def try_case(self, case: Case) -> dict[str, Any]:
        """Return the rig's word on a case."""
        files = {path: base64.b64encode(text).decode() for path, text in case.files.items()}
        assert self.rig.stdin
        assert self.rig.stdout
        self.rig.stdin.write(json.dumps({"files": files, "flags": case.flags}) + "\n")
        self.rig.stdin.flush()
        answer = self.rig.stdout.readline()
        if not answer:
            raise PermissionError(f"the rig ended with {self.rig.wait()}")
        found: dict[str, Any] = json.loads(answer)
        return found


@contextmanager
def enter_natively(release: str) -> Iterator[World]:
    """Run the rig on this machine, in the files of the test host of a release.

    :raises PermissionError: Where this machine does not let us.
    """
    disk = image.build(release).disk
    with tempfile.TemporaryDirectory() as folder, open(f"{folder}/log", "w+") as log:
        words = [sys.executable, "-m", "tests.places.docker.docker_tree", str(disk), folder]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
        rig = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=environment,
        )
        try:
            version = (rig.stdout.readline() if rig.stdout else "").strip()
            if not version:
                raise PermissionError(Path(log.name).read_text()[-500:])
            yield World(rig, version, privileged=_may_raise())
        finally:
            _end(rig)


def _may_raise() -> bool:
    match = re.search("CapEff:\t(.*)", Path("/proc/self/status").read_text())
    return bool(match and int(match[1], 16) >> 24 & 1)  # CAP_SYS_RESOURCE


@contextmanager
def enter_guest(release: str) -> Iterator[World]:
    """Run the rig on a fresh test host of a release, where root may raise every limit."""
    with guest.running(release) as host:
        carry(host, {RIG.name: RIG})
        version = host.ssh("systemctl stop docker.socket docker; dockerd --version").stdout
        rig = subprocess.Popen(
            [*host.ssh_command(), RUN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        try:
            world = World(rig, find_version(version), privileged=True)
            world.nr_open = int(host.ssh("cat /proc/sys/fs/nr_open").stdout)
            yield world
        finally:
            _end(rig)


def _end(rig: subprocess.Popen[str]) -> None:
    for pipe in filter(None, (rig.stdin, rig.stdout)):
        pipe.close()
    rig.wait()
