# SPDX-License-Identifier: GPL-3.0-or-later
"""The two machines that are timed: a booted guest, and a private tree on this machine."""

from __future__ import annotations

import json
import shlex
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.host import guest
from tests.host.connection import Host, write_files
from tests.host.image import build

from .playbook import HERE, Controller
from .values import GUEST, Values, format_variables, read_native_values

_RELEASE = "bookworm"
_FILES = (
    "/etc/security/limits.d/90-peers.conf",
    "/etc/security/limits.d/90-mlhost.conf",
    "/etc/sysctl.d/90-peers.conf",
    "/etc/sysctl.d/90-mlhost.conf",
    "/etc/docker/daemon.json",
)
_DROP_IN = "/etc/systemd/system/docker.service.d"


class Target(NamedTuple):
    """A machine to set limits on: by playbook with the clock running, by ssh between the runs."""

    host: Host
    controller: Controller
    reset_command: str

    def reset(self) -> None:
        """Take away what either side has set, so that the next run is a first one."""
        self.host.ssh(self.reset_command)

    def forget(self) -> None:
        """Take away what runs keep, as a boot does: the library, and what a container got."""
        self.host.ssh("rm -rf /run/mlhost-limits")


@contextmanager
def guest_target(folder: Path, collections: str) -> Iterator[Target]:
    """Hold a fresh booted guest whose dockerd has the policy's configuration in effect."""
    with guest.running(_RELEASE, new=True) as host:
        keys = " ".join(GUEST.sysctls)
        stock = shlex.quote(host.ssh(f"sysctl {keys} | sed 's/ = /=/'").stdout.strip())
        restore = f"sysctl -q -w $(echo {stock})"
        target = _make_target(host, folder, collections, GUEST, restore)
        target.controller.run("ours.yml", "-e", "bench_docker_restart=true")
        yield target


@contextmanager
def native_target(
    folder: Path, collections: str, addresses: Sequence[str] = ("127.0.0.1",)
) -> Iterator[Target]:
    """Hold a login into a tree of the guest's system, run by this machine's own kernel.

    :param addresses: Where its sshd listens; 127.0.0.1 must reach it.
    """
    image = build(_RELEASE)
    tree = folder / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    # Reads the file system without mounting it: a container may have no loop devices.
    unpack = ["debugfs", "-R", f"rdump / {tree}", str(image.disk)]
    subprocess.run(unpack, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    host = Host("native", _find_free_port(), folder)
    write_files(host, image)
    enter = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh"]
    with (folder / "native.log").open("w") as log, subprocess.Popen(
        [*enter, str(HERE / "native.sh"), str(tree), str(host.port), *addresses],
        stdout=log,
        stderr=log,
    ) as process:
        try:
            _wait_until_up(host, process)
            yield _make_target(host, folder, collections, read_native_values(), "true")
        finally:
            process.kill()
    shutil.rmtree(tree)


def _make_target(
    host: Host, folder: Path, collections: str, values: Values, restore: str
) -> Target:
    inventory = folder / "inventory.json"
    variables = {**host.ansible_vars, **format_variables(values)}
    inventory.parent.mkdir(parents=True, exist_ok=True)
    inventory.write_text(json.dumps({"all": {"hosts": {host.name: variables}}}, indent=2))
    reset = f"rm -f {' '.join(_FILES)}; rm -rf {_DROP_IN}; {restore}"
    return Target(host, Controller(inventory, collections), reset)


def _wait_until_up(host: Host, process: subprocess.Popen[bytes], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while host.ssh("true", check=False).returncode:
        if process.poll() is not None or time.monotonic() > deadline:
            log = (host.folder / "native.log").read_text()
            raise RuntimeError(f"the private tree cannot be logged in to: {log or 'no message'}")
        time.sleep(0.1)


def _find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
