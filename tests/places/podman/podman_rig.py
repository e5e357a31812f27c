# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask a real podman what it makes of each case's files; in a test host's files, on this machine.

A program of its own: ``python -m tests.places.podman.podman_rig DISK FOLDER``. Each line of the input holds
the files of a case; each line of the output the limits of a container that was created, not started,
or what podman said.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys

from tests.places.docker.docker_tree import build_tree

_MOUNTS = 0x00020000  # CLONE_NEWNS of unshare(2)
FOLDER = "/etc/containers/containers.conf.d"
CREATE = (
    *("podman", "--cgroup-manager", "cgroupfs", "--storage-driver", "vfs", "create"),
    *("--network", "none", "--rootfs", "/srv", "/none"),
)
SHOW = "{{json .HostConfig.Ulimits}} {{.HostConfig.ShmSize}} {{.HostConfig.PidsLimit}}"


def podman(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "PODMAN_IGNORE_CGROUPSV1_WARNING": "1"}
    return subprocess.run(words, capture_output=True, text=True, env=environment, check=False)


def try_case(files: dict[str, str]) -> dict[str, object]:
    for path, text in files.items():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:  # What would decode it lies outside of this root.
            file.write(text.encode())
    try:
        made = podman(*CREATE)
        if made.returncode:
            return {"error": made.stderr[-600:]}
        name = made.stdout.split()[-1]
        shown = podman("podman", "--storage-driver", "vfs", "inspect", "--format", SHOW, name)
        limits, size, tasks = shown.stdout.rsplit(" ", 2)
        return {"limits": json.loads(limits) or [], "shm": int(size), "tasks": int(tasks)}
    finally:
        podman("podman", "--storage-driver", "vfs", "rm", "--all", "--force")
        for path in files:
            os.unlink(path)


def main(disk: str, folder: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_MOUNTS):
        raise PermissionError(ctypes.get_errno(), "no namespaces here")
    os.chroot(build_tree(disk, folder))
    os.chdir("/")
    os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
    for line in sys.stdin:
        sys.stdout.write(json.dumps(try_case(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
