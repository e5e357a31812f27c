# SPDX-License-Identifier: GPL-3.0-or-later
"""Every format holds every host and finding, and no text of a host breaks out of it."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest
from mlhost_limits.audit_files import write_reports
from mlhost_limits.fleet import HostResult, read_host
from mlhost_limits.fleet_formats import Beside, CsvText, JsonText, JunitText
from mlhost_limits.fleet_view import Fleet

from tests.bench.fleet import simulate

DOCS = Path(__file__).parents[2] / "docs"
EVIL = '</script>"&\x00\x1b[31m\n,=1+1'
CAUSE = {
    "code": "pam-user-beats-wildcard",
    "text": f"a beats b {EVIL}",
    "at": {"file": "/etc/a", "line": 3, "text": "x"},
    "remedy": {"text": "mend it"},
}


def find(status: str, **more: object) -> dict[str, object]:
    finding = {"status": status, "place": "kernel", "item": "fs.file-max", "bound": "value"}
    return {**finding, "required": "5", "observed": "1", "causes": [], **more}


FINDINGS = [
    find("pass", observed="-5"),
    find("fail", causes=[CAUSE], owner="bob"),
    find("unknown", observed=None, reason="no Docker"),
    find("pass", after_boot="fail", causes=[{"text": "no line states it"}]),
    find("waived", waiver="waived until 2026-12-31: known"),
]
HOSTS = [
    read_host("a", {"findings": FINDINGS, "measured": "2026-11-30T12:00:00Z"}, ("gpu",)),
    read_host(EVIL, {"unreachable": True, "msg": "no route"}),
    read_host("empty", {"findings": []}),
]


def write(text: JsonText | JunitText | CsvText, hosts: list[HostResult]) -> str:
    fleet = Fleet()
    parts = [text.start()]
    for host in hosts:
        fleet.add(host)
        parts.append(text.add(host))
    return "".join([*parts, text.finish(fleet)])


def test_json_is_a_document_of_its_own() -> None:
    document = json.loads(write(JsonText("2026-11-30T12:00:00Z"), HOSTS))
    assert (document["format"], document["version"]) == ("mlhost.limits/audit", 1)
    assert list(document["hosts"]) == ["a", EVIL, "empty"]
    assert document["hosts"]["a"]["findings"] == FINDINGS
    assert document["hosts"][EVIL]["state"] == "unreachable"
    assert document["summary"]["unchecked"] == 1
    assert document["causes"][0]["hosts"] == ["a"]
    assert document["causes"][0]["statuses"] == {"fail": 1}
    assert "changes" not in document
    fix = document["fixes"][0]
    assert (fix["kind"], fix["hosts"], fix["alone"], fix["command"]) == ("edit", ["a"], 0, "")


@pytest.mark.slow
def test_json_keeps_to_its_schema() -> None:
    schema = json.loads((DOCS / "audit.schema.json").read_text())
    hosts = [read_host(name, result) for name, result in simulate(250)]
    before = Fleet()
    before.add(read_host("gpu00001", {"findings": []}))
    compared = JsonText("2026-11-30T12:00:00Z", Beside((), (), before, "2026-11-29T12:00:00Z"))
    document = json.loads(write(compared, hosts))
    jsonschema.validate(document, schema)
    assert document["fixes"][0]["together"] > 0
    assert document["changes"]["since"] == "2026-11-29T12:00:00Z"
    for some in (hosts, []):
        jsonschema.validate(json.loads(write(JsonText("2026-11-30T12:00:00Z"), some)), schema)
    wrong = json.loads(write(JsonText("yesterday"), hosts))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, schema)


def test_json_of_no_host_is_whole() -> None:
    assert json.loads(write(JsonText("now"), []))["hosts"] == {}


def test_junit_has_a_suite_for_each_host() -> None:
    suites = ElementTree.fromstring(write(JunitText(), HOSTS)).findall("testsuite")
    counts = [
        [one.get(key) for key in ("tests", "failures", "errors", "skipped")] for one in suites
    ]
    assert counts == [["5", "2", "1", "1"], ["1", "0", "1", "0"], ["1", "0", "1", "0"]]
    failure = suites[0].find("testcase/failure")
    assert failure is not None
    whose = "bob: own file or process; the node is not at fault"
    assert failure.get("message") == f"has 1, required 5 ({whose})"
    assert "mend it" in str(failure.text)
    assert [one.get("message") for one in suites[0].iter("error")] == ["no Docker, required 5"]
    assert [one.get("message") for one in suites[1].iter("error")] == ["unreachable: no route"]
    later = suites[0].findall("testcase/failure")[1]
    assert str(later.get("message")).endswith("but not after a restart or a boot")


def test_csv_has_a_line_for_each_finding() -> None:
    lines = list(csv.DictReader(io.StringIO(write(CsvText(), HOSTS))))
    assert [line["status"] for line in lines] == [
        "pass",
        "fail",
        "unknown",
        "later",
        "waived",
        "unreachable",
        "unknown",
    ]
    assert lines[-1]["reason"] == "nothing was asked of it"
    assert (lines[1]["file"], lines[1]["line"], lines[1]["remedy"]) == ("/etc/a", "3", "mend it")
    assert lines[0]["observed"] == "-5"
    assert [line["owner"] for line in lines[:2]] == ["", "bob"]


@pytest.mark.parametrize("text", ["=1+1", "+cmd|x", "-2+3", "@SUM(A1)", "\t=1"])
def test_csv_holds_no_formula(text: str) -> None:
    host = read_host(text, {"unreachable": True, "msg": "m"})
    (line,) = list(csv.DictReader(io.StringIO(write(CsvText(), [host]))))
    assert line["host"] == f"'{text}".replace("\t", " ")


ODD = "".join(map(chr, [*range(32), *range(127, 160)])) + "\u202a\u202e\u2066\u2069\u200f\ud800"


@pytest.mark.parametrize("format_name", ["html", "junit", "csv"])
def test_no_control_character_is_written(format_name: str, tmp_path: Path) -> None:
    """What a host says steers no terminal, through the writer of the files."""
    cause = {
        "code": f"c{ODD}",
        "text": f"t{ODD}",
        "at": {"file": ODD, "line": 3, "text": ODD},
        "writer": ODD,
        "remedy": {"text": ODD, "then": ODD, "commands": [["a", ODD]]},
    }
    odd = dict.fromkeys(("place", "item", "bound", "required", "reason", "owner"), f"x{ODD}")
    findings = [find(status, **{**odd, "causes": [cause]}) for status in ("fail", "unknown")]
    hosts = [
        HostResult(f"h{ODD}", "checked", "", (f"g{ODD}",), findings, ODD, ODD),
        HostResult(f"i{ODD}", "crashed", ODD),
    ]
    words = {"title": ODD, "written": ODD}
    _, (path,) = write_reports(hosts, tmp_path, "audit", [format_name], words)
    text = Path(path).read_bytes().decode("utf-8")
    assert not set(text) & (set(ODD) - set("\n\t"))
    assert not re.search(r"\\u(?:00[01][0-8b-f]|007f|00[89]|20[26]|d8)", text)
    assert "\\ud800" not in text


@pytest.mark.parametrize(
    "start", ["=", "+", "-", "@", "\t", "\r", "\n", "\r=", " =", "\uff1d", "\0="]
)
def test_csv_marks_every_start_of_a_formula(start: str) -> None:
    host = HostResult("a", "crashed", f"{start}1+1\n=2")
    text = write(CsvText(), [host])
    (line,) = list(csv.DictReader(io.StringIO(text)))
    assert line["reason"][0] in "'?"
    assert text.count("\n") == 2


def test_causes_that_are_no_list_are_none() -> None:
    host = HostResult("a", "checked", findings=[find("fail", causes=None)])
    assert "<failure" in write(JunitText(), [host])
