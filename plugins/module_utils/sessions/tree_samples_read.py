# SPDX-License-Identifier: BSD-2-Clause
"""Choose of a tree who stands for everyone, and those to whom its files may give less."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import islice

from ..core.values import Declaration, User
from .measure import opens_session
from .pam_limits import rank_domain
from .rules import find_limits
from .samples_read import FEW, MOST_IN_RANGE, MOST_OTHERS, People, compare_users
from .shell_limits import ShellLine, is_known_shell, list_startup_files
from .tree_read import SessionsTree, read_startup_lines
from .user_records_read import list_limited_users

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .policy import SessionRule

_NOBODY = 2**31  # The number of whoever stands for users that an image does not have yet.
_SH = "/bin/sh"


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
) -> tuple[list[User], list[str]]:
    """Return whom the rules mean without a name, and to whom the tree may give less than to others;
    and of whom nothing is found out.

    A name or a group that only a limits file knows counts too: it may come with the first boot.
    """
    known = [find_tree_user(name, read) for name in chosen if name[:1] in _STAND_INS]
    people = _People(read)
    told = People(people.find, people.of_group, people.of_range)
    different = compare_users(rules, known, told, read)
    recorded = islice(list_limited_users(read.root), FEW)
    short = different.short[:MOST_OTHERS]
    names = dict.fromkeys([*short, *people.list_odd_shells(), *recorded])
    users = filter(None, map(people.find, names))
    others = [one for one in users if one.name not in chosen and find_limits(rules, one)]
    return others, different.list_untold()


def find_shell_line(user: User, read: SessionsTree) -> Declaration | None:
    """Return the line that gives a user of the tree a shell whose startup files nobody knows."""
    one = read.people.get(user.name)
    return None if one is None or is_known_shell(str(one.at.value)) else one.at


def find_startup_lines(user: User, read: SessionsTree) -> Iterator[ShellLine]:
    """Yield what the startup files of a user's shell set: of all shells where it is not known.

    Of files in homes only root's are read; those of others are theirs to read.
    """
    one = read.people.get(user.name)
    if one is None:
        yield from (line for lines in read.shell_lines.values() for line in lines)
        return
    patterns = list_startup_files(str(one.at.value) or _SH)
    for path, lines in read.shell_lines.items():
        if any(fnmatchcase(path, pattern) for pattern in patterns):
            yield from lines
    own = [pattern[1:] for pattern in patterns if pattern.startswith("~/") and one.uid == 0]
    for path in (one.home.rstrip("/") + name for name in own):
        yield from read_startup_lines(path, one.home, read.root)


class _People:
    """Users of a tree who can log in, and those whom it does not have yet."""

    def __init__(self, read: SessionsTree) -> None:
        self._read = read
        people = read.people.items()
        self._own = {name: one for name, one in people if opens_session(str(one.at.value))}

    def find(self, name: str) -> User | None:
        if name in self._read.people and name not in self._own:
            return None  # No shell lets them in.
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
        return [*islice(found, FEW), f"@{group}"]

    def of_range(self, domain: str) -> list[str]:
        people = filter(None, map(self.find, islice(self._own, MOST_IN_RANGE)))
        meant = (
            user.name
            for user in people
            if rank_domain(domain, user, self._read.dialect) is not None
        )
        return list(islice(meant, FEW))

    def list_odd_shells(self) -> list[str]:
        """Return some users whose shells have startup files that nobody knows."""
        users = {str(one.at.value): name for name, one in reversed(list(self._own.items()))}
        odd = (name for shell, name in users.items() if not is_known_shell(shell))
        return list(islice(odd, FEW))
