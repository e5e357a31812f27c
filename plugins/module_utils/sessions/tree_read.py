# SPDX-License-Identifier: BSD-2-Clause
"""Read of a tree that will be a host what the C library and libpam tell of one that runs."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cached_property

from ..core.values import Declaration, NamedTuple, User
from ..host.files import find_tree_paths, list_folder, read_text, under
from ..kernel.boot_scripts_read import read_boot_scripts
from ..kernel.glob_pattern import is_pattern
from .base_read import choose_sshd_file, find_pam_option, put_options_first, read_sshd_files
from .limits_read import SessionFiles, find_hanging_limits_files
from .pam_stack import DIRECTORIES
from .reach import Hindrance
from .shell_limits import OF_ROOT, ShellLine, find_shell_limits
from .shell_measure import NO_HOME
from .shell_sources import find_sources
from .sshd_config import find_use_pam
from .unit_lines_read import join_lines, list_starts, read_unit_lines
from .user_records_read import find_recorded_user

_SSHD_OPTIONS = ("/etc/default/ssh", "/etc/sysconfig/sshd", "/etc/sysconfig/ssh")
"""What the units of Debian, Red Hat and SUSE add to sshd's command line (EnvironmentFile=)."""

_DEEPEST = 3  # Files that read files that read files.
_MOST_FILES = 500
_SSHD_UNITS, _OF_EACH_LOGIN = r"(?:sshd?\.)?service", r"sshd?@\.service"
"""Debian's and Red Hat's name, of which each may be the other's alias, and drop-ins of all."""


class Person(NamedTuple):
    """A line of passwd(5). ``at`` has the shell as its value, and no password."""

    uid: int
    home: str
    at: Declaration


class SessionsTree(SessionFiles):
    """The files of an image that say what its logins will get, read once."""

    @cached_property
    def hanging(self) -> list[str]:
        return find_hanging_limits_files(self.root)

    @cached_property
    def hindrances(self) -> dict[str, tuple[tuple[Hindrance, ...], str]]:
        """Keep what was found for each service: it is the same for every user."""
        return {}

    @cached_property
    def shell_lines(self) -> dict[str, tuple[ShellLine, ...]]:
        """Return what each startup file of all users sets, with all that it reads."""
        paths = _list_startup_files(self.root)
        return {path: tuple(read_startup_lines(path, NO_HOME, self.root)) for path in paths}

    @cached_property
    def pam_files(self) -> Mapping[str, str]:
        return read_tree_pam_files(self.root)

    @cached_property
    def boot_scripts(self) -> dict[str, str]:
        """Return what a boot runs that names the limits files, by path."""
        found = read_boot_scripts(self.root, True, _names_limits_files)
        return {path: text for path, text in found.items() if not path.startswith("/etc/pam.d/")}

    @cached_property
    def sshd_config(self) -> tuple[str, dict[str, str]]:
        return read_tree_sshd_config(self.root)

    @cached_property
    def people(self) -> dict[str, Person]:
        """Return the users of passwd(5) by their names."""
        return dict(_list_people(self.passwd_rows))

    @cached_property
    def passwd_rows(self) -> list[list[str]]:
        return _read_rows("/etc/passwd", self.root)

    @cached_property
    def group_rows(self) -> list[list[str]]:
        return _read_rows("/etc/group", self.root)

    def find_user(self, name: str) -> User:
        """Return a user. Raises as :func:`read_tree_user` does."""
        is_listed = any(row[0] == name for row in self.passwd_rows)
        recorded = None if is_listed else find_recorded_user(name, self.root)
        return recorded or pick_user(name, self.passwd_rows, self.group_rows, self.root)


def read_tree_pam_files(root: str) -> dict[str, str]:
    """Return the text of every service file that libpam may read, by path."""
    return {
        f"{folder}/{name}": read_text(f"{folder}/{name}", root) or ""
        for folder in DIRECTORIES
        for name in list_folder(folder, root)
    }


def read_tree_use_pam(root: str) -> Declaration:
    """Return whether sshd puts its sessions through PAM, by the files of a tree.

    :raises ValueError: If sshd would refuse its configuration.
    """
    for at in _list_sshd_options(root):
        option = find_pam_option(at.text, at.path, at.line)
        if option:
            return option
    path = choose_tree_sshd_file(root)
    found = find_use_pam(read_sshd_files(path, root), path)
    return found or Declaration(path, 0, "UsePAM is not set", "no")


def choose_tree_sshd_file(root: str) -> str:
    """Return the file that sshd of a tree reads."""
    own = choose_sshd_file("", root)
    found = [choose_sshd_file(f" {at.text}", root) for at in _list_sshd_options(root)]
    return next((path for path in reversed(found) if path != own), own)


def read_tree_sshd_config(root: str) -> tuple[str, dict[str, str]]:
    """Return the file that sshd of a tree reads first, and the text of all that it reads."""
    path = choose_tree_sshd_file(root)
    files = read_sshd_files(path, root)
    for at in _list_sshd_options(root):
        path, files = put_options_first(at, path, files)
    return path, files


def _list_sshd_options(root: str) -> Iterator[Declaration]:
    """Yield the lines that may add to sshd's command line."""
    starts = _list_sshd_starts(root)
    named = [str(one.value).lstrip("-") for one in starts if "EnvironmentFile" in one.text]
    for file in dict.fromkeys((*_SSHD_OPTIONS, *named)):
        for line in join_lines(read_text(file, root) or "", file):
            if not line.text.lstrip().startswith(("#", ";")):
                yield line
    yield from (one for one in starts if "EnvironmentFile" not in one.text)


def _list_sshd_starts(root: str) -> list[Declaration]:
    unit = find_tree_sshd_unit(root)
    wants = under("/etc/systemd/system/sockets.target.wants", root)
    is_by_socket = any(os.path.lexists(f"{wants}/{one}") for one in ("ssh.socket", "sshd.socket"))
    of_each = read_unit_lines(_OF_EACH_LOGIN, root) if is_by_socket else []
    return list(list_starts([*of_each, *read_unit_lines(_SSHD_UNITS, root, main=unit)]))


def find_sshd_program(root: str) -> Declaration | None:
    """Return the line by which the unit of a tree's sshd starts another program than sshd."""
    starts = _list_sshd_starts(root)
    last = starts[-1] if starts and "ExecStart" in starts[-1].text else None
    words = str(last.value).lstrip("-@:+!|").split() if last else []
    return last if words and words[0].rpartition("/")[2] != "sshd" else None


def find_tree_sshd_unit(root: str) -> str:
    """Return the name that sshd's unit has in a tree."""
    folders = ("/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")
    debians = (f"{under(folder, root)}/ssh.service" for folder in folders)
    return "ssh.service" if any(map(os.path.exists, debians)) else "sshd.service"


def _list_startup_files(root: str) -> Iterator[str]:
    for pattern in OF_ROOT:
        folder, name = pattern.rpartition("/")[::2]
        names = list_folder(folder, root) if "*" in name else [name]
        yield from (f"{folder}/{one}" for one in names if fnmatchcase(one, name))


def read_tree_shell_lines(root: str) -> Iterator[ShellLine]:
    """Yield the lines of a tree's startup files of all users that set limits, or may."""
    for path in _list_startup_files(root):
        yield from read_startup_lines(path, NO_HOME, root)


def read_startup_lines(path: str, home: str, root: str) -> Iterator[ShellLine]:
    """Yield the lines of a startup file, and of those that it reads, that set limits, or may."""
    waiting = deque([(path, 0)])
    seen: set[str] = set()
    while waiting:
        name, depth = waiting.popleft()
        if name in seen or len(seen) > _MOST_FILES:
            continue
        seen.add(name)
        text = read_text(name, root) or ""
        yield from find_shell_limits(text, name, hints=True)
        sources = find_sources(text, name, home)
        of_package = name.startswith("/usr/") and not name.startswith("/usr/local/")
        unclear = () if of_package else (*sources.unclear, *sources.becomes)
        yield from (ShellLine("", (), one) for one in dict.fromkeys(unclear))
        for pattern, at in sources.named:
            if depth == _DEEPEST:
                yield ShellLine("", (), at)
                continue
            found = find_tree_paths(pattern, root) if is_pattern(pattern) else [pattern]
            waiting.extend((one, depth + 1) for one in found)


def read_tree_user(root: str, name: str) -> User:
    """Read a user and the groups from the tree's own passwd and group files.

    A tree may have no passwd file yet; every host has root.

    :raises ValueError: If there is no such user.
    """
    return pick_user(name, _read_rows("/etc/passwd", root), _read_rows("/etc/group", root), root)


def pick_user(name: str, rows: list[list[str]], groups: list[list[str]], root: str) -> User:
    """Return a user of the fields of passwd(5) and group(5). Raises as :func:`read_tree_user`."""
    if name == "root" and rows == [[""]]:
        return User(name, 0, 0, frozenset({name}), frozenset({0}))
    entry = next((row for row in rows if len(row) >= 4 and row[0] == name), None)
    if entry is None or not (entry[2].isdigit() and entry[3].isdigit()):
        raise ValueError(f"{root.rstrip('/')}/etc/passwd: has no user {name!r}")
    uid, gid = int(entry[2]), int(entry[3])
    mine = [
        (row[0], int(row[2]))
        for row in groups
        if len(row) >= 4 and row[2].isdigit() and (int(row[2]) == gid or name in row[3].split(","))
    ]
    names, gids = (frozenset(column) for column in zip(*mine)) if mine else (frozenset(),) * 2
    return User(name, uid, gid, names, gids)


def _list_people(rows: list[list[str]]) -> Iterator[tuple[str, Person]]:
    for number, row in enumerate(rows, 1):
        if len(row) >= 7 and row[2].isdigit():
            text = ":".join([row[0], "x", *row[2:]])
            yield (
                row[0],
                Person(int(row[2]), row[5], Declaration("/etc/passwd", number, text, row[6])),
            )


def _read_rows(path: str, root: str) -> list[list[str]]:
    """Return the fields of each line; names are UTF-8, as the C library tells them."""
    text = (read_text(path, root) or "").encode("latin-1").decode("utf-8", "surrogateescape")
    return [line.split(":") for line in text.split("\n")]


def _names_limits_files(text: str) -> bool:
    return "/etc/security/limits" in text
