# SPDX-License-Identifier: BSD-2-Clause
"""Gather what the script of the page needs: texts once each, and numbers that point to them."""

from __future__ import annotations

import json
from collections import Counter

from .core.quote import clean_all
from .fleet import HOST_STATUSES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from .fleet import HostResult
    from .fleet_fixes import Plan
    from .fleet_view import CauseGroup, Fleet


def gather(fleet: Fleet, ranked: list[CauseGroup], plan: Plan) -> dict[str, object]:
    """Return the data of the script.

    :param ranked: The causes in the order of the page.
    """
    texts: dict[str, int] = {}

    def number(text: object) -> int:
        return texts.setdefault(str(text), len(texts))

    order = fleet.order_columns()
    rank = {id(group): place for place, group in enumerate(ranked)}
    groups = sorted({name for row in fleet.rows for name in row.host.groups})
    findings = [
        [*(number(value) if value is not None else -1 for value in finding.values()), list(causes)]
        for finding, causes in zip(fleet.findings, fleet.causes_of)
    ]
    causes = [
        [rank[id(fleet.groups[group])], number(json.dumps(clean_all(cause)))]
        for cause, group in zip(fleet.causes, fleet.group_of)
    ]
    return {
        "statuses": list(HOST_STATUSES),
        "columns": [list(fleet.columns[column]) for column in order],
        "groups": groups,
        "findings": findings,
        "causes": causes,
        "cause_hosts": [list(group.hosts) for group in ranked],
        "fix_hosts": [list(fix.hosts) for fix in plan.fixes],
        "stuck": list(plan.stuck),
        "hosts": list(_list_hosts(fleet, order, groups, number)),
        "drift": _describe_drift(fleet, order),
        "texts": list(texts),
    }


def _list_hosts(
    fleet: Fleet, order: list[int], groups: list[str], number: Callable[[object], int]
) -> Iterator[list[object]]:
    """Yield each host with its status, groups, texts and cells."""
    places = {name: place for place, name in enumerate(groups)}
    policies = Counter(row.host.policy for row in fleet.rows if row.host.policy)
    usual = next(iter(dict(policies.most_common(1))), "")
    for row in fleet.rows:
        host = row.host
        yield [
            host.name,
            HOST_STATUSES.index(row.status),
            [places[name] for name in host.groups],
            *(number(text) for text in (host.reason, host.measured, _note(host, usual))),
            [_cell(row.cells, column) for column in order],
        ]


def _note(host: HostResult, usual: str) -> str:
    """Return what is odd about a host's result: its clock, or what it was judged by."""
    is_odd = host.policy not in ("", usual)
    told = "it was judged by another policy than most hosts" if is_odd else ""
    return "; ".join(filter(None, (host.note, told)))


def _cell(cells: Any, column: int) -> object:
    """Return a finding's number, a list of several, or 0 for none; numbers begin at 1."""
    found = cells[column] if column < len(cells) else ()
    return [number + 1 for number in found] if len(found) > 1 else found[0] + 1 if found else 0


def _describe_drift(fleet: Fleet, order: list[int]) -> list[object]:
    return [
        [order.index(one.column), one.usual, one.hosts, sorted(one.others.items())]
        for one in fleet.find_drift()
    ]
