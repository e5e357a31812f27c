# SPDX-License-Identifier: GPL-3.0-or-later
"""``mlhost-limits provision`` does what the module does, says it in a few lines, and checks it."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from mlhost_limits import cli
from mlhost_limits.provision import Outcome

from . import library
from .cases import CASES
from .node import Node

pytestmark = pytest.mark.root  # Mount namespaces are root's.
DOCS = Path(__file__).parents[2] / "docs"
HOST = CASES["kernel"].before
POLICY = {"kernel": {"fs.nr_open": 2097152}}
BEATEN = "/etc/sysctl.d/99-late.conf"
"""A file of the made-up host, which states less of vm.max_map_count than is asked for here."""
FILE = "/etc/policy.json"
BROKEN = '{"kernel": {"vm.max_map_count": "many"}, "sesions": []}'


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path, {FILE: json.dumps(POLICY), "/etc/broken.json": BROKEN})


def run(node: Node, *words: str) -> dict[str, Any]:
    given = ("provision", "--profile", "none", "--policy", FILE, *words)
    told: dict[str, Any] = node.run(partial(library.command, *given), HOST)
    return told


def test_it_writes_what_the_module_writes_and_reports_what_is_in_effect(
    node: Node, tmp_path_factory: pytest.TempPathFactory
) -> None:
    told = run(node)
    other = Node(tmp_path_factory.mktemp("module"), {FILE: json.dumps(POLICY)})
    module = other.run(partial(library.provision, policy=POLICY), HOST)
    assert [line for line in told["errors"] if "looking at" in line] == []
    assert told["out"][0].split() == ["changed", module["files"][0]]
    assert node.read()[module["files"][0]] == other.read()[module["files"][0]]
    assert any(line.startswith("set        ") and " -> " in line for line in told["out"])
    assert any(re.search("requirements? (are|is) met", line) for line in told["out"])
    assert told["status"] == 0
    assert max(map(len, told["out"])) <= 80


def test_a_second_run_has_nothing_to_change(node: Node) -> None:
    run(node)
    told = run(node, "--no-verify")
    assert "nothing to change" in told["out"]
    assert not any("requirements" in line for line in told["out"])


def read_json(told: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON that a run printed; it keeps to its schema, and states no more than that."""
    answer: dict[str, Any] = json.loads("\n".join(told["out"]))
    schema = json.loads((DOCS / "provision.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(answer)
    assert set(answer) == set(schema["properties"])
    return answer


def test_its_json_is_what_the_module_returns_and_what_is_in_effect(node: Node) -> None:
    planned = read_json(run(node, "--json", "--check", "--diff"))
    assert (planned["check"], planned["verified"]) == (True, None)
    assert [one["after_header"] for one in planned["diff"]] == [*planned["files"], "running kernel"]
    told = run(node, "--json")
    done = read_json(told)
    assert (told["status"], done["check"], done["diff"]) == (0, False, [])
    assert (done["files"], done["sysctls"]) == (planned["files"], planned["sysctls"])
    assert [one["status"] for one in done["verified"]["findings"]] == ["pass"]
    assert not read_json(run(node, "--json", "--no-verify"))["changed"]


def test_its_json_has_what_falls_short(node: Node) -> None:
    node.write(FILE, json.dumps({"kernel": {"vm.max_map_count": 262144}}))
    told = run(node, "--json", "--check")
    assert (told["status"], len(read_json(told)["shortfalls"])) == (1, 1)


def test_a_dry_run_changes_nothing_and_shows_each_line(node: Node) -> None:
    before = node.read()
    told = run(node, "--check", "--diff")
    assert node.read() == before
    assert told["status"] == 0
    assert told["out"][0].startswith("would change  /etc/")
    assert any(line.startswith("+++ ") for line in told["out"])
    assert any(line.startswith(("+vm.", "+fs.")) for line in told["out"])


def test_what_was_set_is_taken_back(node: Node) -> None:
    before = {path: text for path, text in node.read().items() if path.startswith("/etc/")}
    run(node)
    told = run(node, "--absent")
    after = {path: text for path, text in node.read().items() if path.startswith("/etc/")}
    assert (told["status"], after) == (0, before)
    assert not any("requirements" in line for line in told["out"])


def test_only_the_sections_that_are_named_are_made_true(node: Node) -> None:
    before = node.read()
    told = run(node, "--only", "sessions")
    assert told["out"] == ["nothing to change"]
    assert node.read() == before


def test_a_line_that_beats_ours_falls_short(node: Node) -> None:
    node.write(FILE, '{"kernel": {"vm.max_map_count": 262144}}')
    told = run(node)
    assert told["status"] == 1
    assert any(line.startswith(f"short      {BEATEN}:1") for line in told["out"])


def test_a_policy_that_is_wrong_is_refused_whole(node: Node) -> None:
    before = node.read()
    words = ("provision", "--profile", "none", "--policy", "/etc/broken.json")
    told = node.run(partial(library.command, *words), HOST)
    assert (told["status"], told["out"]) == (2, [])
    assert len(told["errors"]) == 2
    assert node.read() == before


@pytest.mark.parametrize(
    ("error", "status"), [(OSError("no"), 2), (ValueError("no"), 2), (KeyboardInterrupt(), 130)]
)
def test_its_json_says_what_was_done_where_the_check_comes_to_no_end(
    error: BaseException,
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*_asked: object) -> None:
        raise error

    done = Outcome((), (("fs.nr_open", "1", "2"),), (), (), (), (), (), ("kernel",))
    monkeypatch.setattr("mlhost_limits.provision.provision", lambda *_asked: done)
    monkeypatch.setattr(cli, "_look", fail)
    (tmp_path / "policy.json").write_text(json.dumps(POLICY))
    words = ["provision", "--json", "--profile", "none", "--policy", str(tmp_path / "policy.json")]
    assert cli.main(words) == status
    told = read_json({"out": capsys.readouterr().out.splitlines()})
    assert (told["sysctls"][0]["key"], told["verified"]) == ("fs.nr_open", None)
