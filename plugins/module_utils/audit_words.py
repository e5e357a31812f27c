# SPDX-License-Identifier: BSD-2-Clause
"""Say what a fleet lacks in the words of its page; the template puts them in their places."""

from __future__ import annotations

import hashlib
import re

from .core.finding import FAIL
from .fleet import UNCHECKED
from .fleet_commands import format_command, list_commands, list_groups
from .fleet_fixes import (
    AGAIN,
    ANEW,
    AT_ONCE,
    COSTS,
    ENDS_WORK,
    NEVER,
    REBOOT,
    RESTART,
    find_remedy,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from .fleet_changes import Changes
    from .fleet_fixes import Fix, Plan
    from .fleet_formats import Beside
    from .fleet_view import CauseGroup, Fleet

_NAMED = 50
"""Hosts named below a cause; the heat map shows them all."""
_COSTS = {
    AT_ONCE: "counts at once",
    ANEW: "next login or job",
    RESTART: "restart",
    ENDS_WORK: "ends running work",
    REBOOT: "reboot",
}


def name_plan(fleet: Fleet, plan: Plan) -> dict[str, object]:
    """Return the numbers of the verdict; ``later`` are hosts that only a boot makes red."""
    rows = fleet.rows
    red = sum(rows[index].status == FAIL for index in plan.needy)
    return {
        "total": len(rows),
        "red": red,
        "later": len(plan.needy) - red,
        "needy": len(plan.needy),
        "green": plan.green,
        "never": len(plan.never),
        "unseen": len(plan.unseen),
        "stuck": len(plan.stuck),
        "left": plan.left,
        "unchecked": sum(row.status == UNCHECKED for row in rows),
        "word": "mended" if plan.unseen else "green",
    }


def format_time(text: str) -> str:
    """Return a time of ISO 8601 as people read it, and any other text as it is."""
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\dZ", text)
    return f"{found[1]} {found[2]} UTC" if found else text


def describe_bar(fleet: Fleet) -> list[dict[str, object]]:
    """Return the shares of the statuses as pieces of a bar that is 1000 wide."""
    pieces, start = [], 0.0
    for status, count in fleet.count_hosts().items():
        width = 1000 * count / max(1, len(fleet.rows))
        if count:
            pieces.append({"status": status, "x": round(start, 1), "width": round(width, 1)})
        start += width
    return pieces


def describe_fixes(fleet: Fleet, plan: Plan, beside: Beside) -> list[dict[str, object]]:
    """Return the fixes as the template shows them, the first first."""
    groups = list_groups(fleet, beside.groups)
    told, before = [], 0
    for fix in plan.fixes:
        causes = [fleet.groups[number] for number in fix.groups]
        told.append(
            {
                **_title(fix, causes[0]),
                "id": _name_fix(fix, causes[0]),
                "kind": fix.kind,
                "cost": fix.cost.replace(" ", "-"),
                "weight": COSTS[fix.cost],
                "cost_text": _COSTS[fix.cost],
                "then": fix.then,
                "command": format_command(fleet, fix, groups, beside.inventory),
                "commands": list_commands(fix.remedy.get("commands")),
                "varies": fix.varies,
                "causes": [{"code": one.code, "text": one.sample["text"]} for one in causes],
                "alone": fix.alone,
                "together": fix.together,
                "before": before,
                **_name_hosts(fleet, fix.hosts),
            }
        )
        before = fix.together
    return told


def _title(fix: Fix, cause: CauseGroup) -> dict[str, object]:
    """Return what a fix is called, the place of its edit, and why it is needed."""
    one = len(fix.hosts) == 1
    hosts = "1 host" if one else f"{len(fix.hosts)} hosts"
    if fix.kind == NEVER:
        title = f"{hosts} {'has' if one else 'have'} never been provisioned: run the playbook"
        return {"title": title, "at": {}, "why": "Nothing states there what the policy asks."}
    if fix.kind == AGAIN:
        title = f"{hosts} {'does' if one else 'do'} not state all of the policy: provision again"
        return {"title": title, "at": {}, "why": cause.sample["text"]}
    text = str(fix.remedy["text"])
    at = _locate(cause.sample.get("at"))
    return {"title": text[:1].upper() + text[1:], "at": at, "why": cause.sample["text"]}


def _name_fix(fix: Fix, cause: CauseGroup) -> str:
    own = (cause.key, fix.then, fix.cost)
    return f"fix-{fix.kind if fix.kind in (NEVER, AGAIN) else _digest(own)}"


def describe_causes(
    fleet: Fleet, groups: Sequence[CauseGroup], plan: Plan
) -> list[dict[str, object]]:
    """Return the causes as the template shows them, each with the fixes that mend it."""
    fixes: dict[int, list[dict[str, object]]] = {}
    for rank, fix in enumerate(plan.fixes, 1):
        for number in fix.groups:
            link = {"rank": rank, "id": _name_fix(fix, fleet.groups[fix.groups[0]])}
            fixes.setdefault(id(fleet.groups[number]), []).append(link)
    return [{**_describe_cause(one, fleet), "fixes": fixes.get(id(one), [])} for one in groups]


def _describe_cause(group: CauseGroup, fleet: Fleet) -> dict[str, object]:
    remedy = find_remedy(group.sample)
    shadows: Any = group.sample.get("shadows")
    return {
        "id": f"cause-{_digest(group.key)}",
        "code": group.code,
        "text": group.sample["text"],
        "at": _locate(group.sample.get("at")),
        "shadows": [one for one in map(_locate, shadows or ()) if one],
        "writer": group.sample.get("writer") or "",
        "remedy": _pick(remedy, "text", "then"),
        "commands": list_commands(remedy.get("commands")),
        "statuses": dict(group.statuses),
        **_name_hosts(fleet, group.hosts),
    }


def describe_changes(changes: Changes | None) -> dict[str, object] | None:
    """Return what differs from the earlier run as the template shows it."""
    if changes is None:
        return None
    kinds = {
        "red": ("Newly red", "fail"),
        "mended": ("No longer red", "pass"),
        "still": ("Still red", "fail"),
        "lost": ("Checked then, not checked now", UNCHECKED),
        "came": ("New in this run", "waived"),
        "gone": ("No longer in this run", "waived"),
    }
    hosts = [
        {"kind": kind, "label": label, "status": status, **_cut(getattr(changes, kind))}
        for kind, (label, status) in kinds.items()
    ]
    causes = [
        {"code": one.code, "text": one.text, "new": _cut(one.new), "mended": _cut(one.mended)}
        for one in changes.causes
    ]
    return {
        "since": format_time(changes.since) or "the earlier run",
        "hosts": hosts,
        "causes": causes,
    }


def _name_hosts(fleet: Fleet, hosts: Iterable[int]) -> dict[str, object]:
    return _cut([fleet.rows[index].host.name for index in hosts])


def _cut(names: Sequence[str]) -> dict[str, object]:
    return {"count": len(names), "names": list(names[:_NAMED])}


def _digest(key: object) -> str:
    """Return a name for the address of a page that is the same in every run."""
    return hashlib.sha256(repr(key).encode("utf-8", "backslashreplace")).hexdigest()[:10]


def _locate(line: object) -> dict[str, str]:
    """Return a declaration as the template shows it, nothing where there is none."""
    return _pick(line, "file", "line", "text") if isinstance(line, dict) else {}


def _pick(data: object, *keys: str) -> dict[str, str]:
    given = data if isinstance(data, dict) else {}
    return {key: str(given.get(key) or "") for key in keys}
