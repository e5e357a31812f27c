# SPDX-License-Identifier: GPL-3.0-or-later
"""What falls short in a tree is SARIF at the line at fault, and InSpec's JSON has every control."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from mlhost_limits import cli
from mlhost_limits.standard_formats import falls_short

from .test_image import lay_out

OURS = "/etc/security/limits.d/90-mlhost.conf"
VENDOR = "/etc/security/limits.d/95-a vendor.conf"
POLICY = {
    "sessions": [{"users": ["root"], "limits": {"nofile": {"soft": 65536}}}],
    "kernel": {"vm.max_map_count": 262144},
}
PUBLISHED = os.environ.get("MLHOST_SCHEMAS", "")
"""A directory with the schemas as they are published: sarif.json of OASIS, hdf.json of MITRE."""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Lay out an image whose vendor's line loses nofile, and which states no sysctl."""
    monkeypatch.chdir(tmp_path)
    lay_out(
        tmp_path / "rootfs",
        {OURS: "root soft nofile 65536\n", VENDOR: "# x\nroot soft nofile 1024\n"},
    )
    (tmp_path / "policy.json").write_text(json.dumps(POLICY))
    return tmp_path


def check(
    capsys: pytest.CaptureFixture[str], kind: str, root: str, policy: object = POLICY
) -> tuple[int, Any]:
    Path("policy.json").write_text(json.dumps(policy))
    words = ["--profile", "none", "--policy", "policy.json", "--service", "sshd"]
    status = cli.main(["check", *words, "--root", root, "--format", kind])
    return status, json.loads(capsys.readouterr().out)


def validate(document: Any, name: str) -> None:
    if PUBLISHED:
        jsonschema.validate(document, json.loads((Path(PUBLISHED) / name).read_text()))


def test_a_line_that_wins_is_told_at_the_line(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, sarif = check(capsys, "sarif", "rootfs")
    validate(sarif, "sarif.json")
    assert (status, sarif["version"]) == (1, "2.1.0")
    (run,) = sarif["runs"]
    by_rule = {one["ruleId"]: one for one in run["results"]}
    assert [one["id"] for one in run["tool"]["driver"]["rules"]] == sorted(by_rule)
    assert len(run["results"]) == len(by_rule) == 2
    line = by_rule.pop(next(one for one in by_rule if one.startswith("pam-")))
    (where,) = line["locations"]
    assert where["physicalLocation"] == {
        "artifactLocation": {"uri": "rootfs/etc/security/limits.d/95-a%20vendor.conf"},
        "region": {"startLine": 2, "snippet": {"text": "root soft nofile 1024"}},
    }
    assert where["logicalLocations"][0] == {
        "name": "nofile",
        "fullyQualifiedName": "session:root@sshd",
    }
    assert "; fix: " in line["message"]["text"]
    beaten = line["relatedLocations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert beaten == f"rootfs{OURS}"
    (unstated,) = by_rule.values()
    assert "physicalLocation" not in unstated["locations"][0]


def test_a_cause_of_many_findings_is_told_once(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    limits = {"nofile": {"soft": 65536}}
    both = {"sessions": [{"users": ["root"], "limits": limits}], "kernel": POLICY["kernel"]}
    Path("rootfs/etc/pam.d/su").write_text("session required pam_limits.so\n")
    Path("policy.json").write_text(json.dumps(both))
    words = ["check", "--profile", "none", "--policy", "policy.json", "--root", "rootfs"]
    words += ["--service", "sshd", "--service", "su"]
    assert cli.main([*words, "--json"]) == 1
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert [one["status"] for one in findings].count("fail") == 3
    assert cli.main([*words, "--format", "sarif"]) == 1
    assert len(json.loads(capsys.readouterr().out)["runs"][0]["results"]) == 2


def test_of_a_tree_by_its_full_path_files_have_their_scheme(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = check(capsys, "sarif", str(tree / "rootfs"))[1]["runs"][0]["results"]
    uris = [
        one["locations"][0].get("physicalLocation", {}).get("artifactLocation", {}).get("uri", "")
        for one in told
    ]
    assert f"file://{tree}/rootfs{VENDOR}".replace(" ", "%20") in uris


@pytest.mark.parametrize(
    ("status", "ahead", "falls"),
    [
        ("pass", "", False),
        ("pass", "pass", False),
        ("pass", "fail", True),
        ("pass", "unknown", False),
        ("unknown", "", False),
        ("unknown", "fail", True),
        ("fail", "pass", True),
        ("waived", "pass", True),
    ],
)
@pytest.mark.parametrize("when", ["next_session", "next_restart", "after_boot"])
def test_what_falls_short_now_or_later_is_a_result(
    when: str, status: str, ahead: str, falls: bool
) -> None:
    later = dict.fromkeys(("next_session", "next_restart", "after_boot"), "")
    assert falls_short({"status": status, **later, when: ahead}) is falls


def test_what_is_waived_is_suppressed(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    waiver = {"what": "vm.max_map_count", "why": "old", "until": "2999-01-01"}
    told = check(capsys, "sarif", "rootfs", {**POLICY, "waivers": [waiver]})[1]
    validate(told, "sarif.json")
    found = [one.get("suppressions") for one in told["runs"][0]["results"]]
    assert [bool(one) for one in found].count(True) == 1
    assert "old" in next(one for one in found if one)[0]["justification"]


def test_inspec_has_a_control_for_each_requirement(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, told = check(capsys, "inspec", "rootfs")
    validate(told, "hdf.json")
    assert status == 1
    (profile,) = told["profiles"]
    assert len(profile["sha256"]) == 64
    controls = {one["id"]: one for one in profile["controls"]}
    assert set(controls) == {"kernel vm.max_map_count value", "session:root@sshd nofile soft"}
    for one in controls.values():
        (result,) = one["results"]
        assert result["status"] == "failed"
        assert result["message"]
        assert one["descriptions"][0]["label"] == "fix"
    assert told["platform"]["target_id"] == ""


def test_what_is_met_and_what_is_not_seen_are_told_apart(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = {"kernel": {"fs.nr_open": 1}, "processes": [{"user": "root", "limits": {"core": 0}}]}
    told = check(capsys, "inspec", "rootfs", policy)[1]
    results = [one["results"][0] for one in told["profiles"][0]["controls"]]
    assert {one["status"] for one in results} == {"skipped"}
    assert all(one["skip_message"] for one in results)
    Path("policy.json").write_text('{"kernel": {"fs.nr_open": 1}}')
    words = ["check", "--profile", "none", "--policy", "policy.json", "--format", "inspec"]
    assert cli.main(words) == 0
    (control,) = json.loads(capsys.readouterr().out)["profiles"][0]["controls"]
    assert control["results"][0]["status"] == "passed"


def test_what_adopt_leaves_out_is_told_at_its_line(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["adopt", "--root", "rootfs", "--format", "sarif"]) == 0
    told = json.loads(capsys.readouterr().out)
    validate(told, "sarif.json")
    places = [one["locations"][0]["physicalLocation"] for one in told["runs"][0]["results"]]
    assert {
        "artifactLocation": {"uri": f"rootfs{OURS}"},
        "region": {"startLine": 1, "snippet": {"text": "root soft nofile 65536"}},
    } in places
    assert cli.main(["adopt", "--root", "none", "--format", "sarif"]) == 2
    assert capsys.readouterr().err == "mlhost-limits: none: is not a directory\n"


@pytest.mark.parametrize("kind", ["sarif", "inspec"])
def test_a_file_whose_name_is_not_text_is_named_by_its_bytes(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    odd = os.fsdecode(b"/etc/security/limits.d/95-\xff\xe9.conf")
    lay_out(tmp_path / "rootfs", {odd: "root soft nofile 1024\n"})
    status, told = check(capsys, kind, "rootfs")
    assert status == 1
    assert json.dumps(told, ensure_ascii=False).encode("utf-8")
    if kind == "sarif":
        places = [one["locations"][0] for one in told["runs"][0]["results"]]
        files = [one["physicalLocation"] for one in places if "physicalLocation" in one]
        uris = [one["artifactLocation"]["uri"] for one in files]
        assert uris == ["rootfs/etc/security/limits.d/95-%FF%E9.conf"]
