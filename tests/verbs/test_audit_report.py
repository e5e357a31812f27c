# SPDX-License-Identifier: GPL-3.0-or-later
"""``report`` makes a page of files with results; no file that is not ours is ever replaced."""

from __future__ import annotations

import csv
import errno
import json
import os
import signal
from pathlib import Path

import pytest
from mlhost_limits import cli
from mlhost_limits.fleet import STATES

FINDING = {
    "status": "pass",
    "place": "kernel",
    "item": "fs.file-max",
    "bound": "value",
    "required": "5",
    "observed": "9",
    "how": "",
    "reason": "",
    "causes": [],
}
GOOD = {"findings": [FINDING], "measured": "2026-11-30T12:00:00Z"}
BAD = {"findings": [{**FINDING, "status": "fail", "observed": "1"}]}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(path: Path, content: object) -> str:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path.name


def read(path: Path) -> dict[str, str]:
    return {name: one["state"] for name, one in json.loads(path.read_text())["hosts"].items()}


def test_a_page_is_made_of_results_however_they_came(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [
        put(folder / "a.json", {"format": "mlhost.limits/check", "host": "node1", **GOOD}),
        put(folder / "node2.json", {"changed": False, **GOOD}),
        put(folder / "c.json", {"host": "", **GOOD}),
        put(folder / "gone.json", {"unreachable": True, "msg": "no route"}),
    ]
    assert cli.main(["report", *files, "-o", "out.json"]) == 1  # One could not be reached.
    assert read(folder / "out.json") == {
        "node1": "checked",
        "node2": "checked",
        "c": "checked",
        "gone": "unreachable",
    }
    assert cli.main(["report", "out.json", "--title", "<All>"]) == 1
    page = (folder / "mlhost-limits-report.html").read_text()
    assert "node2" in page
    assert "<title>&lt;All&gt;</title>" in page
    assert "written to mlhost-limits-report.html" in capsys.readouterr().out


@pytest.mark.parametrize(("result", "status"), [(GOOD, 0), (BAD, 1)])
def test_the_status_says_whether_a_host_falls_short(
    folder: Path, result: object, status: int
) -> None:
    assert cli.main(["report", put(folder / "a.json", result)]) == status


def test_every_format_lies_beside_the_page(folder: Path) -> None:
    put(folder / "a.json", GOOD)
    words = ["report", "a.json", "-o", "p.html", "--format", "html,json", "--format", "csv,junit"]
    for _again in range(2):  # The second time, all that is replaced is ours.
        assert cli.main(words) == 0
    assert {one.name for one in folder.glob("p.*")} == {"p.html", "p.json", "p.csv", "p.xml"}


def test_a_folder_holds_a_file_for_each_host(folder: Path) -> None:
    (folder / "hosts").mkdir()
    put(folder / "hosts/a.json", GOOD)
    put(folder / "hosts/b.json", GOOD)
    assert cli.main(["report", "hosts", "-o", "all.json"]) == 0
    assert set(read(folder / "all.json")) == {"a", "b"}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "bad.json: is not JSON: "),
        ("[1]", "bad.json: is neither a result of the check nor a report"),
        ("{}", "bad.json: is neither a result of the check nor a report"),
        ("[" * 100_000, "bad.json: is not JSON: "),
        ('{"findings": []}', "bad.json: has no finding of bad: nothing was asked of it"),
        ('{"findings": 1}', "bad.json: findings: is 1; a list is accepted"),
        (json.dumps({"host": "a", **GOOD}), "bad.json: is of the host a, and so is a.json"),
        ('{"format": "mlhost.limits/audit", "version": 9}', "bad.json: is a document of version 9"),
        (
            json.dumps({"format": "mlhost.limits/preflight", "version": 1, **GOOD}),
            "bad.json: is neither a result of the check nor a report",
        ),
        (json.dumps({"format": None, **GOOD}), "bad.json: is neither a result of the check"),
        (json.dumps({"format": [], **GOOD}), "bad.json: is neither a result of the check"),
        (json.dumps({"version": True, **GOOD}), "bad.json: is a result of version True"),
        ('{"findings": [{"status": NaN}]}', "bad.json: is not JSON: NaN is not a number of JSON"),
        ('{"findings": [], "a": 1e999}', "bad.json: is not JSON: a number is too large"),
    ],
)
def test_a_bad_file_is_told_and_never_left_out(
    folder: Path, content: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [put(folder / "a.json", GOOD), put(folder / "bad.json", content)]
    assert cli.main(["report", *files, "-o", "out.json"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"mlhost-limits: {told}")
    states = read(folder / "out.json")
    assert len(states) == 2
    assert sorted(states.values()) in (["checked", "garbled"], ["checked", "checked"])
    assert cli.main(["report", *files, "-o", "out.csv"]) == 2
    with open(folder / "out.csv", newline="") as file:
        rows = list(csv.reader(file))
    assert {len(row) for row in rows} == {len(rows[0])}
    assert len({row[0] for row in rows[1:]}) == 2


def test_the_hosts_of_a_report_are_judged_as_results_are(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = {"state": "checked", **GOOD}
    hosts = {
        "good": whole,
        "old": {**whole, "measured": "2020-01-01T00:00:00+00:00"},
        "../../etc/passwd": whole,
        "": whole,
        "a\x1b\u202e": whole,
        "groups": {**whole, "groups": 5},
        "state": {**whole, "state": ["checked"]},
        "finding": {**whole, "findings": [{**FINDING, "observed": []}]},
        "null": None,
    }
    head = {"format": "mlhost.limits/audit", "version": 1}
    assert cli.main(["report", put(folder / "a.json", {**head, "hosts": hosts}), "-o", "o.json"])
    told = [one.partition(": ")[2] for one in capsys.readouterr().err.splitlines()]
    assert sorted(told) == [
        "a.json: hosts.finding: findings[1].observed: is []; a text or null is accepted",
        "a.json: hosts.groups: groups: is 5; a list of texts is accepted",
        f"a.json: hosts.state: state: is ['checked']; one of {', '.join(STATES)} is accepted",
        "a.json: hosts: '' is not the name of a host",
        "a.json: hosts: '../../etc/passwd' is not the name of a host",
        "a.json: hosts: 'a\\x1b\\u202e' is not the name of a host",
    ]
    states = read(folder / "o.json")
    assert len(states) == len(hosts)
    assert [states[one] for one in ("good", "old", "null")] == ["checked", "stale", "missing"]
    assert cli.main(["report", "a.json", "-o", "o.json", "--max-age", "87600"]) == 2
    assert read(folder / "o.json")["old"] == "checked"


def test_where_no_file_is_a_result_nothing_is_written(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(folder / "pipe")
    assert cli.main(["report", "pipe", "no.json", put(folder / "x", "")]) == 2
    told = capsys.readouterr().err.splitlines()
    assert [one.partition(": ")[2] for one in told] == [
        "pipe: is not a regular file, and holds no HOST.json",
        "no.json: No such file or directory",
        "x: is not JSON: Expecting value: line 1 column 1 (char 0)",
        "no report was written",
    ]
    assert not list(folder.glob("*.html"))


@pytest.mark.parametrize(
    ("name", "words", "told"),
    [
        (
            "mine.html",
            ["-o", "mine.html"],
            "mine.html: exists and is not a report of mlhost-limits",
        ),
        ("mine.csv", ["-o", "mine.html", "--format", "html,csv"], "mine.csv: exists"),
        ("x", ["-o", "x/out.html"], "--output: x is not a directory"),
        ("x", ["-o", "/dev/null"], "--output: /dev/null is not a regular file"),
        ("x", ["-o", "-"], "--output: - is not a regular file"),
        (
            "x",
            ["--format", "pdf,html,doc"],
            "--format: 'pdf' is not a format; accepted are html, json",
        ),
    ],
)
def test_what_is_not_ours_is_never_replaced(
    folder: Path, name: str, words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    put(folder / name, "what somebody wrote")
    put(folder / "a.json", GOOD)
    before = set(os.listdir(folder))
    assert cli.main(["report", "a.json", *words]) == 2
    assert capsys.readouterr().err.startswith(f"mlhost-limits: {told}")
    assert set(os.listdir(folder)) == before
    assert (folder / name).read_text() == "what somebody wrote"


def test_a_new_page_has_the_mode_of_the_old_one(folder: Path) -> None:
    put(folder / "a.json", GOOD)
    page = folder / "out.html"
    old = os.umask(0o027)
    try:
        assert cli.main(["report", "a.json", "-o", page.name]) == 0
    finally:
        os.umask(old)
    assert page.stat().st_mode & 0o777 == 0o640
    page.chmod(0o604)
    assert cli.main(["report", "a.json", "-o", page.name]) == 0
    assert page.stat().st_mode & 0o777 == 0o604
    assert {path.name for path in folder.iterdir()} == {"a.json", page.name}


def test_who_may_write_in_the_folder_leads_the_page_nowhere_else(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They exchange the new file, and then the folder, for links to others."""
    other = folder / "other"
    other.mkdir()
    (other / "out.html").write_text("what somebody wrote")
    shared = folder / "shared"
    shared.mkdir()

    def swap(_page: object) -> str:
        (new,) = shared.glob(".out.html.*")
        new.unlink()
        new.symlink_to(other / "out.html")
        shared.rename(folder / "away")
        shared.symlink_to(other)
        return "<html>"

    monkeypatch.setattr("mlhost_limits.audit_files.PageText.start", swap)
    assert cli.main(["report", put(folder / "a.json", GOOD), "-o", "shared/out.html"]) == 0
    assert [path.name for path in other.iterdir()] == ["out.html"]
    assert (other / "out.html").read_text() == "what somebody wrote"
    assert (folder / "away/out.html").is_symlink()


def test_two_runs_stand_side_by_side(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(folder / "a.json", BAD)
    assert cli.main(["report", "a.json", "-o", "before.json"]) == 1
    put(folder / "a.json", GOOD)
    assert cli.main(["report", "a.json", "--previous", "before.json", "-o", "now.json"]) == 0
    assert json.loads((folder / "now.json").read_text())["changes"]["mended"] == ["a"]
    assert cli.main(["report", "a.json", "--previous", "a.json", "-o", "no.json"]) == 2
    assert "a.json: is not a document of an audit" in capsys.readouterr().err
    assert not (folder / "no.json").exists()


def test_a_disk_that_is_full_is_told_with_the_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("mlhost_limits.audit_files.os.fsync", fail)
    assert cli.main(["report", put(folder / "a.json", GOOD), "-o", "p.html"]) == 2
    assert capsys.readouterr().err == "mlhost-limits: p.html: No space left on device\n"
    assert [one.name for one in folder.iterdir()] == ["a.json"]


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_signal_leaves_no_half_of_a_report(
    folder: Path, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The handlers are as they were before."""
    before = signal.signal(number, signal.SIG_DFL)
    monkeypatch.setattr(
        "mlhost_limits.audit_files.os.fsync", lambda _handle: os.kill(os.getpid(), number)
    )
    try:
        with pytest.raises(SystemExit) as stopped:
            cli.main(["report", put(folder / "a.json", GOOD), "-o", "p.html"])
        assert (stopped.value.code, signal.getsignal(number)) == (128 + number, signal.SIG_DFL)
    finally:
        signal.signal(number, before)
    assert [one.name for one in folder.iterdir()] == ["a.json"]
