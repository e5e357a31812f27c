# SPDX-License-Identifier: BSD-2-Clause
"""Say what to mend first on a fleet: each fix once, with the hosts that it makes green."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from .core.reasons import find_section
from .core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .fleet_view import Fleet, Row

    Key = tuple[object, ...]
    Data = Mapping[str, object]

NEVER, AGAIN, EDIT = "never", "again", "edit"
"""Provision hosts that never were; provision once more; put one cause right by its remedy."""
AT_ONCE, ANEW, RESTART, ENDS_WORK, REBOOT = "at once", "anew", "restart", "ends work", "reboot"
COSTS = {AT_ONCE: 1, ANEW: 2, RESTART: 4, ENDS_WORK: 8, REBOOT: 16}
"""What must happen before a fix counts, and what that weighs; ``anew`` is a login or a job."""

_SIGNS = (
    (REBOOT, r"\breboot|\brestart the host|\bboot the host"),
    (
        ENDS_WORK,
        r"\brestart (docker|containerd|podman|slurm)|\b(docker|podman) (restart|rm|stop)\b"
        r"|\banew\b|\bbuild it again|\bstart what it ran|\bends? (all|that|what)\b"
        r"|\bterminate|\bkill\b|\bremove [^ ]+ and create",
    ),
    (RESTART, r"\b(re)?start(s|ed)?\b"),
    (ANEW, r"\blog in again|\bnext (job|session|login)"),
)
_OURS = "mlhost"
_MOST = 50
"""Fixes that are put in order; a fleet with more of them has no pattern to show."""


class Fix(NamedTuple):
    """One thing to do on ``hosts``, which are numbers of rows; ``groups`` are the causes it mends.

    ``cost`` is a key of COSTS and ``then`` says what must happen before it counts. ``alone`` is how
    many hosts become green by it only, ``together`` by it and those that come before. ``remedy`` is
    that of one of its hosts; where it ``varies``, others need other commands.
    """

    kind: str
    groups: tuple[int, ...]
    cost: str
    then: tuple[str, ...]
    hosts: tuple[int, ...]
    alone: int = 0
    together: int = 0
    remedy: Data = {}
    varies: bool = False


class _Part(NamedTuple):
    """One cause as some hosts have it: which fix mends it, if any does, and what that costs."""

    key: Key
    group: int
    remedy: Data
    cost: str
    is_ours: bool


class Plan(NamedTuple):
    """What to do on a fleet, in this order.

    ``needy`` are the hosts on which something falls short, now or after a boot; ``never`` those
    of them that were never provisioned, ``stuck`` those on which ``fixes`` do not mend all, and
    ``unseen`` those with a value that could not be seen, which no fix makes known. ``left`` is
    how many more fixes there are.
    """

    fixes: tuple[Fix, ...]
    needy: tuple[int, ...]
    never: tuple[int, ...]
    stuck: tuple[int, ...]
    unseen: tuple[int, ...]
    left: int

    @property
    def green(self) -> int:
        """Return how many hosts all of it makes green."""
        return len(self.needy) - len(self.stuck)


def plan_fixes(fleet: Fleet) -> Plan:
    """Return what to do, what makes most hosts green for its cost first.

    The order is that of a greedy cover. A fix scores a point for each host that lacks nothing
    else, and where a host lacks n things the square of 1/n, divided by the weight of its cost.
    """
    fixes, lacking, never = gather_fixes(fleet)
    needy = tuple(lacking)
    ordered, stuck = _order(fixes, lacking)
    unseen = tuple(index for index in needy if fleet.rows[index].unseen)
    return Plan(tuple(ordered), needy, never, stuck, unseen, len(fixes) - len(ordered))


def gather_fixes(
    fleet: Fleet,
) -> tuple[list[Fix], dict[int, frozenset[int]], tuple[int, ...]]:
    """Return all fixes, by host those that it lacks, and the hosts never provisioned.

    -1 stands for a fix that is not known.
    """
    needy = [index for index, row in enumerate(fleet.rows) if row.needs]
    parts = {cause: _make_part(fleet, cause) for host in needy for cause in fleet.rows[host].causes}
    never = tuple(index for index in needy if _is_new(fleet, fleet.rows[index], parts))
    return (*_gather(fleet, needy, set(never), parts), never)


def find_cost(remedies: Iterable[Data]) -> str:
    """Return the dearest that remedies cost before they count, a key of COSTS."""
    costs = [_find_one_cost(remedy) for remedy in remedies]
    return max(costs, key=lambda cost: COSTS[cost], default=AT_ONCE)


def _find_one_cost(remedy: Data) -> str:
    then, commands = str(remedy.get("then") or ""), remedy.get("commands")
    told = " ".join([then, str(remedy.get("text") or ""), *_list_words(commands)])
    for cost, sign in _SIGNS:
        if re.search(sign, told):
            return cost
    return ANEW if then else AT_ONCE


def _list_words(commands: object) -> Iterator[str]:
    for command in commands if isinstance(commands, list) else []:
        yield from map(str, command if isinstance(command, list) else [command])


def find_remedy(cause: Data) -> Data:
    """Return the remedy of a cause, empty where none is known."""
    remedy = cause.get("remedy")
    return remedy if isinstance(remedy, dict) and remedy.get("text") else {}


def _is_new(fleet: Fleet, row: Row, parts: Mapping[int, _Part]) -> bool:
    """Tell whether a host was never provisioned: most of it is stated nowhere, nothing is ours."""
    groups = [fleet.groups[number] for number in row.needs]
    stated = sum(bool(find_section(group.code)) for group in groups)
    is_ours = any(parts[cause].is_ours for cause in row.causes)
    return stated > 1 and stated * 2 > len(groups) and not is_ours


def _is_ours(cause: Data) -> bool:
    """Tell whether a cause speaks of a file that ``provision`` writes."""
    shadows = cause.get("shadows")
    lines = [cause.get("at"), *(shadows if isinstance(shadows, list) else [])]
    files = [str(line.get("file")) for line in lines if isinstance(line, dict)]
    return any(_OURS in text for text in [str(cause.get("text")), *files])


def _make_part(fleet: Fleet, number: int) -> _Part:
    """Return a cause with what makes two of them one fix: what is done, and what that costs."""
    cause, group = fleet.causes[number], fleet.group_of[number]
    remedy = find_remedy(cause)
    cost = find_cost([remedy])
    key: Key = ()
    if find_section(str(cause.get("code", ""))):
        key = (AGAIN,)
    elif remedy:
        is_same = remedy.get("commands") and not fleet.groups[group].varies
        what = (str(remedy["commands"]), remedy.get("then")) if is_same else (group,)
        key = (EDIT, cost, *what)
    return _Part(key, group, remedy, cost, _is_ours(cause))


def _gather(
    fleet: Fleet, needy: Iterable[int], never: set[int], parts: Mapping[int, _Part]
) -> tuple[list[Fix], dict[int, frozenset[int]]]:
    """Return the fixes, and by host the numbers of those that it lacks; -1 where none is known."""
    numbers: dict[Key, int] = {}
    hosts: list[list[int]] = []
    mended: list[dict[int, None]] = []
    lacking: dict[int, frozenset[int]] = {}
    for host in needy:
        mine = set()
        for cause in fleet.rows[host].causes:
            key = parts[cause].key
            if key == (AGAIN,) and host in never:
                key = (NEVER,)
            number = numbers.setdefault(key, len(numbers)) if key else -1
            if number == len(hosts):
                hosts.append([])
                mended.append({})
            if number >= 0 and number not in mine:
                hosts[number].append(host)
            if number >= 0:
                mended[number][cause] = None
            mine.add(number)
        lacking[host] = frozenset(mine)
    made = [
        _make(fleet, key, [parts[cause] for cause in mended[number]], hosts[number])
        for key, number in numbers.items()
    ]
    return made, lacking


def _make(fleet: Fleet, key: Key, parts: Sequence[_Part], hosts: Iterable[int]) -> Fix:
    groups = {part.group for part in parts}
    ordered = tuple(sorted(groups, key=lambda one: (-len(fleet.groups[one].hosts), one)))
    place = {group: number for number, group in enumerate(ordered)}
    first = sorted(parts, key=lambda one: (place[one.group], *map(str, one.remedy.values())))
    then = dict.fromkeys(str(one.remedy["then"]) for one in first if one.remedy.get("then"))
    cost = max((one.cost for one in parts), key=lambda one: COSTS[one])
    varies = len({str(one.remedy.get("commands")) for one in parts}) > 1
    return Fix(
        str(key[0]),
        ordered,
        cost,
        tuple(then),
        tuple(hosts),
        remedy=first[0].remedy if key[0] == EDIT else {},
        varies=varies,
    )


def _order(
    fixes: Sequence[Fix], lacking: Mapping[int, frozenset[int]]
) -> tuple[list[Fix], tuple[int, ...]]:
    """Return the fixes in the order of a greedy cover, and the hosts that they do not mend."""
    alike: dict[frozenset[int], int] = {}
    for mine in lacking.values():
        alike[mine] = alike.get(mine, 0) + 1
    open_sets = [(set(mine), count) for mine, count in alike.items()]
    alone = {next(iter(mine)): count for mine, count in alike.items() if len(mine) == 1}
    ordered: list[Fix] = []
    done, together = set(), 0
    while open_sets and len(ordered) < _MOST:
        scores = dict(_score(open_sets))
        if not scores:
            break
        best = max(scores, key=lambda one: (scores[one] / COSTS[fixes[one].cost], -one))
        for lacked, _count in open_sets:
            lacked.discard(best)
        together += sum(count for lacked, count in open_sets if not lacked)
        open_sets = [one for one in open_sets if one[0]]
        done.add(best)
        ordered.append(fixes[best]._replace(alone=alone.get(best, 0), together=together))
    return ordered, tuple(host for host, mine in lacking.items() if not mine <= done)


def _score(open_sets: Iterable[tuple[set[int], int]]) -> Iterator[tuple[int, float]]:
    """Yield each fix that is known with its points, before they are divided by its cost."""
    points: dict[int, float] = {}
    for mine, count in open_sets:
        for number in mine:
            points[number] = points.get(number, 0.0) + count / len(mine) ** 2
    return ((number, score) for number, score in points.items() if number >= 0)
