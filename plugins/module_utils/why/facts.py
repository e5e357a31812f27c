# SPDX-License-Identifier: BSD-2-Clause
"""What a host shows of a run's end, and what that is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..core.values import NamedTuple, Rlimit
from .kills import Line
from .reason import Reason

SURE, HINT, AGAINST, DOUBT = 2, 1, 0, -1
"""What a sign is worth: it shows the reason; it may be of another run; it excludes the reason; it
would exclude it if the run was here, which nobody knows."""


class Use(NamedTuple):
    """How much of a bound is taken, and by whom."""

    used: int
    most: int
    who: str


class Group(NamedTuple):
    """A bound of a cgroup above the run, and how often it was hit. ``item`` is its file."""

    item: str
    path: str
    most: int
    used: int
    hits: int


class Task(NamedTuple):
    """A process that runs, by what the kernel tells of it. ``taken`` is by item of a limit."""

    pid: int
    comm: str
    uid: int
    start: int
    limits: Mapping[str, Rlimit] = {}
    taken: Mapping[str, int] = {}
    may_lock: bool = False


class Facts(NamedTuple):
    """What was seen of a host.

    ``uid`` is whose run it was, ``None`` where nobody knows. ``uses`` are by the item of a reason.
    ``log`` is ``None`` where the kernel's log may not be read. ``told`` is what a manager says of
    the unit, job or container, and ``home`` its cgroup, a path. ``started`` and ``age`` are how
    many seconds ago the run began and ended, ``None`` where nobody knows. ``pids`` are the
    processes that the words name, ``path`` the file. ``here`` tells that it ran on this host.
    """

    uid: int | None = None
    task: Task | None = None
    groups: Sequence[Group] = ()
    uses: Mapping[str, Sequence[Use]] = {}
    log: Sequence[Line] | None = None
    log_is_whole: bool = False
    memory: Mapping[str, int] = {}
    told: Mapping[str, str] = {}
    home: str = ""
    age: float | None = None
    pids: frozenset[int] = frozenset()
    request: int = 0
    has_oomd: bool = True
    oomd: str = ""
    started: float | None = None
    here: bool = False
    path: str = ""


class Sign(NamedTuple):
    """What speaks for a reason, or against it.

    ``reason`` says more closely what it was, where that is known. ``group`` is the cgroup whose
    limit was reached.
    """

    code: str
    worth: int
    text: str
    reason: Reason | None = None
    group: str = ""
