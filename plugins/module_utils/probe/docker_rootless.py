# SPDX-License-Identifier: BSD-2-Clause
"""Read what a user's own dockerd runs with, without following a link that the user made.

What such a daemon tells of files is never opened: it is the user's word.
"""

from __future__ import annotations

import os
import stat
from functools import cached_property

from ..policy.dockerd_flags import find_config_path, parse_flags
from .docker import Daemon, read_peer
from .docker_evidence import DockerEvidence
from .process import read_process
from .users import name_user

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..policy.docker_compose import Compose
    from ..policy.rlimit import Rlimit
    from .process import Process

_LARGEST = 2 * 2**20
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW


class RootlessEvidence(DockerEvidence):
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
        path = f"{self._proc}/{self.process.pid}/{name}"
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read().rstrip("\0").split("\0")

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
        given = [flag.value for flag in self.running_flags if flag.name == "host"]
        prefix = "unix://"
        named = [host[len(prefix) :] for host in given if host.startswith(prefix)]
        return named[0] if named else f"{self._run_folder}/docker.sock"

    @property
    def is_own(self) -> bool:
        """Tell whether the user is who answers at the socket."""
        return self._belongs(read_peer(self.address))

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
        content = read_owned(self.config_path, self.process.uid)
        return None if content is None else content.decode("utf-8")

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
        pid = read_peer(given.get("containerd") or f"{folder}/containerd/containerd.sock")
        return read_process(pid, self._proc) if pid and self._belongs(pid) else self.process

    @cached_property
    def containerd_unit(self) -> str:
        return ""  # It is within user@UID.service, whose limits PAM replaces.

    def read_own_ulimits(self, _details: Mapping[str, Any]) -> dict[str, Rlimit] | None:
        return None

    def read_compose(self, _details: Mapping[str, Any]) -> Compose | None:
        return None


def read_owned(path: str, uid: int) -> bytes | None:
    """Return a user's file; ``None`` where it is absent.

    :raises OSError: If a link leads to it, or it is another's.
    """
    folder = os.open("/", _FOLDER)
    try:
        *folders, name = [part for part in path.split("/") if part]
        for part in folders:
            below = os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = below
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except FileNotFoundError:
        return None
    finally:
        os.close(folder)
    with os.fdopen(file, "rb") as stream:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != uid or found.st_size > _LARGEST:
            raise OSError(f"{path}: is no file of uid {uid}")
        return stream.read()
