# SPDX-License-Identifier: BSD-2-Clause
"""Write the findings of a check in formats of others: SARIF 2.1.0, and the JSON of InSpec."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from .core.finding import FAIL, UNKNOWN, WAIVED
from .fleet import find_status
from .version import VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .core.adopted import LeftOut

    Data = Mapping[str, Any]

NAME = "mlhost-limits"
_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_AHEAD = ("next_session", "next_restart", "after_boot")
_UNNAMED = "no-cause-named"
_STATUSES = {"pass": "passed", FAIL: "failed", "later": "failed"}


def make_sarif(result: Data, root: str = "") -> dict[str, object]:
    """Return the shortfalls as SARIF 2.1.0 (OASIS, 2020): each cause once, at the line at fault.

    Of a tree that a relative path names, files are named relative to where that is: so they are in
    a pull request.

    :param result: As :func:`make_result` gives it.
    :param root: The tree of an image.
    """
    return _wrap(list(_list_results(result["findings"], root)))


def make_sarif_of_left(left: Iterable[LeftOut], root: str) -> dict[str, object]:
    """Return what no policy can hold of a site's files as SARIF, each at its line."""
    return _wrap([_describe_left(one, root) for one in left])


def _describe_left(one: LeftOut, root: str) -> dict[str, Any]:
    line = {"file": one.at.path, "line": one.at.line, "text": one.at.text}
    told = {"ruleId": "left-out", "level": "warning", "message": {"text": one.reason}}
    return {**told, "locations": [_locate(line, root)]}


def _wrap(told: list[dict[str, Any]]) -> dict[str, object]:
    rules = sorted({one["ruleId"] for one in told})
    driver = {"name": NAME, "version": VERSION, "rules": [{"id": rule} for rule in rules]}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": told}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _list_results(findings: Sequence[Data], root: str) -> Iterator[dict[str, Any]]:
    known = set()
    for finding in findings:
        if not falls_short(finding):
            continue
        for cause in finding["causes"] or [_stand_in(finding)]:
            at = cause.get("at") or {}
            key = (cause["code"], at.get("file"), at.get("line"), cause["text"], finding["waiver"])
            if key not in known:
                known.add(key)
                yield _describe_result(finding, cause, root)


def falls_short(finding: Data) -> bool:
    """Tell whether a finding falls short, now or later, also where a waiver lets it."""
    ahead = [finding[key] for key in _AHEAD]
    return finding["status"] in (FAIL, WAIVED) or FAIL in ahead


def _stand_in(finding: Data) -> dict[str, Any]:
    return {"code": _UNNAMED, "text": _describe_need(finding)}


def _describe_need(finding: Data) -> str:
    seen = finding["reason"] if finding["observed"] is None else finding["observed"]
    bound = "" if finding["bound"] == "value" else f" {finding['bound']}"
    return f"{finding['place']}: {finding['item']}{bound} {seen}, required {finding['required']}"


def _describe_result(finding: Data, cause: Data, root: str) -> dict[str, Any]:
    remedy = cause.get("remedy") or {}
    fix = f"; fix: {remedy['text']}" if remedy.get("text") else ""
    place = {"name": str(finding["item"]), "fullyQualifiedName": str(finding["place"])}
    told: dict[str, Any] = {
        "ruleId": str(cause["code"] or _UNNAMED),
        "level": "error",
        "message": {"text": f"{cause['text']}{fix}"},
        "locations": [{**_locate(cause.get("at"), root), "logicalLocations": [place]}],
    }
    others = [_locate(line, root) for line in cause.get("shadows") or ()]
    if others:
        told["relatedLocations"] = others
    if finding["status"] == WAIVED:
        told["suppressions"] = [{"kind": "external", "justification": str(finding["waiver"])}]
    return told


def _locate(line: Data | None, root: str) -> dict[str, Any]:
    """Return a line of a file as a location; nothing where no line is at fault."""
    if not line or not line["file"]:
        return {}
    file: dict[str, Any] = {"artifactLocation": {"uri": _name_file(str(line["file"]), root)}}
    if int(line.get("line") or 0) > 0:
        text = {"text": str(line["text"])} if line.get("text") else None
        file["region"] = {"startLine": line["line"], **({"snippet": text} if text else {})}
    return {"physicalLocation": file}


def _name_file(path: str, root: str) -> str:
    """Return the URI of a file: relative where the tree is, else with its scheme."""
    name = quote(os.fsencode(os.path.normpath(f"{root}/{path}")))
    return name if root and not os.path.isabs(root) else f"file://{name}"


def make_inspec(result: Data) -> dict[str, object]:
    """Return the findings as InSpec's JSON reporter does: each requirement is a control."""
    controls = [_describe_control(one, str(result["measured"])) for one in result["findings"]]
    profile = {
        "name": NAME,
        "version": VERSION,
        "sha256": str(result["policy"]).partition(":")[2],
        "title": "Limits of training hosts",
        "supports": [],
        "attributes": [],
        "groups": [],
        "controls": controls,
        "status": "loaded",
    }
    kernel = os.uname()
    return {
        "platform": {"name": "linux", "release": kernel.release, "target_id": result["host"]},
        "profiles": [profile],
        "statistics": {"duration": 0.0},
        "version": VERSION,
    }


def _describe_control(finding: Data, measured: str) -> dict[str, Any]:
    status = find_status(finding)
    causes = [str(cause["text"]) for cause in finding["causes"]]
    fixes = [str((cause.get("remedy") or {}).get("text") or "") for cause in finding["causes"]]
    seen = {"status": _STATUSES.get(status, "skipped"), "code_desc": _describe_need(finding)}
    told = "; ".join([*causes, *filter(None, [finding["waiver"]])])
    if status in (UNKNOWN, WAIVED):
        seen["skip_message"] = told or str(finding["reason"]) or "it could not be seen"
    elif status != "pass":
        seen["message"] = told or seen["code_desc"]
    return {
        "id": f"{finding['place']} {finding['item']} {finding['bound']}",
        "title": f"{finding['place']}: {finding['item']}",
        "desc": f"required {finding['required']}",
        "descriptions": [{"label": "fix", "data": fix} for fix in fixes if fix],
        "impact": 0.7,
        "refs": [],
        "tags": {"causes": [str(cause["code"]) for cause in finding["causes"]]},
        "code": "",
        "source_location": {},
        "results": [{**seen, "run_time": 0.0, "start_time": measured}],
    }
