# SPDX-License-Identifier: BSD-2-Clause
"""Read from the kernel's log whom it killed for memory.

Whoever is killed has chosen the name of the program, and perhaps those of cgroups: both stand
before the last two fields, which are the kernel's. Source: ``dump_oom_summary()`` and
``__oom_kill_process()`` in mm/oom_kill.c.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..core.values import NamedTuple

_HEAD = re.compile(r"oom-kill:constraint=(\w+),")
_TAIL = re.compile(r",pid=(\d+),uid=(\d+)$")
_GROUPS = re.compile(r"(?:,oom_memcg=(.*))?,task_memcg=(.*),task=(.*)$")
_KILLED = re.compile(r"Killed process (\d+) \(")
_ONCE = (",task_memcg=", ",task=")


class Line(NamedTuple):
    """A line of the kernel's log, and how many seconds ago it was written."""

    age: float
    text: str


class Kill(NamedTuple):
    """A kill for memory that the kernel logged.

    ``group`` is the cgroup whose limit was reached, and ``lived`` that of the process: both are
    empty where a name there looks like a field. ``pid`` is 0 where the lines disagree.
    """

    age: float
    constraint: str
    group: str
    lived: str
    comm: str
    pid: int
    uid: int

    def was_in(self, home: str) -> bool:
        """Tell whether the process lived in a cgroup, or below it."""
        return is_below(self.lived, home)


def is_below(path: str, home: str) -> bool:
    """Tell whether a cgroup is another, or is below it.

    :param home: A path, or the id of a container, which names a cgroup wherever that is; below
        what a user may make cgroups in, it names none.
    """
    if home.startswith("/"):
        return f"{path}/".startswith(f"{home.rstrip('/')}/")
    names = path.split("/")[1:]
    return names[:1] != ["user.slice"] and (home in names or f"docker-{home}.scope" in names)


def find_kills(lines: Sequence[Line]) -> list[Kill]:
    """Return the kills for memory, in their order."""
    return list(_find(lines))


def _find(lines: Sequence[Line]) -> Iterator[Kill]:
    for number, line in enumerate(lines):
        head, tail = _HEAD.match(line.text), _TAIL.search(line.text)
        if head is None or tail is None:
            continue
        found = _GROUPS.search(line.text[: tail.start()])
        is_plain = all(line.text.count(one) == 1 for one in _ONCE)
        group, lived, comm = found.groups() if found and is_plain else ("", "", "")
        if line.text.count(",oom_memcg=") > 1:
            group = ""
        pid = int(tail[1]) if _is_agreed(lines[number + 1 :], tail[1]) else 0
        yield Kill(line.age, head[1], group or "", lived, comm, pid, int(tail[2]))


def _is_agreed(after: Sequence[Line], pid: str) -> bool:
    """Tell whether the line that says of the kill itself names the same process, if it is there."""
    for line in after:
        if _HEAD.match(line.text):
            break
        killed = _KILLED.search(line.text)
        if killed:
            return killed[1] == pid
    return True
