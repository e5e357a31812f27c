# SPDX-License-Identifier: BSD-2-Clause
"""Write the results of a fleet host by host: JSON, JUnit XML and CSV, none held in memory whole."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping
from xml.sax.saxutils import escape, quoteattr

from .core.finding import FAIL, LATER, UNKNOWN, WAIVED
from .core.quote import clean
from .core.report import describe_owner
from .core.values import NamedTuple
from .fleet import CHECKED, HostResult, find_status
from .fleet_changes import find_changes
from .fleet_commands import format_command, list_groups
from .fleet_fixes import Plan, plan_fixes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .fleet_changes import Changes
    from .fleet_view import Fleet

FORMAT, VERSION = "mlhost.limits/audit", 1
_COLUMNS = (
    *("host", "place", "item", "bound", "status", "required", "observed", "reason"),
    *("waiver", "cause", "file", "line", "text", "remedy", "owner"),
)
NOTHING = "nothing was asked of it"
"""Why a host without findings is not good."""

_FORMULA = re.compile(r"\s*[=+@\uff0b\uff0d\uff1d\uff20-](?!\d+\Z)|[\t\r\n]")


class Beside(NamedTuple):
    """What a report knows beside its hosts.

    ``inventory`` is what Ansible's ``-i`` was given, and ``groups`` are its groups all of whose
    hosts were asked. ``before`` is how an earlier run found the fleet, ``since`` when that was.
    """

    inventory: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    before: Fleet | None = None
    since: str = ""

    def compare(self, fleet: Fleet) -> Changes | None:
        """Return what differs from the earlier run, or None without one."""
        return find_changes(self.before, fleet, self.since) if self.before else None


ALONE = Beside()


class JsonText:
    """The document of docs/audit.md."""

    def __init__(self, written: str, beside: Beside = ALONE) -> None:
        self._beside = beside
        self._head = {"format": FORMAT, "version": VERSION, "written": written}
        self._mark = "{"

    def start(self) -> str:
        return json.dumps(self._head)[:-1] + ', "hosts": '

    def add(self, host: HostResult) -> str:
        entry = {
            "state": host.state,
            "status": host.status,
            "reason": host.reason,
            "groups": list(host.groups),
            "measured": host.measured,
            "note": host.note,
            "policy": host.policy,
            "findings": list(host.findings),
        }
        text = f"{self._mark}\n{json.dumps(host.name)}: {json.dumps(entry)}"
        self._mark = ","
        return text

    def finish(self, fleet: Fleet) -> str:
        names = [row.host.name for row in fleet.rows]
        causes = [
            {
                **group.sample,
                "statuses": dict(group.statuses),
                "hosts": [names[index] for index in group.hosts],
            }
            for group in fleet.rank_causes()
        ]
        tail: dict[str, object] = {
            "summary": fleet.count_hosts(),
            "fixes": list(_describe_fixes(fleet, plan_fixes(fleet), self._beside)),
            "causes": causes,
        }
        changes = self._beside.compare(fleet)
        if changes:
            tail["changes"] = {
                **changes._asdict(),
                "causes": [one._asdict() for one in changes.causes],
            }
        closed = "}" if self._mark == "," else "{}"
        return f"\n{closed}, {json.dumps(tail)[1:]}\n"


def _describe_fixes(fleet: Fleet, plan: Plan, beside: Beside) -> Iterator[dict[str, object]]:
    """Yield the fixes as plain data, the first first."""
    groups = list_groups(fleet, beside.groups)
    for fix in plan.fixes:
        causes = [fleet.groups[number] for number in fix.groups]
        yield {
            "kind": fix.kind,
            "cost": fix.cost,
            "then": list(fix.then),
            "command": format_command(fleet, fix, groups, beside.inventory),
            "hosts": [fleet.rows[index].host.name for index in fix.hosts],
            "alone": fix.alone,
            "together": fix.together,
            "causes": [{"code": one.code, "text": one.sample["text"]} for one in causes],
        }


class JunitText:
    """A test suite for each host: what is unknown is an error, what is waived is skipped."""

    def start(self) -> str:
        return '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="mlhost.limits">\n'

    def add(self, host: HostResult) -> str:
        cases = list(_describe_cases(host))
        failures = sum("<failure" in case for case in cases)
        errors = sum("<error" in case for case in cases)
        skipped = sum("<skipped" in case for case in cases)
        return (
            f'<testsuite name={_quote(host.name)} tests="{len(cases)}" failures="{failures}"'
            f' errors="{errors}" skipped="{skipped}">\n{"".join(cases)}</testsuite>\n'
        )

    def finish(self, fleet: Fleet) -> str:
        del fleet
        return "</testsuites>\n"


def _describe_cases(host: HostResult) -> Iterator[str]:
    """Yield a host's test cases; one that was not checked has one, which is an error."""
    if host.state != CHECKED or not host.findings:
        told = host.reason or NOTHING
        yield _describe_case(host.name, "check", "error", f"{host.state}: {told}", "")
    for finding in host.findings:
        place = str(finding.get("place"))
        name = f"{place} {finding.get('item')} {finding.get('bound')}"
        observed = finding.get("observed")
        seen = finding.get("reason") if observed is None else f"has {observed}"
        told = f"{seen}, required {finding.get('required')}"
        causes = list(map(_describe_cause, _find_causes(finding)))
        kinds = {FAIL: "failure", LATER: "failure", UNKNOWN: "error", WAIVED: "skipped"}
        status = find_status(finding)
        if status == LATER:
            told += ", but not after a restart or a boot"
        if finding.get("owner"):
            told += f" ({describe_owner(str(finding['owner']))})"
        if status == WAIVED:
            told = str(finding.get("waiver"))
        yield _describe_case(host.name, name, kinds.get(status, ""), told, "\n".join(causes))


def _find_causes(finding: Mapping[str, object]) -> list[Mapping[str, object]]:
    causes = finding.get("causes")
    return causes if isinstance(causes, list) else []


def _describe_cause(cause: Mapping[str, object]) -> str:
    return f"{cause.get('text')}; fix: {_find_remedy(cause)}"


def _find_remedy(cause: Mapping[str, object]) -> str:
    remedy = cause.get("remedy")
    return str(remedy.get("text", "")) if isinstance(remedy, dict) else ""


def _describe_case(host: str, name: str, kind: str, told: str, more: str) -> str:
    start = f"<testcase classname={_quote(host)} name={_quote(name)}"
    if not kind:
        return f"{start}/>\n"
    text = escape(clean(more).replace("\t", " "))
    return f"{start}><{kind} message={_quote(told)}>{text}</{kind}></testcase>\n"


def _quote(text: str) -> str:
    return quoteattr(_flatten(text))


def _flatten(text: str) -> str:
    """Return a text on one line that steers no terminal."""
    return clean(text).replace("\n", " ").replace("\t", " ")


class CsvText:
    """A line for each finding, with its first cause, and one for a host that was not checked."""

    def start(self) -> str:
        return _format_row(_COLUMNS)

    def add(self, host: HostResult) -> str:
        if host.state != CHECKED:
            return _format_row((host.name, "", "", "", host.state, "", "", host.reason))
        if not host.findings:
            return _format_row((host.name, "", "", "", host.status, "", "", NOTHING))
        return "".join(_format_row(_list_cells(host.name, one)) for one in host.findings)

    def finish(self, fleet: Fleet) -> str:
        del fleet
        return ""


def _list_cells(host: str, finding: Mapping[str, object]) -> tuple[object, ...]:
    cause = next(iter(_find_causes(finding)), {})
    at = cause.get("at")
    line = at if isinstance(at, dict) else {}
    keys = ("required", "observed", "reason", "waiver")
    return (
        host,
        *(finding.get(key) for key in ("place", "item", "bound")),
        find_status(finding),
        *(finding.get(key) for key in keys),
        cause.get("code"),
        line.get("file"),
        line.get("line"),
        cause.get("text"),
        _find_remedy(cause) if cause else "",
        finding.get("owner"),
    )


def _format_row(cells: tuple[object, ...]) -> str:
    """Return a line that no spreadsheet takes for a formula."""
    padded = (*cells, *[""] * (len(_COLUMNS) - len(cells)))
    safe = ["" if cell is None else str(cell) for cell in padded]
    safe = [("'" if _FORMULA.match(cell) else "") + _flatten(cell) for cell in safe]
    return str(csv.writer(_Echo(), lineterminator="\n").writerow(safe))


class _Echo:
    """A file that gives back what is written to it."""

    def write(self, text: str) -> str:
        return text
