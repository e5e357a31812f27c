# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook audit puts every host on the page: checked, unreachable, crashed and garbled."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

HOSTS = """
[gpu]
here ansible_connection=local ansible_python_interpreter=/usr/bin/python3
gone ansible_host=127.0.0.1 ansible_port=1
[cpu]
crash ansible_connection=local ansible_python_interpreter=/no/such/python
garbage ansible_connection=local ansible_python_interpreter={folder}/garbage
"""
POLICY = {"kernel": {"fs.file-max": 1, "kernel.pid_max": 10**12}}


def play(folder: Path, *words: str, **more: object) -> subprocess.CompletedProcess[str]:
    given = {"profile": "none", "policy": POLICY, **more}
    words_of = {f"mlhost_limits_{name}": value for name, value in given.items()}
    command = ["ansible-playbook", "-i", "hosts", "mlhost.limits.audit", "-e", json.dumps(words_of)]
    environment = {**os.environ, "PWD": str(folder), "ANSIBLE_FORCE_COLOR": "0"}
    return subprocess.run(
        [*command, *words], cwd=folder, capture_output=True, text=True, env=environment
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "hosts").write_text(HOSTS.format(folder=tmp_path))
    (tmp_path / "garbage").write_text('#!/bin/sh\necho \'{"findings": [{"sta\'\n')
    (tmp_path / "garbage").chmod(0o755)
    return tmp_path


def test_every_host_is_in_the_document(folder: Path) -> None:
    done = play(folder, audit_formats=["html", "json", "junit", "csv"])
    assert done.returncode == 2, done.stdout + done.stderr
    document = json.loads((folder / "mlhost-limits-audit.json").read_text())
    hosts = document["hosts"]
    assert {name: host["state"] for name, host in hosts.items()} == {
        "here": "checked",
        "gone": "unreachable",
        "crash": "crashed",
        "garbage": "crashed",
    }
    assert "Connection refused" in hosts["gone"]["reason"]
    assert "/no/such/python" in hosts["crash"]["reason"]
    assert hosts["gone"]["groups"] == ["gpu"]
    assert document["summary"]["unchecked"] == 3
    assert "4 hosts: 1 fail, 3 unchecked" in done.stdout + done.stderr
    assert sorted(one.suffix for one in folder.glob("mlhost-limits-audit.*")) == [
        ".csv",
        ".html",
        ".json",
        ".xml",
    ]


def test_fail_on_decides_the_exit_status(folder: Path) -> None:
    assert play(folder, fail_on="never").returncode == 0
    easy = {"kernel": {"fs.file-max": 1}}
    done = play(folder, "--limit", "here", policy=easy, audit_dest="limits.html")
    assert done.returncode == 0, done.stdout
    assert (folder / "limits.html").exists()
    assert (folder / "limits.json").exists()


def test_two_runs_are_compared_and_the_command_names_the_inventory(folder: Path) -> None:
    assert play(folder, "--limit", "here").returncode == 2
    again = {"audit_previous": "mlhost-limits-audit.json", "fail_on": "never"}
    easy = {"kernel": {"fs.file-max": 1}}
    done = play(folder, "--limit", "here", policy=easy, **again)
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads((folder / "mlhost-limits-audit.json").read_text())
    changes = document["changes"]
    assert (changes["mended"], changes["lost"]) == ([], ["here"]), (
        "less is asked: nothing is mended"
    )
    assert document["fixes"] == []
    assert play(folder, "--limit", "here", **again).returncode == 0
    document = json.loads((folder / "mlhost-limits-audit.json").read_text())
    assert document["changes"]["red"] == ["here"]
    fix = document["fixes"][0]
    assert fix["hosts"] == ["here"]
    assert f" -i {folder}/hosts --limit here" in fix["command"]


def test_the_printed_command_mends_the_hosts_that_it_names(folder: Path) -> None:
    """Quotes, braces of a shell and an option of the module's own survive Ansible."""
    results = folder / "results"
    results.mkdir()
    script = f"""printf '%s|' "it's" '"' ${{HOME:+a}} creates=no > {folder}/mended; echo '\\'"""
    for name, short in (("here", True), ("crash", False)):
        remedy = {"text": "mend it", "commands": [["sh", "-c", script]]}
        cause = {"code": "x", "text": "x", "remedy": remedy}
        finding = {"status": "fail" if short else "pass", "item": "a", "causes": [cause] * short}
        (results / f"{name}.json").write_text(json.dumps({"findings": [finding]}))
    report(folder, f"results={results} dest={folder}/page.html")
    (fix,) = json.loads((folder / "page.json").read_text())["fixes"]
    environment = {**os.environ, "ANSIBLE_INVENTORY": str(folder / "hosts")}
    done = subprocess.run(
        ["sh", "-c", fix["command"]], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (folder / "mended").read_text() == "it's|\"|a|creates=no|"


def report(folder: Path, words: str) -> subprocess.CompletedProcess[str]:
    command = ["ansible", "localhost", "-m", "mlhost.limits.report", "-a", words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_results_that_nodes_left_are_put_together(folder: Path) -> None:
    results = folder / "results"
    results.mkdir()
    finding = {"status": "pass", "place": "kernel", "item": "a", "bound": "value", "observed": "1"}
    whole = {"findings": [finding], "measured": "2999-01-01T00:00:00Z"}
    (results / "ahead.json").write_text(json.dumps(whole))
    (results / "cut.json").write_text(json.dumps(whole)[:40])
    done = report(folder, f"results={results} dest={folder}/page.html")
    assert "2 hosts: 1 unchecked, 1 pass" in done.stdout, done.stdout + done.stderr
    hosts = json.loads((folder / "page.json").read_text())["hosts"]
    assert hosts["ahead"]["note"] == "its clock is ahead: it says 2999-01-01T00:00:00Z"
    assert hosts["cut"]["reason"].startswith(f"{results}/cut.json: is not JSON: ")
    again = report(folder, f"results={folder}/page.json dest={folder}/again.html")
    assert "2 hosts: 1 unchecked, 1 pass" in again.stdout
    assert json.loads((folder / "again.json").read_text())["hosts"]["cut"] == hosts["cut"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            "results=/no/such dest=page",
            "is neither a directory of results nor an audit's document",
        ),
        ("results={folder} dest=page", "holds no result; accepted is a file HOST.json"),
        ("results={folder}/hosts dest=page", "is not JSON"),
        ("results={folder}/other.txt dest=page", "is not a document of an audit"),
        ("results={folder}/newer.txt dest=page", "is a document of version 9; 1 is accepted"),
        ("previous=/no/such dest=page", "is not the JSON document of an earlier audit"),
        ("previous={folder}/newer.txt dest=page", "is a document of version 9; 1 is accepted"),
        ("dest=/no/such/page.html", "dest (mlhost_limits_audit_dest): /no/such is not a directory"),
        ("dest=page formats=pdf", "value of formats must be one or more of"),
    ],
)
def test_what_cannot_be_read_or_written_is_one_sentence(
    folder: Path, words: str, told: str
) -> None:
    (folder / "other.txt").write_text("[]")
    (folder / "newer.txt").write_text('{"format": "mlhost.limits/audit", "version": 9}')
    done = report(folder, words.format(folder=folder))
    assert done.returncode != 0
    assert told in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert not list(folder.glob("page*"))


def test_a_full_disk_is_one_sentence(folder: Path) -> None:
    results = folder / "results"
    results.mkdir()
    finding = {"status": "pass", "place": "kernel", "item": "a" * 200_000, "bound": "value"}
    (results / "host.json").write_text(json.dumps({"findings": [finding]}))
    (folder / "small").mkdir()
    words = f"results={results} dest={folder}/small/page.html"
    command = ["ansible", "localhost", "-m", "mlhost.limits.report", "-a", words]
    script = f'mount -t tmpfs -o size=64k tmpfs {folder}/small && exec "$@"'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", *command], capture_output=True, text=True
    )
    assert done.returncode != 0
    told = rf"{folder}/small/page\.(html|json): No space left on device; no report was changed"
    assert re.search(told, done.stdout + done.stderr)
