# SPDX-License-Identifier: GPL-3.0-or-later
"""Become a dockerd's world on this machine: the files of a test host in namespaces of their own.

A program of its own: ``python -m tests.places.docker.docker_tree DISK FOLDER``.
"""

from __future__ import annotations

import ctypes
import glob
import os
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tests.host.library import LIBRARY

RIG = Path(__file__).with_name("docker_rig.py")
RUN = "PYTHONPATH=/opt exec python3 /opt/docker_rig.py"
_NEW_WORLD = 0x00020000 | 0x08000000 | 0x04000000 | 0x20000000 | 0x40000000
"""CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUTS, CLONE_NEWPID, CLONE_NEWNET of unshare(2)."""
_CGROUPS = "/sys/fs/cgroup/*/docker"  # What a daemon makes and leaves, outside of any namespace.


def find_version(text: str) -> str:
    """Return the version in what ``dockerd --version`` says."""
    match = re.search("version ([^,]+)", text)
    assert match, text
    return match[1]


def become_rig(disk: str, folder: str) -> None:
    """Become the rig, as PID 1 of a world whose files are those of the test host."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_WORLD):
        raise PermissionError(ctypes.get_errno(), "no namespaces here")
    known = set(glob.glob(_CGROUPS))
    child = os.fork()
    if child:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        for left in set(glob.glob(_CGROUPS)) - known:
            with suppress(OSError):
                os.rmdir(left)
        os._exit(status & 255)
    root = build_tree(disk, folder)
    shutil.copytree(LIBRARY, f"{root}/opt/mlhost_limits")
    shutil.copy(RIG, f"{root}/opt")
    os.chroot(root)
    os.chdir("/")
    os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
    said = subprocess.run(["dockerd", "--version"], capture_output=True, text=True, check=True)
    sys.stdout.write(find_version(said.stdout) + "\n")
    sys.stdout.flush()
    os.execv("/bin/sh", ["sh", "-c", RUN])


def build_tree(disk: str, folder: str) -> str:
    """Mount the image of a test host, unwritten, and what a daemon needs around it."""
    mount("--make-rprivate", "/")
    mount("-t", "tmpfs", "tmpfs", folder)
    low, high, work, root = (f"{folder}/{name}" for name in ("low", "high", "work", "root"))
    for path in (low, high, work, root):
        os.mkdir(path)
    mount("-o", "loop,ro,noload", disk, low)
    mount("-t", "overlay", "-o", f"lowerdir={low},upperdir={high},workdir={work}", "none", root)
    mount("-t", "proc", "proc", f"{root}/proc")
    mount("--rbind", "/sys", f"{root}/sys")
    mount("--rbind", "/dev", f"{root}/dev")
    for path in ("run", "var/lib"):
        mount("-t", "tmpfs", "tmpfs", f"{root}/{path}")
    return root


def mount(*words: str) -> None:
    done = subprocess.run(["mount", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise PermissionError(done.stderr.strip())


if __name__ == "__main__":
    become_rig(*sys.argv[1:])
