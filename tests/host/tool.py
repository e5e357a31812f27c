"""Run the programs this needs, and say which Debian package holds a missing one."""

# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from .cache import HostError

# Debian keeps mke2fs where an ordinary user's PATH does not look.
_PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"

_END_SECONDS = 20  # mmdebstrap removes half a system when it is told to end

_PACKAGE_OF = {
    "mke2fs": "e2fsprogs",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
}


def run_tool(arguments: Sequence[str | Path], log: Path, seconds: float) -> None:
    """Run a program to its end, its output going to a log file.

    It gets a session of its own and is ended by us: so a Ctrl-C reaches it exactly
    once, and it is gone before its files are removed.

    :raises HostError: If it is missing, fails or takes too long.
    """
    name = str(arguments[0])
    require_program(name)
    with log.open("ab") as output:
        child = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, "PATH": _PATH},
            start_new_session=True,
        )
        try:
            status = child.wait(seconds)
        except subprocess.TimeoutExpired:
            raise HostError(f"{name} took more than {seconds:.0f} s") from None
        finally:
            _end_session(child)
    if status:
        raise HostError(f"{name} failed with status {status}:{tail(log)}")


def _end_session(child: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        if child.poll() is not None:
            return
        os.killpg(child.pid, number)
        try:
            child.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            continue


def require_program(name: str) -> None:
    """Refuse to go on without a program.

    :raises HostError: If it is not in PATH; the text names Debian's package.
    """
    if shutil.which(name, path=_PATH) is None:
        raise HostError(f"{name} is missing: apt-get install {_PACKAGE_OF.get(name, name)}")


def tail(log: Path, lines: int = 5) -> str:
    """Return the last lines of a log, each indented on a line of its own."""
    found = log.read_text(errors="replace").splitlines() if log.exists() else []
    return "".join(f"\n    {line}" for line in found[-lines:])
