# SPDX-License-Identifier: BSD-2-Clause
"""What a host's files say of sessions, each read once and only when somebody asks."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Mapping
from functools import cached_property

from ..core.values import Declaration, User
from ..host.files import list_folder, read_text
from ..host.users import read_user
from .base_read import (
    find_login_daemon,
    find_newer_file,
    find_sshd_file,
    read_sshd_files,
    read_use_pam,
)
from .libpam_measure import find_missing_modules
from .limits_read import SessionFiles
from .pam_limits import LIMITS_D, order_files
from .pam_read import read_pam_files
from .pam_stack import find_pam_limits, flatten, read_limits_options
from .sudoers import MAIN_FILE, SudoSetting, find_sudo_includes, find_sudo_settings
from .unread import Unread, find_unread


class SessionsRead(SessionFiles):
    """What one host's files say of its sessions. Each is read when somebody asks, and kept."""

    def __init__(self) -> None:
        super().__init__()
        self._users: dict[str, User | None] = {}
        self._newer: dict[str, str] = {}

    @cached_property
    def unread_lines(self) -> tuple[Unread, ...]:
        """Return the lines that somebody meant for pam_limits and that it passes over."""
        paths = (f"{LIMITS_D}/{name}" for name in list_folder(LIMITS_D))
        read = dict.fromkeys(order_files(self.limits_files))
        others = {
            path: read_text(path) or ""
            for path in paths
            if path not in read and os.path.isfile(path)
        }
        files = {path: self.limits_files[path] for path in read}
        return tuple(find_unread(files, others, self.dialect))

    def find_user(self, name: str) -> User | None:
        """Return a user with all groups, or ``None`` where there is none of that name."""
        if name not in self._users:
            self._users[name] = read_user(name)
        return self._users[name]

    def find_pam_files(self) -> Mapping[str, str] | None:
        """Return the files of PAM's services; ``None`` where they cannot be read."""
        try:
            return self.pam_files
        except OSError:
            return None

    @cached_property
    def pam_files(self) -> Mapping[str, str]:
        return read_pam_files()

    def find_missing_modules(self, service: str) -> set[str]:
        """Return the modules of a service's sessions that the host lacks."""
        calls = find_pam_limits(flatten(service, "session", self.pam_files))
        return set(find_missing_modules({call.module for call in calls}))

    def resets_limits(self, service: str) -> bool:
        """Tell whether PAM starts over from the limits of process 1."""
        if self.dialect.resets:
            return True
        calls = find_pam_limits(flatten(service, "session", self.pam_files))
        return any(read_limits_options(call).set_all for call in calls)

    @cached_property
    def sshd_unit(self) -> str:
        """Return the name that sshd's unit has on this distribution."""
        folders = ("/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")
        debian = any(os.path.exists(f"{folder}/ssh.service") for folder in folders)
        return "ssh.service" if debian else "sshd.service"

    def find_newer_file(self, service: str) -> str:
        """Return a file that may give a service's daemon other limits when it starts again.

        What calls su and sudo is taken for a session of sshd.
        """
        daemon = "cron" if service in ("cron", "crond") else "sshd"
        if daemon not in self._newer:
            self._newer[daemon] = find_newer_file(daemon)
        return self._newer[daemon]

    @cached_property
    def sshd_config(self) -> tuple[str, dict[str, str]]:
        """Return the file that sshd reads, and the texts of it and of all that it includes."""
        path = find_sshd_file(find_login_daemon("sshd") or 0)
        return path, read_sshd_files(path)

    @cached_property
    def sudo_settings(self) -> list[SudoSetting]:
        """Return what sudo does to the limits of its sessions."""
        return find_sudo_settings(read_sudoers())

    @cached_property
    def use_pam(self) -> Declaration:
        """Return whether sshd puts its sessions through PAM.

        :raises ValueError: If sshd would refuse its configuration.
        """
        return read_use_pam(find_login_daemon("sshd") or 0)


def read_sudoers() -> dict[str, str]:
    """Return sudoers(5) and what it includes, by path, in the order in which sudo reads them."""
    files: dict[str, str] = {}
    waiting = deque([MAIN_FILE])
    while waiting:
        path = waiting.popleft()
        text = None if path in files else read_text(path)
        if text is None:
            continue
        files[path] = text
        host = os.uname().nodename.partition(".")[0]
        for kind, named in find_sudo_includes(text):
            name = named.replace("%h", host)
            name = name if name.startswith("/") else f"/etc/{name}"
            waiting += _list_included(name) if kind == "includedir" else [name]
    return files


def _list_included(folder: str) -> list[str]:
    """Return the files of a folder as sudo reads them: none with a dot or a tilde at its end."""
    names = (name for name in list_folder(folder) if "." not in name and not name.endswith("~"))
    return [f"{folder.rstrip('/')}/{name}" for name in names]
