# SPDX-License-Identifier: GPL-3.0-or-later
"""``node-health --npd`` keeps the contract of node-problem-detector: a status and a short line."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path

import pytest
from mlhost_limits import cli, monitor, node_problem
from mlhost_limits.node import state_read
from mlhost_limits.node.state_read import Verdict, format_state, stamp_policy
from mlhost_limits.node_problem import cut_bytes, tell_detector

DOCS = Path(__file__).parents[2] / "docs" / "examples"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, file in {"FOLDER": "", "LOCK": "l", "STATE": "s", "RESULT": "r"}.items():
        monkeypatch.setattr(monitor, name, str(tmp_path / file))
    path = str(tmp_path / "s")
    monkeypatch.setattr(
        node_problem, "read_verdict", lambda policy: state_read.read_verdict(policy, path)
    )
    return tmp_path


def write(folder: Path, policy: object) -> str:
    path = folder / "policy.json"
    path.write_text(policy if isinstance(policy, str) else json.dumps(policy))
    return str(path)


@pytest.mark.parametrize(
    ("policy", "status", "line"),
    [
        ({"kernel": {"vm.max_map_count": 1}}, 0, "limits are as the policy asks"),
        ({"kernel": {"vm.max_map_count": 2147483647}}, 1, "kernel: vm.max_map_count "),
        ("{", 2, "the check failed: "),
        ("", 2, "the check failed: "),
    ],
)
def test_a_look_of_its_own_is_a_status_and_a_line(
    folder: Path, policy: object, status: int, line: str
) -> None:
    path, begun = write(folder, policy), time.monotonic()
    for _again in range(2):  # The second time, the first look is believed where it was one.
        found, told = tell_detector(path)
        assert (found, told.startswith(line)) == (status, True), told
        assert len(told.encode()) <= 80
    assert time.monotonic() - begun < 10


def test_without_a_policy_nothing_is_known(folder: Path) -> None:
    status, told = tell_detector(str(folder / "none"))
    assert (status, len(told.encode()) <= 80) == (2, True)


@pytest.mark.parametrize(
    ("verdict", "told"),
    [
        (Verdict("pass", (), ("a user did",)), (0, "limits are as the policy asks")),
        (Verdict("fail", ("a\nb", "c", "d")), (1, "a?b (+2)")),
        (Verdict("unknown", ("x",)), (2, "x")),
        (Verdict("fail", ("é" * 100, "b")), (1, "é" * 36 + "… (+1)")),
    ],
)
def test_the_last_look_is_believed_while_it_is_fresh(
    folder: Path, verdict: Verdict, told: tuple[int, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = write(folder, {})
    (folder / "s").write_text(format_state(verdict, stamp_policy(policy)))
    monkeypatch.setattr(node_problem, "_look", lambda _policy: pytest.fail("it looked"))
    assert tell_detector(policy) == told


def test_a_look_that_failed_is_made_again(folder: Path) -> None:
    policy = write(folder, {"kernel": {"vm.max_map_count": 1}})
    (folder / "s").write_text(format_state(Verdict("error", ("x",)), stamp_policy(policy)))
    assert tell_detector(policy)[0] == 0


@pytest.mark.parametrize(
    "damage",
    [
        {"failures": []},
        {"failures": "abc"},
        {"failures": [1]},
        {"failures": {}},
        {"status": "odd"},
        {"status": ["fail"]},
        {"at": 10**400},
        {"at": None},
        {"success": 10**400},
    ],
)
def test_a_damaged_state_is_none_and_the_look_is_made_again(
    folder: Path, damage: dict[str, object]
) -> None:
    policy = write(folder, {"kernel": {"vm.max_map_count": 1}})
    kept = json.loads(format_state(Verdict("fail", ("x",)), stamp_policy(policy)))
    (folder / "s").write_text(json.dumps({**kept, **damage}))
    believed = "success" in damage
    assert tell_detector(policy) == ((1, "x") if believed else (0, "limits are as the policy asks"))
    state_read.read_kept(policy, str(folder / "s"))


def test_what_goes_wrong_here_is_no_problem_of_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_problem, "read_verdict", int)
    status, told = tell_detector()
    assert (status, told.startswith("the check failed: "), len(told) <= 80) == (2, True, True)


def test_the_status_does_not_depend_on_the_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_problem, "tell_detector", lambda: (1, "kernel: é…"))
    told = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr("sys.stdout", told)
    assert cli.main(["node-health", "--npd"]) == 1
    assert told.buffer.getvalue() == b"kernel: ??\n"


@pytest.mark.parametrize("text", ["", "a" * 80, "a" * 81, "é" * 41, "€" * 90, "\udcff" * 90])
def test_a_line_is_cut_at_a_character(text: str) -> None:
    told = cut_bytes(text, 80)
    assert len(told.encode()) <= 80
    assert told.endswith("…") == (len(text.encode("utf-8", "replace")) > 80)


def test_the_command_says_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(node_problem, "tell_detector", lambda: (1, "kernel: short"))
    assert cli.main(["node-health", "--npd"]) == 1
    assert capsys.readouterr().out == "kernel: short\n"


def test_the_config_of_the_plugin_keeps_to_the_contract() -> None:
    config = json.loads((DOCS / "npd-mlhost-limits.json").read_text())
    settings = config["pluginConfig"]
    assert settings["max_output_length"] == node_problem.LONGEST
    assert settings["timeout"] == "5s"
    assert node_problem._SECONDS < 5
    (condition,) = config["conditions"]
    assert {rule["condition"] for rule in config["rules"]} == {condition["type"]}
    for rule in config["rules"]:
        assert rule["args"] == ["node-health", "--npd"]
