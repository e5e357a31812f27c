# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts on which a user has a dockerd of their own."""

from __future__ import annotations

import json
from typing import Any

from .cases import LOGINS
from .inside import Daemon, Setting
from .worlds import World

_MANAGED = "/user.slice/user-1000.slice/user@1000.service"
_SOCKET = "/run/user/1000/docker.sock"
_CONFIG = "/home/alice/.config/docker/daemon.json"
_FEW = {"nofile": (800, 800)}
_DOCKERD = Daemon(
    "dockerd",
    91,
    f"{_MANAGED}/app.slice/docker.service",
    ("/usr/bin/dockerd",),
    uid=1000,
    socket=_SOCKET,
)
_LAB = Daemon(
    "trainer", 92, f"{_MANAGED}/user.slice/docker-{'ef56' * 16}.scope", limits=_FEW, uid=1000
)
_RUNNING = {
    "/run/stand-ins/containers-of-alice.json": json.dumps(
        {
            "list": [{"Id": "ef56" * 16, "Image": "trainer:1"}],
            "details": [
                {
                    "Id": "ef56" * 16,
                    "Name": "/lab",
                    "State": {"Pid": 92, "StartedAt": "2026-01-02T03:04:05Z"},
                    "HostConfig": {"ShmSize": 64 * 2**20, "IpcMode": "private"},
                }
            ],
        }
    )
}
_POLICY = {"containers": {"docker": {"limits": {"nofile": 900}, "shm_size": "1GiB"}}}


def _ask(*daemons: Daemon, stated: str = "{}", **given: Any) -> World:
    """Return a host on which alice's containers are asked about; her daemon.json states this."""
    files = {**_RUNNING, _CONFIG: stated}
    return World(_POLICY, Setting((*LOGINS.daemons, *daemons)), files, given=given)


def _default(most: int) -> str:
    pair = {"Name": "nofile", "Hard": most, "Soft": most}
    return json.dumps({"default-ulimits": {"nofile": pair}})


WORLDS_OF_ROOTLESS = {
    "a user's containers get too little": _ask(_DOCKERD, _LAB, stated=_default(512)),
    "a user's dockerd has too little itself": _ask(
        _DOCKERD._replace(limits=_FEW), _LAB, stated=_default(700)
    ),
    "a user's dockerd may not give what its file states": _ask(
        _DOCKERD._replace(limits=_FEW), stated=_default(1000)
    ),
    "a user's daemon.json is broken": _ask(_DOCKERD, stated='{"default-ulimits": '),
    "nobody may ask a user's dockerd": _ask(_DOCKERD, _LAB, canary="never"),
    "nobody knows whose a dockerd is": _ask(Daemon("dockerd", 91, _DOCKERD.cgroup, uid=3000)),
    "who answers for a user's dockerd is somebody else": _ask(
        Daemon("dockerd", 91, _DOCKERD.cgroup, uid=1000)
    ),
}
