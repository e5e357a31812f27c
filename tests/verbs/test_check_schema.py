# SPDX-License-Identifier: GPL-3.0-or-later
"""What the verbs print or write as JSON keeps to the published schemas."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from mlhost_limits import cli
from referencing import Registry, Resource

from . import golden
from .test_watch_run import watch

DOCS = Path(__file__).parents[2] / "docs"
AUDIT, CHECK = "audit.schema.json", "check.schema.json"


def read_schema(name: str) -> jsonschema.Draft202012Validator:
    """Return what judges by a schema, which lies beside that of the audit."""
    beside = {one: json.loads((DOCS / one).read_text()) for one in (CHECK, AUDIT)}
    known: Registry[Any] = Registry().with_resources(
        (one, Resource.from_contents(schema)) for one, schema in beside.items()
    )
    return jsonschema.Draft202012Validator(json.loads((DOCS / name).read_text()), registry=known)


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    return read_schema(CHECK)


def read_printed() -> list[Any]:
    """Return what the kept runs of the command printed as JSON, on made-up hosts."""
    records = [json.loads(golden.read_record(name)) for name in ("commands", "trees")]
    told = [one for record in records for words, one in record.items() if "check" in words]
    return [json.loads("\n".join(one["out"])) for one in told if one["out"][:1] == ["{"]]


def test_kept_results_keep_to_it(validator: jsonschema.Draft202012Validator) -> None:
    printed = read_printed()
    assert {one["host"] for one in printed} == {"", "node1"}
    for one in printed:
        del one["measured"]  # Its digits are taken out of what is kept.
        validator.validate({**one, "measured": "2026-11-30T12:00:00Z"})


def test_a_result_of_this_host_keeps_to_it(
    validator: jsonschema.Draft202012Validator, capsys: pytest.CaptureFixture[str]
) -> None:
    cli.main(["check", "--json", "--canary", "never", "--probe", "predict"])
    validator.validate(json.loads(capsys.readouterr().out))


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"findings": [{"status": "good"}]},
        {"summary": {"pass": 1}},
        {"measured": "today"},
        {"connection_causes": [{"text": "no code"}]},
    ],
    ids=lambda change: next(iter(change)),
)
def test_something_else_does_not(
    validator: jsonschema.Draft202012Validator, change: dict[str, object]
) -> None:
    good = {**read_printed()[0], "measured": "", **change}
    with pytest.raises(jsonschema.ValidationError):
        validator.validate(good)


@pytest.mark.parametrize(
    "message",
    [
        "OSError: [Errno 24] Too many open files",
        "Cannot allocate memory",
        "ModuleNotFoundError: No module named x",
        "unable to mmap 68 bytes from file </torch_1_2_3>: Cannot allocate memory (12)",
        "max file descriptors [4096] for elasticsearch process is too low, at least [65535]",
    ],
)
def test_what_a_run_died_of_keeps_to_its_schema(
    message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cli.main(["why", "--json", message])
    answer = json.loads(capsys.readouterr().out)
    schema = read_schema("why.schema.json")
    schema.validate(answer)
    properties = json.loads((DOCS / "why.schema.json").read_text())["properties"]
    assert set(answer) == set(properties)
    wrong: list[dict[str, Any]] = [
        {"sure": "quite"},
        {"is_limit": "no"},
        {"findings": [{}]},
        {"needed": {}},
    ]
    for change in wrong:
        with pytest.raises(jsonschema.ValidationError):
            schema.validate({**answer, **change})


def test_what_is_said_of_a_run_keeps_to_its_schema(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["preflight", "--json", "--workers", "2", "--", "torchrun", "train.py"])
    answer = json.loads(capsys.readouterr().out)
    schema = read_schema("preflight.schema.json")
    schema.validate(answer)
    for key, value in {"format": "mlhost.limits/check", "taken": [1], "host": None}.items():
        with pytest.raises(jsonschema.ValidationError):
            schema.validate({**answer, key: value})


def refuse(name: str, answer: Any, wrong: dict[str, object]) -> None:
    """Show that a document keeps to its schema, states all of it, and no longer with a change."""
    schema = read_schema(name)
    schema.validate(answer)
    assert set(answer) == set(json.loads((DOCS / name).read_text())["properties"])
    for key, value in {**wrong, "version": 0}.items():
        with pytest.raises(jsonschema.ValidationError):
            schema.validate({**answer, key: value})


def test_what_would_be_raised_keeps_to_its_schema(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = {"processes": [{"user": "root", "limits": {"nofile": {"soft": 900, "hard": 900}}}]}
    (tmp_path / "policy.json").write_text(json.dumps(asked))
    limited = ["prlimit", "--nofile=200:900", "sleep", "60"]
    with subprocess.Popen(limited) as process:
        words = ["heal", "--check", "--json", "--profile", "none", "--pid", str(process.pid)]
        cli.main([*words, "--policy", str(tmp_path / "policy.json")])
        process.kill()
    answer = json.loads(capsys.readouterr().out)
    assert answer["changes"][0]["item"] == "nofile"
    refuse("heal.schema.json", answer, {"changes": [{"kind": "limit"}], "check": "yes"})


def test_a_plan_keeps_to_its_schema(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    remedy = {"text": "make it so", "then": "reboot", "commands": [["sh", "-c", "x"]]}
    cause = {"code": "a", "text": "a", "remedy": remedy}
    finding = {"status": "fail", "place": "kernel", "item": "fs.nr_open", "causes": [cause]}
    (tmp_path / "a.json").write_text(json.dumps({"findings": [finding]}))
    assert cli.main(["plan", str(tmp_path), "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["fixes"][0]["commands"]
    refuse("plan.schema.json", answer, {"waves": [{"name": "x"}], "costs": {"money": 1}})


def test_a_chain_keeps_to_its_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", "kernel", "fs.nr_open", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["links"][-1]["name"] == "running"
    refuse("explain.schema.json", answer, {"links": [{"name": "file"}], "place": None})


def test_what_files_state_keeps_to_its_schema(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "etc/security").mkdir(parents=True)
    lines = "* soft nofile 9999999999\nroot soft nofile 5\nroot soft nofile 6\n"
    (tmp_path / "etc/security/limits.conf").write_text(lines)
    (tmp_path / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\n")
    (tmp_path / "usr/lib/systemd/system").mkdir(parents=True)
    (tmp_path / "etc/systemd/system").mkdir(parents=True)
    (tmp_path / "etc/systemd/system/foo.service").symlink_to("/dev/null")
    cli.main(["resolve", "--root", str(tmp_path), "--unit", "foo.service", "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert any("reason" in one for one in answer["statements"])
    assert any(one.get("shadows") for one in answer["statements"])
    refuse("resolve.schema.json", answer, {"statements": [{"place": "kernel"}], "format": ""})


def test_a_report_of_watch_keeps_to_its_schema(tmp_path: Path) -> None:
    script = "import time; files = [open('/dev/null') for _one in range(180)]; time.sleep(1); 1 / 0"
    words = ["prlimit", "--nofile=200:200", sys.executable, "-c", script]
    watch(tmp_path, "--report", "run.json", "--", *words)  # It forks: no look of this process.
    answer = json.loads((tmp_path / "run.json").read_text())
    assert answer["limits"]
    refuse("watch.schema.json", answer, {"sure": "quite", "end": {}, "limits": [{}]})
