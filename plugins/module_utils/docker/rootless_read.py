# SPDX-License-Identifier: BSD-2-Clause
"""Read what a user's own dockerd runs with: in a child that is that user, and for no other."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from ..host.door import read_kernel_file
from ..host.files import LARGEST, read_bytes
from ..host.process import Process, read_process
from ..host.users import name_user
from .api_read import Daemon, find_listener
from .daemon_json import decode_daemon_json
from .dockerd_flags import find_config_path, find_socket, parse_flags
from .read import DockerRead

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.rlimit import Rlimit
    from .compose import Compose


class RootlessRead(DockerRead):
    """One look at a user's own Docker."""

    def __init__(self, process: Process, proc: str = "/proc") -> None:
        self.process, self._proc = process, proc

    @cached_property
    def user(self) -> str:
        return name_user(self.process.uid)

    @cached_property
    def _environment(self) -> dict[str, str]:
        return dict(word.partition("=")[::2] for word in self._read_words("environ"))

    def _read_words(self, name: str) -> list[str]:
        content = read_kernel_file(f"{self._proc}/{self.process.pid}/{name}", LARGEST)
        return os.fsdecode(content).rstrip("\0").split("\0")

    @cached_property
    def daemon(self) -> Daemon | None:
        path = f"/proc/{self.process.pid}/cmdline"
        words = [(word, path, 0) for word in self._read_words("cmdline")[1:]]
        return Daemon(self.process, parse_flags(words))

    @cached_property
    def unit(self) -> str:
        return ""  # One of the user's manager, which we do not restart.

    @cached_property
    def _run_folder(self) -> str:
        return self._environment.get("XDG_RUNTIME_DIR") or f"/run/user/{self.process.uid}"

    @cached_property
    def address(self) -> str:
        return find_socket(self.running_flags, f"{self._run_folder}/docker.sock")

    @property
    def is_own(self) -> bool:
        """Tell whether the user is who answers at the socket."""
        return self._belongs(find_listener(self.address))

    def _belongs(self, pid: int | None) -> bool:
        try:
            return bool(pid) and read_process(pid or 0, self._proc).uid == self.process.uid
        except OSError:
            return False

    @cached_property
    def config_path(self) -> str:
        if any(flag.name == "config-file" for flag in self.running_flags):
            return find_config_path(self.running_flags)
        home = self._environment.get("HOME") or os.path.expanduser(f"~{self.user}")
        folder = self._environment.get("XDG_CONFIG_HOME") or f"{home}/.config"
        return f"{folder}/docker/daemon.json"

    @cached_property
    def config(self) -> str | None:
        content = read_bytes(self.config_path)
        return None if content is None else decode_daemon_json(content, self.config_path)

    def read_running_config(self) -> bytes:
        return b""  # It is read when the daemon starts, and a daemon is told by its start.

    @cached_property
    def usual_config(self) -> str | None:
        return None

    @cached_property
    def containerd(self) -> Process | None:
        """Return the user's containerd, or else dockerd, which starts it with its own limits."""
        given = {flag.name: flag.value for flag in self.running_flags}
        folder = given.get("exec-root") or f"{self._run_folder}/docker"
        pid = find_listener(given.get("containerd") or f"{folder}/containerd/containerd.sock")
        return read_process(pid, self._proc) if pid and self._belongs(pid) else self.process

    @cached_property
    def containerd_unit(self) -> str:
        return ""  # It is within user@UID.service, whose limits PAM replaces.

    def read_own_ulimits(self, _details: Mapping[str, Any]) -> dict[str, Rlimit] | None:
        return None

    def read_compose(self, _details: Mapping[str, Any]) -> Compose | None:
        return None
