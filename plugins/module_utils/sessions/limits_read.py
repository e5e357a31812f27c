# SPDX-License-Identifier: BSD-2-Clause
"""Read the limits files of a host, or of a tree that will be one."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from functools import cached_property

from ..core.distribution import Dialect
from ..core.values import User
from ..host.files import (
    follow_links,
    leads_to_null,
    list_folder,
    read_folder,
    read_text,
    under,
)
from .dialect_read import read_dialect, reads_vendor_files
from .limits_conf import LimitsLine
from .pam_limits import LIMITS_CONF, LIMITS_D, VENDOR_LIMITS_CONF, VENDOR_LIMITS_D, read_lines
from .pam_stack import find_pam_limits, flatten, read_limits_options
from .rivals import keep_rivals


class SessionFiles:
    """What the files of a host, or of a tree, say of its sessions; each is read once."""

    def __init__(self, root: str = "/") -> None:
        self.root = root
        self._lines_of: dict[User, tuple[LimitsLine, ...]] = {}

    @cached_property
    def dialect(self) -> Dialect:
        return read_dialect(self.root)

    @cached_property
    def limits_files(self) -> dict[str, str]:
        return read_limits_files(self.root)

    @cached_property
    def limits_lines(self) -> tuple[LimitsLine, ...]:
        """Return the lines in the order of pam_limits; a link out of /etc gives that file's name.

        So a fix edits the file that holds the line, or leaves it to a person.
        """
        real = {path: _find_file(path, self.root) for path in self.limits_files}
        lines = read_lines(self.limits_files, self.dialect)
        return tuple(line._replace(path=real[line.path]) for line in lines)

    @cached_property
    def pam_files(self) -> Mapping[str, str]:
        """Return the text of every service file that libpam may read, by path."""
        raise NotImplementedError

    def lines_of(self, user: User) -> tuple[LimitsLine, ...]:
        """Return those of the lines that can decide something for a user."""
        if user not in self._lines_of:
            self._lines_of[user] = keep_rivals(self.limits_lines, user, self.dialect)
        return self._lines_of[user]

    def read_confs(self, service: str) -> dict[str, str]:
        """Return the text of the files that a service's pam_limits is told to read instead."""
        calls = find_pam_limits(flatten(service, "session", self.pam_files))
        named = {read_limits_options(call).conf for call in calls}
        texts = {path: read_text(path, self.root) for path in named if path}
        return {path: text for path, text in texts.items() if text is not None}


def read_limits_files(root: str = "/") -> dict[str, str]:
    """Return limits.conf and every file of limits.d that pam_limits may read, by path."""
    main = read_text(LIMITS_CONF, root)
    own = {**({} if main is None else {LIMITS_CONF: main}), **read_folder(LIMITS_D, root)}
    return {**own, **_read_vendor_files(root)}


def _find_file(path: str, root: str) -> str:
    """Return a file by its own name where a link in /etc leads out of it."""
    real = follow_links(path, root) if path.startswith("/etc/") else path
    return path if real.startswith("/etc/") else real


def _read_vendor_files(root: str) -> dict[str, str]:
    main, files = read_text(VENDOR_LIMITS_CONF, root), read_folder(VENDOR_LIMITS_D, root)
    found = {**({} if main is None else {VENDOR_LIMITS_CONF: main}), **files}
    return found if found and reads_vendor_files(root) else {}


def find_broken_files(strict: bool, root: str = "/") -> Iterator[tuple[str, str]]:
    """Yield the limits files on which PAM stops every login, each with the reason.

    :param strict: Whether PAM refuses sessions where it cannot open a file (before 1.5.3).
    """
    names = [name for name in list_folder(LIMITS_D, root) if _is_read(name)]
    for path in (LIMITS_CONF, *(f"{LIMITS_D}/{name}" for name in names)):
        try:
            mode = os.stat(under(path, root)).st_mode
        except OSError:
            if strict and not leads_to_null(path, root):
                yield path, _describe_missing(root.rstrip("/") + path)
            continue
        if stat.S_ISFIFO(mode):
            yield path, "is a named pipe, on which every login waits"


def find_hanging_limits_files(root: str = "/") -> list[str]:
    """Return the links of limits.d that lead nowhere and that pam_limits would try to read."""
    broken = [path for path, reason in find_broken_files(True, root) if path != LIMITS_CONF]
    return [path for path in broken if os.path.islink(root.rstrip("/") + path)]


def _is_read(name: str) -> bool:
    return name.endswith(".conf") and not name.startswith(".")


def _describe_missing(path: str) -> str:
    if os.path.islink(path):
        return f"is a link to {os.readlink(path)}, which cannot be opened"
    return "is missing"
