# SPDX-License-Identifier: BSD-2-Clause
"""Choose of a tree who stands for everyone, and those to whom its files may give less."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import islice

from ..core.values import Declaration, NamedTuple, User
from ..host.files import read_text
from .doubts_read import may_set_limits
from .measure import NO_SHELLS
from .pam_limits import rank_domain
from .rules import find_limits
from .samples_read import People, find_different
from .shell_limits import ShellLine, find_shell_limits, list_startup_files
from .tree_read import SessionsTree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .policy import SessionRule

_NOBODY = 2**31  # The number of whoever stands for users that an image does not have yet.
_SH = "/bin/sh"
_MOST_NAMES = 1000
_MOST_IN_RANGE = 200
_FEW = 5


def find_tree_user(name: str, read: SessionsTree) -> User:
    """Return a user of a tree, or who stands for everyone, or for a group.

    :raises ValueError: If there is no user of that name.
    """
    stand_in = _STAND_INS.get(name[:1])
    return stand_in(name) if stand_in else read.find_user(name)


_STAND_INS: Mapping[str, Callable[[str], User]] = {
    "*": lambda name: User(name, _NOBODY, _NOBODY),
    "@": lambda name: User(name, _NOBODY, _NOBODY, frozenset({name[1:]})),
}


def choose_others(
    rules: Sequence[SessionRule], chosen: Sequence[str], read: SessionsTree
) -> list[User]:
    """Return whom the rules mean without a name, and to whom the tree may give less than to others.

    A name or a group that only a limits file knows counts too: it may come with the first boot.
    """
    known = [find_tree_user(name, read) for name in chosen if name[:1] in _STAND_INS]
    items = {item for rule in rules for item in rule.limits}
    lines = [line for line in read.limits_lines if line.item in items or line.stops]
    people = _People(read)
    different = find_different(
        lines,
        known,
        lambda user: find_limits(rules, user),
        People(people.find, people.of_group, people.of_range),
        read.dialect,
        _MOST_NAMES,
    )
    names = dict.fromkeys([*different.short, *people.list_odd_shells()])
    users = filter(None, map(people.find, names))
    return [one for one in users if one.name not in chosen and find_limits(rules, one)]


def find_shell_line(user: User, read: SessionsTree) -> Declaration | None:
    """Return the line that gives a user of the tree a shell which may set limits."""
    one = _find_person(user, read)
    return one.at if one and may_set_limits(str(one.at.value), read.root) else None


def find_startup_lines(user: User, read: SessionsTree) -> Iterator[ShellLine]:
    """Yield what the startup files of a user's shell set: of all shells where it is not known.

    Of files in homes only root's are read; those of others are theirs to read.
    """
    one = _find_person(user, read)
    patterns = list_startup_files(str(one.at.value) or _SH) if one else ()
    for line in read.shell_lines:
        if one is None or any(fnmatchcase(line.at.path, pattern) for pattern in patterns):
            yield line
    for pattern in patterns if one and one.uid == 0 else ():
        path = pattern.replace("~", one.home.rstrip("/"), 1) if one else ""
        if pattern.startswith("~/"):
            yield from find_shell_limits(read_text(path, read.root) or "", path, hints=True)


def _find_person(user: User, read: SessionsTree) -> _Person | None:
    return next((one for one in _list_people(read) if one.name == user.name), None)


class _Person(NamedTuple):
    """A line of passwd(5). ``at`` has the shell as its value."""

    name: str
    uid: int
    home: str
    at: Declaration


class _People:
    """Users of a tree who can log in, and those whom it does not have yet."""

    def __init__(self, read: SessionsTree) -> None:
        self._read = read
        people = list(_list_people(read))
        self._own = {one.name: one for one in people if _can_log_in(one)}
        self._closed = {one.name for one in people} - set(self._own)

    def find(self, name: str) -> User | None:
        if name in self._closed:
            return None
        if name in self._own or name[:1] in _STAND_INS:
            return find_tree_user(name, self._read)
        return User(name, _NOBODY, _NOBODY)

    def of_group(self, group: str) -> list[str]:
        """Return some members, or who stands for those that will come."""
        rows = [row for row in self._read.group_rows if len(row) >= 4 and row[0] == group]
        named = {name for row in rows for name in row[3].split(",")}
        numbers = {row[2] for row in rows}
        found = (
            row[0]
            for row in self._read.passwd_rows
            if row[0] in self._own and (row[0] in named or row[3] in numbers)
        )
        return [*islice(found, _FEW), f"@{group}"]

    def of_range(self, domain: str) -> list[str]:
        people = filter(None, map(self.find, islice(self._own, _MOST_IN_RANGE)))
        meant = (
            user.name
            for user in people
            if rank_domain(domain, user, self._read.dialect) is not None
        )
        return list(islice(meant, _FEW))

    def list_odd_shells(self) -> list[str]:
        """Return one user for each shell that may set limits."""
        users = {str(one.at.value): one.name for one in reversed(list(self._own.values()))}
        return [name for shell, name in users.items() if may_set_limits(shell, self._read.root)]


def _can_log_in(person: _Person) -> bool:
    return os.path.basename(str(person.at.value)) not in NO_SHELLS


def _list_people(read: SessionsTree) -> Iterator[_Person]:
    """Yield the users of passwd(5); the value of a line is the shell. No password is shown."""
    for number, row in enumerate(read.passwd_rows, 1):
        if len(row) >= 7 and row[2].isdigit():
            text = ":".join([row[0], "x", *row[2:]])
            at = Declaration("/etc/passwd", number, text, row[6])
            yield _Person(row[0], int(row[2]), row[5], at)
