# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts on which the services of a user's own manager have too little, and what goes on with it."""

from __future__ import annotations

from typing import Any

from .cases import LOGINS, MANAGER
from .inside import Daemon, Setting
from .worlds import World

_MANAGED = "/user.slice/user-1000.slice/user@1000.service"
_HOME_UNIT = "/home/alice/.config/systemd/user/lab.service"
_SHARED_UNIT = "/etc/systemd/user/lab.service"
_LATE = "/etc/security/limits.d/99-late.conf"
_FEW = {"nofile": (700, 700)}
_LAB = Daemon("lab", 63, f"{_MANAGED}/app.slice/lab.service", limits=_FEW, uid=1000)
_APP = _LAB._replace(cgroup=f"{_MANAGED}/app.slice/app-lab.scope")
_NEW = Daemon("sleep", 64, f"{_MANAGED}/app.slice/new.service", limits=_FEW, uid=1000)
_LOW = MANAGER._replace(limits=_FEW)


def _leave(folder: str, first: int, names: str, uid: int) -> list[Daemon]:
    """Return services that run with too little."""
    return [
        Daemon(name, first + number, f"{folder}/{name}.service", limits=_FEW, uid=uid)
        for number, name in enumerate(names.split())
    ]


_LEFT = (
    *_leave("/system.slice", 70, "jobs quiet states unknown", 0),
    *_leave(f"{_MANAGED}/app.slice", 80, "lab states unknown", 1000),
)
"""The file of one is silent, that of another states a limit, and one has none."""
_STATED = "[Service]\nExecStart=/usr/bin/lab\nLimitNOFILE={}\n"
_SILENT = "[Service]\nExecStart=/usr/bin/lab\n"
_RAISED = {_LATE: "alice - nofile 2000\n"}


def _ask(*daemons: Daemon, files: dict[str, str], nofile: int = 800, user: str = "") -> World:
    """Return a host on which lab.service of alice's manager is asked about, or a user's all."""
    chosen = {"user": user} if user else {"unit": "lab.service"}
    policy = {"processes": [{**chosen, "limits": {"nofile": nofile}}]}
    places = (("process:63", "nofile"),)
    return World(policy, Setting((*LOGINS.daemons, *daemons)), files, places)


def _start(*daemons: Daemon, files: dict[str, str], **wanted: Any) -> World:
    """Return a host on which alice's manager is asked for a new service."""
    policy = {"services": {"user_default": wanted}}
    told = {"/run/stand-ins/pid-of-new-service": "64\n", **files}
    places = (("new-service:alice", "nofile"), ("new-service:alice", "tasks"))
    return World(policy, Setting((*LOGINS.daemons, *daemons, _NEW)), told, places)


WORLDS_OF_USERS = {
    "a user's manager is older than the files": _ask(
        _LOW, _LAB, files={**_RAISED, _HOME_UNIT: _SILENT}
    ),
    "a user's manager may give no more": _ask(
        MANAGER, _LAB, files={_HOME_UNIT: _STATED.format(700)}, nofile=3000
    ),
    "a user's service states too little": _ask(
        MANAGER, _LAB, files={_HOME_UNIT: _STATED.format(700), **_RAISED}, nofile=1500
    ),
    "a user's service is older than its file": _ask(
        MANAGER, _LAB._replace(old=True), files={_SHARED_UNIT: _STATED.format(900), **_RAISED}
    ),
    "a user has changed a service of theirs": _ask(
        MANAGER, _LAB, files={_SHARED_UNIT: _STATED.format(900), **_RAISED}, user="alice"
    ),
    "a user's settings have a say": _ask(
        MANAGER,
        _LAB,
        files={_HOME_UNIT: _SILENT, "/home/alice/.config/systemd/user.conf": "[Manager]\n"},
        user="alice",
    ),
    "a user's manager does not run": _ask(_LAB, files={_HOME_UNIT: _SILENT}, user="alice"),
    "a user's program is not a service": _ask(MANAGER, _APP, files={}, user="alice"),
    "no file states the manager of a user": _ask(
        MANAGER, _LAB, files={"/etc/systemd/system/user@.service": ""}, user="alice"
    ),
    "services go on with too little": World(
        {
            "services": {
                "default": {"nofile": 900},
                "user_default": {"nofile": 900},
                "units": {"jobs.service": {"nofile": 1500}},
            }
        },
        Setting((*LOGINS.daemons, _LOW, *_LEFT)),
        {
            "/etc/systemd/system/quiet.service": _SILENT,
            "/etc/systemd/system/states.service": _STATED.format(700),
            _HOME_UNIT: _SILENT,
            "/home/alice/.config/systemd/user/states.service": _STATED.format(700),
        },
        options={},
    ),
    "a new service of a user gets too little": _start(
        MANAGER, files=_RAISED, nofile=1500, memlock="64KiB", tasks=500
    ),
    "a user's manager gives new services too little": _start(_LOW, files=_RAISED, nofile=1500),
    "what a user's manager reads is not known": _start(
        MANAGER, files={"/home/alice/.config/systemd/user.conf": "[Manager]\n"}, nofile=1500
    ),
}
