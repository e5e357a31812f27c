# SPDX-License-Identifier: BSD-2-Clause
"""Read what decides the limits of containers, each thing once and only when somebody asks."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from ..containers.spec import read_spec
from ..core.json_text import find_member, find_members
from ..core.values import NamedTuple, Rlimit
from ..host.door import find_paths
from ..host.files import read_bytes, read_change, read_text
from ..host.look import Process, find_processes, read_process
from ..systemd.limits import read_manager_limits, read_unit_limits
from ..systemd.unit_file import merge_units
from ..systemd.unit_read import UnitFiles, read_manager_files, read_unit_files
from .api_read import Daemon, ask, find_containerd, find_daemon
from .dockerd_flags import CONFIG_PATH, Flag, find_config_path, find_socket, starts_program
from .model import UnitLimit
from .unit_read import find_unit_flags, read_daemon_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .compose import Compose

_UNIT = "docker.service"
_STATES = (
    "/run/containerd/io.containerd.runtime.v*",
    "/run/docker/containerd/daemon/io.containerd.runtime.v*",
)
_DATA = "/var/lib/docker"
_FOLDERS = ("/etc/systemd/system", "/run/systemd/system", "/etc/systemd")


class UnitRead(NamedTuple):
    """What the files of a unit state of its limits, and the paths whose change is one of it."""

    stated: Mapping[str, UnitLimit]
    paths: tuple[str, ...]


class DockerRead:
    """One look at the Docker of one host."""

    @cached_property
    def daemon(self) -> Daemon | None:
        return find_daemon()

    @cached_property
    def rootless(self) -> tuple[Process, ...]:
        """Return the dockerds of users' own, each of which has a socket of its own.

        Where there is one for all, others are looked for only if a socket says so.
        """
        if self.daemon and not find_paths("/run/user/*/docker.sock"):
            return ()
        return tuple(one for one in find_processes() if one.comm == "dockerd" and one.uid)

    @cached_property
    def unit(self) -> str:
        """Return the unit that runs dockerd, or that would; empty where systemd does not."""
        if self.daemon is None:
            return _UNIT
        return find_unit(self.daemon.process)

    @cached_property
    def unit_files(self) -> UnitFiles:
        return read_unit_files(self.unit)

    @cached_property
    def restarted_by(self) -> str:
        """Return the unit whose restart is dockerd's; empty where systemd would not restart it."""
        main = self.unit_files.main if self.unit else None
        return self.unit if main and main.text else ""

    @cached_property
    def running_flags(self) -> tuple[Flag, ...]:
        return tuple(self.daemon.flags) if self.daemon else ()

    @cached_property
    def flags(self) -> tuple[Flag, ...]:
        """Return the flags that dockerd will have at its next start.

        Those of a unit that starts something else, which then starts dockerd, are taken to stay.

        :raises ValueError: If a line of its unit cannot be understood.
        """
        if not self.unit:
            return self.running_flags
        settings = merge_units(*self.unit_files)
        flags = tuple(find_unit_flags(settings))
        return flags if flags or starts_program(settings, "dockerd") else self.running_flags

    @cached_property
    def flag_files(self) -> dict[str, str]:
        """Return the text of the files that give dockerd its flags, by path."""
        paths = {flag.path for flag in self.flags if flag.line}
        return {path: read_text(path) or "" for path in paths}

    @cached_property
    def address(self) -> str:
        return find_socket(self.running_flags)

    @cached_property
    def config_path(self) -> str:
        return find_config_path(self.flags)

    @cached_property
    def config(self) -> str | None:
        """Return the text of daemon.json; ``None`` where it is absent.

        :raises ValueError: As :func:`read_daemon_json` does.
        """
        return read_daemon_json(self.config_path)

    @cached_property
    def usual_config(self) -> str | None:
        """Return the text of daemon.json where dockerd reads another file; ``None`` if it is it."""
        if self.config_path == CONFIG_PATH:
            return None
        content = read_bytes(CONFIG_PATH)
        return None if content is None else content.decode("utf-8", "replace")

    @cached_property
    def config_changed(self) -> float:
        """Return when daemon.json was last changed, or was removed; 0 where it never was there."""
        folder = os.path.dirname(self.config_path)
        return next(filter(None, map(read_change, (self.config_path, folder))), 0.0)

    @cached_property
    def version(self) -> str:
        """Return the daemon's version, ``20.10.24`` or the like; empty where it does not say."""
        return str(self._ask("/version", "Version") or "") if self.daemon else ""

    @cached_property
    def live_restore(self) -> bool:
        """Tell whether containers go on while dockerd restarts; no where it does not say.

        Its files say nothing of that: it takes the key over when it is told to read them again.
        """
        return self._ask("/info", "LiveRestoreEnabled") is True

    def _ask(self, path: str, key: str) -> object:
        """Return one thing that the daemon tells of itself; nothing where it does not."""
        try:
            answer = ask("GET", path, address=self.address)
        except (OSError, ValueError):
            return None
        return answer.get(key) if isinstance(answer, dict) else None

    def _read_key(self, key: str) -> object:
        try:
            member = find_member(find_members(self.config or "{}"), key)
        except ValueError:
            return None
        return member.value if member else None

    @cached_property
    def containerd(self) -> Process | None:
        """Return the process that containers inherit their limits from."""
        pid = find_containerd(self.daemon) if self.daemon else None
        try:
            return read_process(pid) if pid else None
        except OSError:
            return None

    @cached_property
    def containerd_unit(self) -> str:
        """Return the unit whose files state what containerd starts with; empty where none does."""
        return find_unit(self.containerd) if self.containerd else ""

    def read_running_config(self) -> bytes:
        """Return daemon.json as it stands where the running dockerd read it."""
        return read_bytes(find_config_path(self.running_flags)) or b""

    def read_compose(self, details: Mapping[str, Any]) -> Compose | None:
        """Return the service and the Compose files that a container comes from, by its labels."""
        labels = (details.get("Config") or {}).get("Labels") or {}
        service = labels.get("com.docker.compose.service")
        named = labels.get("com.docker.compose.project.config_files")
        if not service or not named:
            return None
        folder = str(labels.get("com.docker.compose.project.working_dir", ""))
        paths = [os.path.join(folder, path) for path in str(named).split(",")]
        from .compose import Compose  # Of few containers.

        return Compose(str(service), tuple((path, _read_utf8(path)) for path in paths))

    def read_own_ulimits(self, details: Mapping[str, Any]) -> dict[str, Rlimit] | None:
        """Return the limits that a container was created with; ``None`` where not known.

        The engine adds its defaults to what it tells: its own file holds them alone.
        """
        given = {flag.name: flag.value for flag in self.running_flags}
        root = given.get("data-root") or self._read_key("data-root") or _DATA
        named = (str(details.get(key, "")) for key in ("LogPath", "HostnamePath", "ResolvConfPath"))
        folders = [os.path.dirname(path) for path in named]
        for folder in [*folders, f"{root}/containers/{details.get('Id', '')}"]:
            if os.path.basename(folder) == details.get("Id"):
                settings = _read_json(f"{folder}/hostconfig.json")
                if settings is not None:
                    return parse_ulimits(settings.get("Ulimits"))
        return None


def find_unit(process: Process) -> str:
    """Return the systemd unit of a process by its cgroup; empty where it is in none."""
    found = re.search(r"/([^/\n]+\.service)(?:/|$)", process.cgroup, re.MULTILINE)
    return found[1] if found else ""


def read_unit_stated(unit: str, root: str = "/") -> UnitRead:
    """Return the limits that a unit's files state, and every file and folder of them."""
    return _find_stated(unit, read_unit_files(unit, root), read_manager_files(root))


def find_stated_by_people(unit: str, files: UnitFiles) -> Mapping[str, UnitLimit]:
    """Return the limits that the files of a unit in /etc and /run state."""
    stated = _find_stated(unit, files, UnitFiles(None, [])).stated
    by_people = ("/etc/", "/run/")
    return {item: one for item, one in stated.items() if one.at.path.startswith(by_people)}


def _find_stated(unit: str, files: UnitFiles, manager: UnitFiles) -> UnitRead:
    sources = (files.main, *files.dropins, manager.main, *manager.dropins)
    paths = (*_FOLDERS, *(source.path for source in sources if source))
    paths += tuple(f"{folder}/{unit}.d" for folder in _FOLDERS)
    if files.main is None:
        return UnitRead({}, paths)
    reading = read_unit_limits("service", files.main, files.dropins)
    statements = (*read_manager_limits(*manager).statements, *reading.statements)
    # Of several the last wins, both bounds at once, and the unit's beat the manager's.
    limits = {
        one.item: UnitLimit(one.limit, one.setting.declare(one.limit.soft)) for one in statements
    }
    return UnitRead(limits, paths)


def parse_ulimits(entries: Any) -> dict[str, Rlimit]:
    """Read the engine's own list of limits: -1 is unlimited."""
    return {
        str(entry["Name"]): Rlimit(int(entry["Soft"]) % 2**64, int(entry["Hard"]) % 2**64)
        for entry in entries or ()
    }


def read_spec_limits(identity: str) -> Mapping[str, Rlimit] | None:
    """Return the limits that a container was started with; ``None`` where not known.

    They stand in the specification that containerd gave runc.
    """
    patterns = (f"{state}/moby/{identity}/config.json" for state in _STATES)
    found = [path for pattern in patterns for path in find_paths(pattern)]
    try:
        return read_spec(read_text(found[0]) or "").limits if found else None
    except (OSError, ValueError):
        return None


def _read_utf8(path: str) -> str | None:
    try:
        content = read_bytes(path) if os.path.isabs(path) else None
        return None if content is None else content.decode("utf-8")
    except (OSError, ValueError):
        return None


def _read_json(path: str) -> dict[str, Any] | None:
    try:
        content = json.loads(read_bytes(path) or b"")
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None
