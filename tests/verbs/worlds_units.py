# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts on which services have too little: those of the system, and those of a user's manager."""

from __future__ import annotations

from typing import Any

from .cases import LOGINS
from .inside import LIMITS, Daemon, Setting
from .worlds import World

_HERE = "/run/stand-ins"
_FEW = {"nofile": (700, 700)}
_UNIT = "/etc/systemd/system/jobs.service"
_RUNTIME = "/run/systemd/system/jobs.service.d/97-runtime.conf"
_JOBS = Daemon("jobs", 40, "/system.slice/jobs.service", limits=_FEW)
_DBUS = Daemon("dbus-daemon", 41, "/system.slice/dbus.service", limits=_FEW, old=True)
_WANTED = {"nofile": 3000, "memlock": "64KiB"}
_READ_AT_BOOT = {f"{_HERE}/show/manager": "UnitsLoadTimestampMonotonic=1\n"}


def _state(nofile: int, more: str = "") -> str:
    """Return the text of a unit's file."""
    return f"[Service]\nExecStart=/usr/bin/jobs\n{more}LimitNOFILE={nofile}\n"


def _show(nofile: int, needs_reload: str = "no") -> dict[str, str]:
    """Return the file of what systemctl says of jobs.service."""
    limits = dict.fromkeys((*LIMITS, "locks", "rttime"), "infinity")
    limits = {**limits, "nofile": str(nofile), "memlock": "65536"}
    told = {"LoadState": "loaded", "MainPID": "40", "NeedDaemonReload": needs_reload}
    for name, limit in limits.items():
        told.update({f"Limit{name.upper()}": limit, f"Limit{name.upper()}Soft": limit})
    lines = (f"{key}={value}\n" for key, value in told.items())
    return {f"{_HERE}/show/jobs.service": "".join(lines)}


def _ask(one: Daemon, files: dict[str, str], limits: dict[str, Any] = _WANTED) -> World:
    """Return a host on which a service is asked about that runs one process."""
    unit = one.cgroup.rpartition("/")[2]
    policy = {"services": {"units": {unit: limits}}}
    return World(policy, Setting((*LOGINS.daemons, one)), files)


WORLDS_OF_UNITS = {
    "a service is older than its files": _ask(
        _JOBS._replace(old=True), {_UNIT: _state(3000), **_show(3000)}
    ),
    "a service has enough until systemd starts it again": _ask(
        _JOBS._replace(old=True, limits={"nofile": (3000, 3000)}),
        {_UNIT: _state(3000), **_show(700, "yes")},
    ),
    "systemd has not read the files of a service": _ask(
        _JOBS, {_UNIT: _state(3000), **_show(700, "yes")}
    ),
    "systemd has read the files of a service at boot": _ask(
        _JOBS, {_UNIT: _state(3000), **_show(700), **_READ_AT_BOOT}
    ),
    "systemd has read what its files do not say": _ask(_JOBS, {_UNIT: _state(3000), **_show(900)}),
    "somebody has changed a service": _ask(_JOBS, {_UNIT: _state(3000)}),
    "a service that never restarts is older than its files": _ask(
        _DBUS, {"/etc/systemd/system/dbus.service": _state(3000)}
    ),
    "a service has no file": _ask(_DBUS, {}),
    "the file of a service cannot be loaded": _ask(_JOBS, {_UNIT: "[Service\nLimitNOFILE=3000\n"}),
    "a service runs through PAM": _ask(
        _JOBS, {_UNIT: _state(3000, "User=alice\nPAMName=su\n"), **_show(3000)}
    ),
    "a service does not run": World(
        {"services": {"units": {"jobs.service": {"nofile": 3000, "tasks": 500}}}},
        LOGINS,
        {
            _UNIT: _state(2048, "TasksMax=300\nSlice=lab.slice\n"),
            "/etc/systemd/system/lab.slice": "[Slice]\nTasksMax=100\n",
        },
    ),
    "a service loses at boot what it has": _ask(
        _JOBS._replace(limits={"nofile": (3000, 3000)}),
        {
            _RUNTIME: "[Service]\nLimitNOFILE=3000\nTasksMax=600\n",
            _UNIT: _state(2048, "TasksMax=300\n"),
        },
        {**_WANTED, "tasks": 350},
    ),
    "systemd's own files are too large": World(
        {"services": {"default": {"nofile": 3000, "tasks": 500}}},
        LOGINS,
        {"/etc/systemd/system.conf": "#" * 2**18 + "\n[Manager]\n"},
    ),
    "the files of a service are too large": _ask(
        _JOBS, {_UNIT: _state(3000, "#" * 2**18 + "\n")}, {"nofile": 3000, "tasks": 500}
    ),
}
