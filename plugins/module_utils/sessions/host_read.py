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
    find_change_by_hand,
    find_fleeting_file,
    find_login_daemon,
    find_newer_file,
    read_sshd_config,
    read_use_pam,
)
from .libpam_measure import find_missing_modules
from .limits_read import SessionFiles
from .pam_limits import LIMITS_D, order_files
from .pam_read import read_pam_files
from .pam_stack import find_pam_limits, flatten, read_limits_options
from .sudoers import (
    SUDO_CONF,
    SudoSetting,
    find_main_file,
    find_sudo_includes,
    find_sudo_settings,
)
from .unread import Unread, find_unread


def _name_daemon(service: str) -> str:
    """Return the daemon of a service; what calls su and sudo is taken for a session of sshd."""
    return "cron" if service in ("cron", "crond") else "sshd"


class SessionsRead(SessionFiles):
    """What one host's files say of its sessions. Each is read when somebody asks, and kept."""

    def __init__(self) -> None:
        super().__init__()
        self._users: dict[str, User | None] = {}
        self._newer: dict[str, str] = {}
        self._changes: dict[tuple[str, str], tuple[str, str]] = {}

    @cached_property
    def unread_lines(self) -> tuple[Unread, ...]:
        """Return the lines that somebody meant for pam_limits and that it skips."""
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

    def keeps_what_it_inherits(self, service: str) -> bool:
        """Tell whether no pam_limits has a say in a service's sessions.

        :raises ValueError: If sshd would refuse its configuration.
        """
        if service == "sshd" and self.use_pam.value != "yes":
            return True
        return not find_pam_limits(flatten(service, "session", self.pam_files))

    @cached_property
    def sshd_unit(self) -> str:
        """Return the name that sshd's unit has on this distribution."""
        folders = ("/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")
        debian = any(os.path.exists(f"{folder}/ssh.service") for folder in folders)
        return "ssh.service" if debian else "sshd.service"

    def find_newer_file(self, service: str) -> str:
        """Return a file that may give a service's daemon other limits when it starts again."""
        daemon = _name_daemon(service)
        if daemon not in self._newer:
            self._newer[daemon] = find_newer_file(daemon)
        return self._newer[daemon]

    def find_change(self, service: str, item: str) -> tuple[str, str]:
        """Return why a service's daemon may pass on another limit after a boot, and which file."""
        daemon = _name_daemon(service)
        if (daemon, item) not in self._changes:
            self._changes[daemon, item] = self._find_change(daemon, item)
        return self._changes[daemon, item]

    def _find_change(self, daemon: str, item: str) -> tuple[str, str]:
        newer = self.find_newer_file(daemon)
        if newer:
            return f"{newer} is newer than the daemon that passes {item} on", newer
        fleeting = find_fleeting_file(daemon)
        if fleeting:
            return f"{fleeting} is gone after a boot, and may set {item} of the daemon", fleeting
        return find_change_by_hand(daemon, item), ""

    @cached_property
    def sshd_config(self) -> tuple[str, dict[str, str]]:
        """Return the file that sshd reads, and the texts of it and of all that it includes."""
        return read_sshd_config(find_login_daemon("sshd") or 0)

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


def read_sudoers(root: str = "/") -> dict[str, str]:
    """Return sudoers(5) and what it includes, by path, in the order in which sudo reads them."""
    files: dict[str, str] = {}
    waiting = deque([find_main_file(read_text(SUDO_CONF, root) or "")])
    while waiting:
        path = waiting.popleft()
        text = None if path in files else read_text(path, root)
        if text is None:
            continue
        files[path] = text
        host = os.uname().nodename.partition(".")[0]
        for kind, named in find_sudo_includes(text):
            name = named.replace("%h", host)
            name = name if name.startswith("/") else f"/etc/{name}"
            waiting += _list_included(name, root) if kind == "includedir" else [name]
    return files


def _list_included(folder: str, root: str) -> list[str]:
    """Return the files of a folder as sudo reads them: none with a dot or a tilde at its end."""
    names = list_folder(folder, root)
    names = [name for name in names if "." not in name and not name.endswith("~")]
    return [f"{folder.rstrip('/')}/{name}" for name in names]
