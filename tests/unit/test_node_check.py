# SPDX-License-Identifier: GPL-3.0-or-later
"""A look at this node keeps what it found; what keeps it from looking is said in one sentence."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path

import pytest
from mlhost_limits import cli, node_check, node_health
from mlhost_limits.policy.node_load import Group
from mlhost_limits.probe.node_state import Verdict, read_verdict

SHORT = {"kernel": {"vm.max_map_count": 2147483647}}
FINE = {"kernel": {"vm.max_map_count": 1}}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep what a look leaves in a folder of the test."""
    for name, file in (("FOLDER", ""), ("LOCK", "node.lock"), ("STATE", "node.json")):
        monkeypatch.setattr(node_check, name, str(tmp_path / file))
    monkeypatch.setattr(node_check, "PATIENCE", 0.2)
    return tmp_path


def write(folder: Path, policy: object) -> str:
    path = folder / "policy.json"
    path.write_text(policy if isinstance(policy, str) else json.dumps(policy))
    return str(path)


@pytest.mark.parametrize(("policy", "status", "code"), [(SHORT, "fail", 1), (FINE, "pass", 0)])
def test_a_look_keeps_its_verdict_and_its_metrics(
    folder: Path, policy: object, status: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    path, metrics = write(folder, policy), folder / "x.prom"
    assert cli.main(["monitor", "--policy", path, "--metrics", str(metrics)]) == code
    told = capsys.readouterr().out.splitlines()
    assert told[-1] == f"{1 - code} pass, {code} fail, 0 unknown"
    verdict = read_verdict(path, str(folder / "node.json"))
    assert verdict
    assert verdict.status == status
    assert len(verdict.failures) == code
    states = [line for line in metrics.read_text().splitlines() if "requirement_state{" in line]
    assert [line for line in states if line.endswith(" 1")] == [
        'mlhost_limits_requirement_state{place="kernel",item="vm.max_map_count",bound="value",'
        f'state="{status}"}} 1'
    ]


@pytest.mark.parametrize(
    ("policy", "sentence"),
    [
        ('{"kernel": {"fs.fi', "is no JSON (Unterminated string"),
        ("", "is no JSON (Expecting value"),
        ("[" * 100000, "holds too many nested values"),
        ("{}", "would be required"),
        ({"kernel": {"a.b": "x y"}, "x": 1}, "x: is unknown"),
    ],
)
def test_without_a_policy_nothing_is_written(
    folder: Path, policy: object, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    metrics = folder / "x.prom"
    metrics.write_text("old")
    words = ["monitor", "--policy", write(folder, policy), "--metrics", str(metrics)]
    assert cli.main(words) == 2
    assert sentence in capsys.readouterr().err
    assert metrics.read_text() == "old"
    assert not (folder / "node.json").exists()


def test_a_second_look_waits_and_then_says_who_is_in_the_way(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(folder, FINE)
    with (folder / "node.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert cli.main(["monitor", "--policy", path]) == 2
    assert "holds " in capsys.readouterr().err
    assert cli.main(["monitor", "--policy", path]) == 0


def test_a_check_that_breaks_off_is_no_success(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_arguments: object) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr(node_check, "check_host", refuse)
    path, metrics = write(folder, FINE), folder / "x.prom"
    assert cli.main(["monitor", "--policy", path, "--metrics", str(metrics)]) == 2
    assert "the check itself failed: the disk is gone" in capsys.readouterr().err
    text = metrics.read_text()
    assert "mlhost_limits_last_run_success 0" in text
    assert "mlhost_limits_worst_process_open_fds{" in text
    verdict = read_verdict(path, str(folder / "node.json"))
    assert verdict == Verdict("error", ("the check itself failed: the disk is gone",))


def test_the_groups_of_a_look_are_those_of_this_machine(folder: Path) -> None:
    look = node_check.look_at_node(write(folder, FINE))
    assert any(
        isinstance(group, Group) and group.uid == os.geteuid() and group.fullest
        for group in look.groups
    )


@pytest.mark.parametrize(
    ("failures", "reason"),
    [
        (("kernel: x",), "mlhost-limits: kernel: x"),
        (("a\nb\x1b", "c", "d"), "mlhost-limits: a?b? (and 2 more)"),
        (("x" * 300,), f"mlhost-limits: {'x' * 184}…"),
        (("x" * 300, "y"), f"mlhost-limits: {'x' * 171}… (and 1 more)"),
    ],
)
def test_a_reason_is_one_short_line(failures: tuple[str, ...], reason: str) -> None:
    told = node_health._shorten(Verdict("fail", failures))
    assert told == reason
    assert len(told) <= 200
