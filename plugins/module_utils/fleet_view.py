# SPDX-License-Identifier: BSD-2-Clause
"""Put the results of many hosts side by side; what is alike is kept once, causes are counted."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from .core.finding import FAIL, LATER, PASS, UNKNOWN, WAIVED
from .core.values import NamedTuple
from .fleet import HOST_STATUSES, HostResult, find_status, judge_host
from .places import EXPLAINED

TYPE_CHECKING = False
if TYPE_CHECKING:
    Data = Mapping[str, object]

_ORDER = tuple(dict.fromkeys(name.partition(":")[0] for name in EXPLAINED))
_PID = re.compile(r"\bpid \d+|/proc/\d+")
_NUMBER = re.compile(r"\d+")
_LEAST_TO_DRIFT = 3


class Column(NamedTuple):
    """One requirement as the hosts share it: places that differ from host to host are one."""

    place: str
    item: str
    bound: str


class CauseGroup:
    """One cause of shortfalls over all hosts; ``sample`` is the first that was met.

    ``key`` is the same in every run. ``varies`` where hosts need other commands than the sample's.
    """

    def __init__(self, code: str, sample: Data, key: tuple[object, ...] = ()) -> None:
        self.code, self.sample, self.key = code, sample, key
        self.varies = False
        self.statuses: Counter[str] = Counter()
        self.hosts: dict[int, None] = {}

    def add(self, host: int, status: str) -> None:
        """Count a finding of a host."""
        self.hosts[host] = None
        self.statuses[status] += 1


class Row(NamedTuple):
    """One host with its worst status, and for each column that it knows, its findings' numbers.

    ``needs`` are the numbers of the cause groups that must be mended before nothing falls short
    on it, now or after a boot, and ``causes`` those of the causes as the host has them. ``unseen``
    where something could not be seen.
    """

    host: HostResult
    status: str
    cells: Sequence[tuple[int, ...]]
    needs: tuple[int, ...] = ()
    unseen: bool = False
    causes: tuple[int, ...] = ()


class Drift(NamedTuple):
    """A requirement whose value differs: what most hosts have, and who has another."""

    column: int
    usual: str
    hosts: int
    others: Mapping[str, Sequence[int]]


class Fleet:
    """Hosts side by side. Findings and causes that are word for word alike are kept once."""

    def __init__(self) -> None:
        self.columns: list[Column] = []
        self.findings: list[Data] = []
        self.causes: list[Data] = []
        self.groups: list[CauseGroup] = []
        self.group_of: list[int] = []
        self.causes_of: list[tuple[int, ...]] = []
        self.rows: list[Row] = []
        self._column_numbers: dict[object, int] = {}
        self._finding_numbers: dict[object, int] = {}
        self._cause_numbers: dict[object, int] = {}
        self._group_numbers: dict[object, int] = {}
        self._alike: dict[tuple[int, ...], tuple[int, ...]] = {}

    def add(self, host: HostResult) -> None:
        """Take in one host; what it holds beside its findings' numbers is let go."""
        index = len(self.rows)
        cells: dict[int, list[int]] = {}
        causes: set[int] = set()
        found: set[str] = set()
        for finding in host.findings:
            shared, status = find_column(finding), find_status(finding)
            number = self._take(finding, status, index)
            cells.setdefault(
                _number(self._column_numbers, self.columns, shared, shared), []
            ).append(number)
            found.add(status)
            if status in (FAIL, LATER):
                causes.update(self.causes_of[number])
        if not host.findings:
            self._count_unseen(host, index)
        ordered = tuple(tuple(cells.get(number, ())) for number in range(len(self.columns)))
        needs = self._keep(self.group_of[cause] for cause in causes)
        status, kept = judge_host(host.state, found), host._replace(findings=())
        mine = self._keep(causes)
        self.rows.append(Row(kept, status, ordered, needs, UNKNOWN in found, mine))

    def count_hosts(self) -> dict[str, int]:
        """Return how many hosts have each status."""
        found = Counter(row.status for row in self.rows)
        return {status: found[status] for status in HOST_STATUSES}

    def rank_causes(self) -> list[CauseGroup]:
        """Return the causes, what fails on most hosts first."""
        order = (FAIL, UNKNOWN, LATER, WAIVED)
        return sorted(
            self.groups,
            key=lambda group: (
                min(map(order.index, group.statuses)),
                -len(group.hosts),
                group.code,
                str(group.sample["text"]),
            ),
        )

    def find_drift(self) -> list[Drift]:
        """Return the requirements of which most hosts have one value, and some another."""
        return [drift for column in range(len(self.columns)) for drift in self._drift(column)]

    def order_columns(self) -> list[int]:
        """Return the columns' numbers in the order of a report: kernel first, then sessions."""
        return sorted(range(len(self.columns)), key=lambda number: _rank(self.columns[number]))

    def _drift(self, column: int) -> Iterator[Drift]:
        values: dict[str, list[int]] = {}
        for index, row in enumerate(self.rows):
            cell = row.cells[column] if column < len(row.cells) else ()
            seen = {self.findings[number].get("observed") for number in cell}
            if len(seen) == 1 and None not in seen:
                values.setdefault(str(seen.pop()), []).append(index)
        total = sum(map(len, values.values()))
        usual = max(values, key=lambda value: len(values[value]), default="")
        if total >= _LEAST_TO_DRIFT and len(values) > 1 and len(values[usual]) * 2 > total:
            others = {value: hosts for value, hosts in values.items() if value != usual}
            yield Drift(column, usual, len(values[usual]), others)

    def _take(self, finding: Data, status: str, host: int) -> int:
        """Return the number of a finding, counting its causes."""
        causes: Sequence[Data] = ()
        if status != PASS:
            causes = finding.get("causes") or [_stand_in(finding, status)]  # type: ignore[assignment]
        numbers = tuple(self._take_cause(cause) for cause in causes)
        for number in numbers:
            self.groups[self.group_of[number]].add(host, status)
        kept = _lean(finding, status)
        known = len(self.findings)
        number = _number(self._finding_numbers, self.findings, kept, (*kept.values(), numbers))
        if number == known:
            self.causes_of.append(numbers)
        return number

    def _take_cause(self, cause: Data) -> int:
        known, key = len(self.causes), json.dumps(cause, sort_keys=True, default=str)
        number = _number(self._cause_numbers, self.causes, cause, key)
        if number == known:
            alike = ("group", *_find_group(cause))
            group = CauseGroup(str(cause.get("code", "")), cause, alike)
            self.group_of.append(_number(self._group_numbers, self.groups, group, alike))
            same = self.groups[self.group_of[number]]
            same.varies |= _find_commands(same.sample) != _find_commands(cause)
        return number

    def _keep(self, numbers: Iterable[int]) -> tuple[int, ...]:
        """Return numbers in order, each once; of those that many hosts have, the same tuple."""
        ordered = tuple(sorted(set(numbers)))
        return self._alike.setdefault(ordered, ordered)

    def _count_unseen(self, host: HostResult, index: int) -> None:
        reason = host.reason or "nothing was asked of it"
        cause = {"code": host.state, "text": reason}
        self.groups[self.group_of[self._take_cause(cause)]].add(index, UNKNOWN)


def _number(numbers: dict[object, int], kept: list[Any], value: object, key: object) -> int:
    """Return the place of a value in a list, which takes it in where its key is new."""
    number = numbers.setdefault(key, len(kept))
    if number == len(kept):
        kept.append(value)
    return number


def find_column(finding: Data) -> Column:
    """Return the requirement that a finding answers, its place as hosts share it."""
    place = share_place(str(finding.get("place", "")))
    return Column(place, str(finding.get("item", "")), str(finding.get("bound", "")))


def share_place(place: str) -> str:
    """Return a place without what differs from host to host: ``container:docker/*``."""
    kind, colon, rest = place.partition(":")
    if kind == "session":
        user, sign, way = rest.rpartition("@")
        return place if user == "root" else f"session:*{sign}{way}"
    if kind == "container":
        return f"container:{rest.partition('/')[0]}/*"
    if kind == "process" and rest[:1].isdigit():
        return "process:*"
    if kind == "service" and "@" in rest:
        return f"service:{rest.partition('@')[0]}@*"
    return f"{kind}{colon}{rest}"


def _rank(column: Column) -> tuple[int, str, str, bool]:
    kind = column.place.partition(":")[0]
    place = _ORDER.index(kind) if kind in _ORDER else len(_ORDER)
    return (place, column.place, column.item, column.bound == "hard")


def _lean(finding: Data, status: str) -> dict[str, object]:
    """Return a finding without its causes; what passes needs no process ids."""
    keys = ("place", "item", "bound", "required", "observed", "how", "reason", "waiver", "owner")
    ahead = ("next_session", "next_restart", "after_boot")
    kept = {key: finding.get(key) or "" for key in keys + ahead}
    if finding.get("observed") is None:
        kept["observed"] = None
    if status == PASS:
        kept["how"] = _PID.sub(lambda match: _NUMBER.sub("PID", match[0]), str(kept["how"]))
    return {"status": str(finding["status"]), **kept}


def _stand_in(finding: Data, status: str) -> dict[str, object]:
    """Return what to tell of a shortfall whose cause is not known."""
    place, item = share_place(str(finding.get("place", ""))), finding.get("item")
    if status == UNKNOWN or finding.get("observed") is None:
        return {"code": "unseen", "text": str(finding.get("reason") or f"{place}: {item} unseen")}
    told = f"{place}: {item} {finding.get('observed')}, required {finding.get('required')}"
    return {"code": "no cause named", "text": told}


def _find_group(cause: Data) -> tuple[object, ...]:
    """Return what makes causes of two hosts the same: the line, or the text but for numbers."""
    at = cause.get("at")
    if isinstance(at, dict):
        return (cause.get("code"), at.get("file"), at.get("line"), at.get("text"))
    return (cause.get("code"), _NUMBER.sub("#", str(cause.get("text"))))


def _find_commands(cause: Data) -> object:
    remedy = cause.get("remedy")
    return remedy.get("commands") if isinstance(remedy, dict) else None


def summarize(fleet: Fleet, most: int = 5) -> str:
    """Return the fleet in a few lines: hosts by status, and the causes that most of them have."""
    counts = fleet.count_hosts()
    told = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    lines = [f"{_count(len(fleet.rows))}: {told}"]
    for group in islice(fleet.rank_causes(), most):
        lines.append(f"{_count(len(group.hosts))}: {group.sample['text']}")
    left = len(fleet.groups) - most
    if left > 0:
        lines.append(f"and {left} other cause{'s' if left > 1 else ''}")
    return "\n".join(lines)


def _count(hosts: int) -> str:
    return "1 host" if hosts == 1 else f"{hosts} hosts"
