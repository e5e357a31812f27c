# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts on which a process of a login or of a job has too little: it is older, or sessions are."""

from __future__ import annotations

import time
from typing import Any

from .cases import CRON, SSHD
from .inside import Daemon, Setting
from .worlds import World

_SCOPE = "/user.slice/user-1000.slice/session-2.scope"
_LATE = "/etc/security/limits.d/99-late.conf"
_SESSION = "/run/systemd/sessions/2"
_FEW = {"nofile": (700, 700)}
_PYTHON = Daemon("python", 60, _SCOPE, limits=_FEW, uid=1000)
_TMUX = Daemon("tmux: server", 59, _SCOPE, limits=_FEW, uid=1000)
_WANTED = {"nofile": {"soft": 900, "hard": 1000}}


def _open(at: int, service: str = "sshd") -> str:
    """Return what logind keeps of the session of alice that was opened at a second."""
    return f"USER=alice\nSERVICE={service}\nLEADER=60\nREALTIME={at * 10**6}\n"


_OLD, _NEW = _open(1), _open(4 * 10**9)
_SOON = _open(int(time.time()) + 3600)
"""After the files were written, and before what is not old was started."""
_RAISED = {_LATE: "alice - nofile 2000\n"}


def _ask(
    *daemons: Daemon,
    files: dict[str, str],
    limits: dict[str, Any] = _WANTED,
    user: str = "alice",
    **given: Any,
) -> World:
    """Return a host on which a user's processes are asked about, and the chain of the last one."""
    return World(
        {"processes": [{"user": user, "limits": limits}]},
        Setting((SSHD, CRON, *daemons)),
        files,
        ((f"process:{daemons[-1].pid}", "nofile"),),
        given,
    )


WORLDS_OF_LOGINS = {
    "a login is older than the line that counts": _ask(_PYTHON, files={**_RAISED, _SESSION: _OLD}),
    "a login is older than a file that says nothing of it": _ask(
        _PYTHON._replace(limits={"memlock": (4096, 4096)}),
        files={**_RAISED, _SESSION: _OLD},
        limits={"memlock": "1MiB"},
    ),
    "a login is older than its daemon": _ask(_PYTHON, files={**_RAISED, _SESSION: _SOON}),
    "a login is newer than all files": _ask(_PYTHON, files={**_RAISED, _SESSION: _NEW}),
    "a login gets no more than its process has": _ask(_PYTHON, files={_SESSION: _NEW}),
    "a terminal server is older than the files": _ask(
        _TMUX, _PYTHON._replace(parent=59), files={**_RAISED, _SESSION: _OLD}
    ),
    "a shell lowers what a login gets": _ask(
        _PYTHON,
        files={**_RAISED, _SESSION: _NEW, "/home/alice/.profile": "ulimit -S -n 300\n"},
    ),
    "a shell lowers what a login may have": _ask(
        _PYTHON,
        files={
            **_RAISED,
            _SESSION: _NEW,
            "/home/alice/.profile": "ulimit -S -n 300\nulimit -H -n 950\n",
        },
    ),
    "a login came by a service that is gone": _ask(
        _PYTHON, files={**_RAISED, _SESSION: _open(1, "gdm")}
    ),
    "no session may be opened": _ask(
        _PYTHON, files={**_RAISED, _SESSION: _OLD}, probe="predict", canary="never"
    ),
    "root changed to another user": _ask(
        Daemon("su", 61, _SCOPE),
        Daemon("bash", 62, _SCOPE, limits=_FEW, parent=61),
        user="root",
        files={_SESSION: _OLD, _LATE: "root - nofile 2000\n"},
    ),
    "a job of cron is older than the files": _ask(
        Daemon("train", 63, CRON.cgroup, limits=_FEW, uid=1000, old=True, parent=CRON.pid),
        files=_RAISED,
    ),
    "a service starts a process by su": _ask(
        Daemon("jobs", 64, "/system.slice/jobs.service"),
        Daemon("su", 65, "/system.slice/jobs.service", parent=64),
        Daemon("train", 66, "/system.slice/jobs.service", (), _FEW, 1000, True, 65),
        files=_RAISED,
    ),
}
