# SPDX-License-Identifier: BSD-2-Clause
"""Read of a tree in which groups a user may be that its group(5) does not tell.

Source: sysusers.d(5), lines of type ``m``, which the first boot may add; nsswitch.conf(5).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from ..core.cause import cite
from ..core.values import Declaration, NamedTuple, User
from ..host.files import read_folder, read_text
from .tree_read import SessionsTree

_NSSWITCH = "/etc/nsswitch.conf"
_FOLDERS = ("/usr/lib/sysusers.d", "/usr/local/lib/sysusers.d", "/etc/sysusers.d")
"""From the weakest on: a file hides those of its name before it."""

_OF_FILES = frozenset({"files", "compat", "systemd", "db", "altfiles", "extrausers", "mymachines"})
"""Sources that tell what the tree itself tells, or nobody."""

_MEMBER = re.compile(r"\s*m\s+(\S+)\s+(\S+)")
_SOURCES = re.compile(r"\s*(?:initgroups|group)\s*:([^#]*)")


class Membership(NamedTuple):
    """A group that a user may be in, and the line for which that may be."""

    group: str
    at: Declaration

    def describe(self, user: User) -> str:
        return f"{cite(self.at)} may put {user.name} into the group {self.group}"


def find_memberships(user: User, read: SessionsTree) -> list[Membership]:
    """Return in which groups that limits files name a user may be besides those that are known."""
    if user.name[:1] in "*@":
        return []
    named = {line.domain[1:] for line in read.limits_lines if line.domain[:1] == "@"}
    open_ = {one for one in named - user.groups if ":" not in one}
    return list(_find(user, open_, read.root)) if open_ else []


def _find(user: User, groups: Collection[str], root: str) -> Iterator[Membership]:
    files: dict[str, tuple[str, str]] = {}
    for folder in _FOLDERS:
        for path, text in read_folder(folder, root).items():
            files[path.rpartition("/")[2]] = path, text
    for path, text in files.values():
        for number, line in enumerate(text.split("\n"), 1):
            found = _MEMBER.match(line)
            if found and found[1] == user.name and found[2] in groups:
                yield Membership(found[2], Declaration(path, number, line, found[2]))
    for number, line in enumerate((read_text(_NSSWITCH, root) or "").split("\n"), 1):
        sources = _SOURCES.match(line)
        words = re.sub(r"\[[^]]*\]", " ", sources[1]).split() if sources else []
        if not _OF_FILES.issuperset(words):
            at = Declaration(_NSSWITCH, number, line, "")
            yield from (Membership(group, at) for group in sorted(groups))
