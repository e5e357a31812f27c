# SPDX-License-Identifier: GPL-3.0-or-later
"""A world of its own for pam_limits: its files, users, logins and PID 1, in namespaces.

Runs as root on any Linux that has namespaces; nothing outside changes.
"""

from __future__ import annotations

import ctypes
import os
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from mlhost_limits.core.values import Rlimit
from mlhost_limits.host.own_limits import read_own_limits, set_own_limits

from tests.places.sessions.limits_files import GROUP, LOGGED_IN, PASSWD

NR_OPEN = 700  # Lower than any hard limit here, so that what becomes of "unlimited" shows.
OF_PID_1 = {"nofile": Rlimit(1500, 2000), "locks": Rlimit(100, 2**40)}
SECURITY = "/etc/security"
SERVICES = "/run/pam"
"""Where the service ``oracle`` is read from."""

_NEW_MOUNTS, _NEW_PIDS = 0x00020000, 0x20000000  # CLONE_NEWNS, CLONE_NEWPID
_USER_PROCESS = 7
_UTMP = struct.Struct("=h2xi32s4s32s256shhiii16s20s")  # struct utmp of utmp(5)
_SERVICE = "account required pam_permit.so\nsession required pam_limits.so\n"


def run_inside(folder: Path, task: Callable[[], None]) -> NoReturn:
    """Become PID 1 of a new world whose files lie in an empty folder, run a task, and exit.

    :raises PermissionError: If this machine allows no namespaces.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_MOUNTS | _NEW_PIDS):
        raise PermissionError(ctypes.get_errno(), "no namespaces here")
    child = os.fork()
    if child:
        status = os.waitpid(child, 0)[1]
        os._exit(status >> 8 or status & 127)
    _write(folder)
    _mount(folder)
    set_own_limits({**read_own_limits(), **OF_PID_1})
    task()
    os._exit(0)


def _write(folder: Path) -> None:
    for path in ("security/limits.d", "run/pam", "run/jail", "run/systemd/sessions"):
        (folder / path).mkdir(parents=True)
    for path, text in {
        "passwd": PASSWD,
        "group": GROUP,
        "nr_open": f"{NR_OPEN}\n",
        "run/pam/oracle": _SERVICE,
        "run/pam/other": "",
    }.items():
        (folder / path).write_bytes(text.encode("latin-1"))
    entries = [_format_login(number, name) for number, name in enumerate(LOGGED_IN)]
    (folder / "run/utmp").write_bytes(b"".join(entries))
    for number, name in enumerate(LOGGED_IN):
        session = f"UID=1\nUSER={name}\nACTIVE=1\nSTATE=active\nCLASS=user\n"
        (folder / f"run/systemd/sessions/{number}").write_text(session)


def _format_login(number: int, name: str) -> bytes:
    words = (f"pts/{number}".encode(), str(number).encode(), name.encode(), b"")
    return _UTMP.pack(_USER_PROCESS, 1, *words, 0, 0, number, 0, 0, b"", b"")


def _mount(folder: Path) -> None:
    _run("mount", "--make-rprivate", "/")
    _run("mount", "-t", "proc", "proc", "/proc")
    for name, target in (
        ("passwd", "/etc/passwd"),
        ("group", "/etc/group"),
        ("nr_open", "/proc/sys/fs/nr_open"),
        ("security", SECURITY),
        ("run", "/run"),  # Without a journal in it, nothing is logged, which takes half the time.
    ):
        _run("mount", "--bind", str(folder / name), target)


def _run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, check=False)
    if done.returncode:
        raise PermissionError(done.stderr.decode())
