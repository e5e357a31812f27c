# SPDX-License-Identifier: GPL-3.0-or-later
"""A look at this node keeps what it found; what keeps it from looking is said in one sentence."""

from __future__ import annotations

import fcntl
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from mlhost_limits import cli
from mlhost_limits import monitor as node_check
from mlhost_limits import node_health as node_health
from mlhost_limits.check_host import CheckResult
from mlhost_limits.core.finding import FAIL, PASS, UNKNOWN, Finding, Observation, Requirement
from mlhost_limits.host.users import name_user
from mlhost_limits.node.state_read import Verdict, read_verdict
from mlhost_limits.result import digest_policy

SHORT = {"kernel": {"vm.max_map_count": 2147483647}}
FINE = {"kernel": {"vm.max_map_count": 1}}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep what a look leaves in a folder of the test."""
    for name, file in {
        "FOLDER": "",
        "LOCK": "node.lock",
        "STATE": "node.json",
        "RESULT": "result.json",
    }.items():
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


def test_a_look_leaves_the_result_that_a_report_reads(folder: Path) -> None:
    """It is root's alone, has the form of ``check --json``, and a failed look leaves the old one."""
    path, result = write(folder, SHORT), folder / "result.json"
    assert cli.main(["monitor", "--policy", path]) == 1
    assert result.stat().st_mode & 0o777 == 0o600
    told = json.loads(result.read_text())
    assert (told["format"], told["version"]) == ("mlhost.limits/check", 1)
    assert (told["host"], told["findings"][0]["status"]) == (os.uname().nodename, "fail")
    assert told["policy"] == digest_policy(SHORT)
    assert cli.main(["report", str(result), "-o", str(folder / "out.json")]) == 1
    assert list(json.loads((folder / "out.json").read_text())["hosts"]) == [os.uname().nodename]
    assert cli.main(["monitor", "--policy", write(folder, "{")]) == 2
    assert json.loads(result.read_text()) == told


def test_a_policy_is_read_as_check_reads_it(folder: Path) -> None:
    (folder / "site.yml").write_text("profile: none\nkernel: {vm.max_map_count: 2147483647}\n")
    assert cli.main(["monitor", "--policy", write(folder, "profile: ./site.yml\n")]) == 1
    told = json.loads((folder / "result.json").read_text())
    assert [one["item"] for one in told["findings"]] == ["vm.max_map_count"]


@pytest.mark.parametrize(
    ("policy", "sentence"),
    [
        ('{"kernel": {"fs.fi', "policy.json:1: is not JSON: "),
        ("profile:\nkernel: {fs.nr_open: 5}\n", "profile: is empty; accepted are"),
        ("", "is empty, so nothing would be required"),
        ("[" * 100000, "is nested deeper than 20 levels"),
        ("{}", "would be required"),
        ({"kernel": {"a.b": "x y"}, "x": 1}, "x: is unknown"),
    ],
)
def test_without_a_policy_nothing_is_told_but_that(
    folder: Path, policy: object, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    metrics = folder / "x.prom"
    metrics.write_text("old")
    path = write(folder, policy)
    assert cli.main(["monitor", "--policy", path, "--metrics", str(metrics)]) == 2
    told = capsys.readouterr()
    assert sentence in told.err
    assert (told.err.count("\n"), told.out) == (1, "")
    assert read_names(metrics) == ABOUT_THE_RUN
    verdict = read_verdict(path, str(folder / "node.json"))
    assert verdict
    assert verdict.status == "error"


def read_names(metrics: Path) -> list[str]:
    lines = metrics.read_text().splitlines()
    return [line.split()[0].partition("{")[0] for line in lines if line[0] != "#"]


ABOUT_THE_RUN = [
    f"mlhost_limits_last_{name}"
    for name in (
        "run_timestamp_seconds",
        "run_duration_seconds",
        "run_cpu_seconds",
        "run_success",
        "success_timestamp_seconds",
    )
]


def test_a_policy_that_is_gone_is_an_error_as_well(folder: Path) -> None:
    path, metrics = folder / "none.json", folder / "x.prom"
    assert cli.main(["monitor", "--policy", str(path), "--metrics", str(metrics)]) == 2
    assert "last_run_success 0" in metrics.read_text()
    assert read_verdict(str(path), str(folder / "node.json")) is None


def test_a_second_look_waits_and_then_says_who_is_in_the_way(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(folder, FINE)
    with (folder / "node.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert cli.main(["monitor", "--policy", path]) == 2
    assert "holds " in capsys.readouterr().err
    assert cli.main(["monitor", "--policy", path]) == 0


def recurse(*_arguments: object) -> None:
    recurse()


def run_out(*_arguments: object) -> None:
    raise MemoryError


def leave(*_arguments: object) -> None:
    raise SystemExit(0)


def interrupt(*_arguments: object) -> None:
    raise KeyboardInterrupt


def refuse(*_arguments: object) -> None:
    raise OSError("the disk is gone\nfor good")


def crash(*_arguments: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def vanish(*_arguments: object) -> None:
    os._exit(0)


@pytest.mark.parametrize(
    ("end", "sentence"),
    [
        (refuse, "the disk is gone?for good"),
        (recurse, "RecursionError maximum recursion depth exceeded"),
        (run_out, "MemoryError"),
        (leave, "SystemExit 0"),
        (interrupt, "KeyboardInterrupt"),
        (crash, "it was killed by signal 9"),
        (vanish, "it ended early"),
    ],
)
@pytest.mark.slow
def test_a_check_that_breaks_off_in_any_way_is_no_success(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    end: Callable[..., None],
    sentence: str,
) -> None:
    path, metrics = write(folder, FINE), folder / "x.prom"
    words = ["monitor", "--exit-zero", "--policy", path, "--metrics", str(metrics)]
    assert cli.main(words) == 0
    success = find_value(metrics, "last_success_timestamp_seconds")
    assert success == find_value(metrics, "last_run_timestamp_seconds") > 0
    capsys.readouterr()
    monkeypatch.setattr(node_check, "check_within", end)
    assert cli.main(words) == 2
    told = capsys.readouterr().err
    assert f"mlhost-limits: the check failed: {sentence}" in told
    assert told.count("\n") == 1
    assert read_names(metrics) == ABOUT_THE_RUN
    assert find_value(metrics, "last_run_success") == 0
    assert find_value(metrics, "last_success_timestamp_seconds") == pytest.approx(success, abs=1)
    verdict = read_verdict(path, str(folder / "node.json"))
    assert verdict
    assert verdict.status == "error"


def find_value(metrics: Path, name: str) -> float:
    (line,) = [
        one for one in metrics.read_text().splitlines() if one.startswith(f"{PREFIX}{name} ")
    ]
    return float(line.split()[1])


PREFIX = "mlhost_limits_"


def test_a_check_that_does_not_end_is_ended(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_check, "check_within", lambda *_: signal.pause())
    look = node_check.look_at_node(write(folder, FINE), seconds=0.1)
    assert look.verdict == Verdict("error", ("the check failed: it did not end within 0.1 s",))


def test_where_the_state_cannot_be_kept_the_metrics_are(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(node_check, "STATE", str(folder / "none" / "node.json"))
    metrics = folder / "x.prom"
    words = ["monitor", "--policy", write(folder, FINE), "--metrics", str(metrics)]
    assert cli.main(words) == 2
    assert "could not be written" in capsys.readouterr().err
    assert "last_run_timestamp_seconds" in metrics.read_text()


def test_the_groups_of_a_look_are_those_of_this_machine(folder: Path) -> None:
    metrics = folder / "x.prom"
    node_check.look_at_node(write(folder, FINE), str(metrics))
    user = name_user(os.geteuid())
    assert f'mlhost_limits_worst_process_open_fds{{user="{user}"' in metrics.read_text()


def find(status: str, owner: str = "", item: str = "nofile") -> Finding:
    wanted = Requirement("session:alice@sshd", item, "soft", 5)
    value = None if status == UNKNOWN else 1
    return Finding(status, wanted, Observation(value, "x", "unseen"), owner=owner)


def look(folder: Path, monkeypatch: pytest.MonkeyPatch, *findings: Finding) -> Verdict:
    result = CheckResult(list(findings), {})
    monkeypatch.setattr(node_check, "check_within", lambda *_: result)
    return node_check.look_at_node(str(folder / "policy.json")).verdict


def test_what_users_did_is_a_warning(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, FINE)
    verdict = look(folder, monkeypatch, find(FAIL, "alice"))
    assert (verdict.status, verdict.failures, len(verdict.warnings)) == ("pass", (), 1)
    verdict = look(folder, monkeypatch, find(FAIL, "alice"), find(FAIL))
    assert (verdict.status, len(verdict.failures), len(verdict.warnings)) == ("fail", 1, 1)


def test_what_fell_short_is_not_mended_by_being_unseen(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(folder, FINE)
    assert look(folder, monkeypatch, find(UNKNOWN)).status == "pass"
    assert look(folder, monkeypatch, find(FAIL)).status == "fail"
    for _time in range(2):
        assert look(folder, monkeypatch, find(UNKNOWN), find(PASS, item="x")).status == "unknown"
    monkeypatch.setattr(node_check, "check_within", refuse)
    assert node_check.look_at_node(path).verdict.status == "error"
    Path(path).rename(folder / "moved.json")
    assert node_check.look_at_node(path).verdict.status == "error"
    (folder / "moved.json").rename(path)
    assert look(folder, monkeypatch, find(UNKNOWN)).status == "unknown"
    assert look(folder, monkeypatch, find(PASS)).status == "pass"
    assert look(folder, monkeypatch, find(UNKNOWN)).status == "pass"


def test_another_policy_owes_nothing_of_the_one_before(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, FINE)
    assert look(folder, monkeypatch, find(FAIL)).status == "fail"
    write(folder, SHORT)
    assert look(folder, monkeypatch, find(UNKNOWN)).status == "pass"


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
