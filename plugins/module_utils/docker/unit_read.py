# SPDX-License-Identifier: BSD-2-Clause
"""Read what the files of a tree give dockerd: its unit, whose flags count, and daemon.json."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence

from ..core.values import NamedTuple
from ..host.files import read_bytes, read_text, under
from ..systemd.unit_file import Setting, parse_environment, parse_environment_file
from ..systemd.unit_read import _find_files, read_unit
from .daemon_json import decode_daemon_json
from .dockerd_flags import Flag, find_config_path, find_flags
from .model import World

_DPKG = "/var/lib/dpkg/status"
_IS_DOCKER = re.compile(
    r"Package: (?:docker\.io|docker-ce|docker-engine|moby-engine)\nStatus: \w+ ok i"
)
_PACKAGED = re.compile(r"^Version: (?:[0-9]+:)?(\S+)", re.MULTILINE)

PROGRAMS = ("/usr/bin/dockerd", "/usr/sbin/dockerd", "/usr/local/bin/dockerd")


def find_dockerd() -> str | None:
    """Return the daemon's program, or ``None`` where Docker is not installed."""
    return next(
        (path for path in PROGRAMS if os.path.isfile(path) and os.access(path, os.X_OK)), None
    )


def read_dockerd_flags(root: str = "/", unit: str = "docker.service") -> list[Flag]:
    """Return the flags that the unit's files give dockerd at its next start, with their places.

    :raises ValueError: If a line cannot be split into words.
    """
    return find_unit_flags(read_unit(unit, root), root)


def read_world(root: str, nr_open: int) -> World:
    """Return what the next dockerd of a tree will find, but for what containers inherit.

    :param nr_open: The ``fs.nr_open`` of then.
    :raises ValueError: If daemon.json is not UTF-8, or too long, or a line of the unit cannot be
        split.
    """
    flags = tuple(read_dockerd_flags(root))
    path = find_config_path(flags)
    text = read_daemon_json(path, root)
    return World(text, path, flags, {}, nr_open, version=read_packaged_version(root))


def read_packaged_version(root: str) -> str:
    """Return the version of dockerd's package as dpkg knows it; empty where it knows none."""
    try:
        status = read_text(_DPKG, root) or ""
    except (OSError, ValueError):
        return ""
    found = (_PACKAGED.search(entry) for entry in status.split("\n\n") if _IS_DOCKER.match(entry))
    return next((one[1] for one in found if one), "")


def read_daemon_json(path: str, root: str = "/") -> str | None:
    """Return the text of daemon.json; ``None`` where it is absent.

    :raises ValueError: If it is a folder or a pipe, not UTF-8, or too long.
    """
    content = read_bytes(path, root)
    mode = os.stat(under(path, root)).st_mode if content == b"" else 0
    if stat.S_ISDIR(mode) or stat.S_ISFIFO(mode):
        kind = "directory" if stat.S_ISDIR(mode) else "named pipe"
        raise ValueError(
            f"{path}: is a {kind}, with which dockerd does not start: a file is accepted"
        )
    return None if content is None else decode_daemon_json(content, path)


def find_unit_flags(stated: Sequence[Setting], root: str = "/") -> list[Flag]:
    """Return the flags that the settings of a unit give, and the files that they name.

    :raises ValueError: If a line cannot be split into words.
    """
    settings = [setting for setting in stated if setting.section == "Service"]
    return find_flags(settings, read_environment(settings, root))


def read_environment(settings: Sequence[Setting], root: str = "/") -> dict[str, Setting]:
    """Return the variables that a unit gives its program, by name, files read last."""
    environment = {}
    for setting in settings:
        if setting.key == "Environment":
            environment.update({entry.key: entry for entry in parse_environment(setting)})
    for setting in settings:
        if setting.key == "EnvironmentFile":
            for path in _find_files(setting.value.lstrip("-"), root):
                assigned = parse_environment_file(read_text(path, root) or "", path)
                environment.update({entry.key: entry for entry in assigned})
    return environment


UNIT = "docker.service"


class Service(NamedTuple):
    """How a host has its dockerd.

    ``unit`` is the systemd unit that runs it, or that would; empty where something else started
    it. ``loads`` tells that the unit has a file, ``trouble`` why the program cannot be run, empty
    where it can, and ``pid`` is the daemon's, 0 where none runs.
    """

    unit: str = UNIT
    program: bool = True
    trouble: str = ""
    loads: bool = True
    masked: bool = False
    pid: int = 0


def find_wait(service: Service) -> str:
    """Return what must happen before daemon.json takes effect; nothing where dockerd runs."""
    if service.pid:
        return ""
    if not service.program:
        return "Docker is installed"
    if service.trouble:
        return f"dockerd can be run ({service.trouble})"
    if service.masked:
        return f"{service.unit} is unmasked and started"
    if not service.loads:
        return f"dockerd is started; {service.unit} has no file"
    return f"{service.unit} is started"


def find_hindrance(service: Service) -> str:
    """Return why a running dockerd would not come back from a restart; nothing where it would."""
    if not service.unit:
        return f"dockerd (pid {service.pid}) was not started by systemd, which cannot restart it"
    if service.masked:
        return f"{service.unit} is masked, so that it cannot be restarted"
    if not service.loads:
        return f"{service.unit} has no file any more, so that it cannot be restarted"
    if not service.program:
        return "the program of dockerd is gone, which would not start again"
    if service.trouble:
        return f"dockerd cannot be run ({service.trouble}), and would not start again"
    return ""
