# SPDX-License-Identifier: GPL-3.0-or-later
"""Advice names options that are accepted where it is read: by a role, a module or the command."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from mlhost_limits import spoken, verbs
from mlhost_limits.cli import main
from mlhost_limits.command_line import parse_words
from mlhost_limits.core.option_names import FLAG, NamedWith, name_option
from mlhost_limits.core.policy import ProvisionOptions
from mlhost_limits.provision import Outcome
from mlhost_limits.verbs import MONITOR_ARGUMENTS, PROVISION_ARGUMENTS

TOP = Path(__file__).parents[2]
LIBRARY = TOP / "plugins" / "module_utils"
NAMERS = ("name_option", "switch_on")
OF_MONITOR = {"interval", "textfile_directory"}
SAID_ALIKE = {"first_boot", "black_box", "drain_on_error"}
"""Options that no advice names, and words of other things."""


def walk_library() -> Iterator[tuple[str, ast.AST]]:
    for path in LIBRARY.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            yield str(path.relative_to(LIBRARY)), node


def find_named() -> Iterator[str]:
    """Yield the options that messages of the library name."""
    yield from (f"{section}_restart" for section, _does in spoken._RESTARTED_BY.values())
    for _path, node in walk_library():
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in NAMERS:
            yield from (str(one.value) for one in node.args if isinstance(one, ast.Constant))


def read_variables(role: str) -> set[str]:
    text = (TOP / "roles" / role / "meta" / "argument_specs.yml").read_text(encoding="utf-8")
    return set(yaml.safe_load(text)["argument_specs"]["main"]["options"])


def roles_that_read(name: str) -> list[str]:
    roles = (path.parent.parent.name for path in TOP.glob("roles/*/meta/argument_specs.yml"))
    return [role for role in roles if f"mlhost_limits_{name}" in read_variables(role)]


@pytest.mark.parametrize("name", sorted(set(find_named())))
def test_an_option_that_advice_names_is_accepted(name: str) -> None:
    if name in OF_MONITOR:
        assert name in MONITOR_ARGUMENTS
        assert f"mlhost_limits_monitor_{name}" in read_variables("monitor")
        return
    assert name in PROVISION_ARGUMENTS
    assert "host" in roles_that_read(name)
    value = [] if PROVISION_ARGUMENTS[name]["type"] == "bool" else ["x"]
    parse_words(["provision", "--check", f"{FLAG}{name.replace('_', '-')}", *value])


def find_bare() -> Iterator[str]:
    """Yield where a text of the library names an option as a module has it."""
    names = {name for name in (*PROVISION_ARGUMENTS, *MONITOR_ARGUMENTS) if "_" in name}
    bare = re.compile(rf"(?<![\w./-])({'|'.join(names - SAID_ALIKE)})(: | does |$)|override: true")
    keys = {*PROVISION_ARGUMENTS, *MONITOR_ARGUMENTS}
    for path, node in walk_library():
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and text not in keys and bare.search(text):
            yield f"{path}: {text}"


def test_no_text_names_an_option_by_itself() -> None:
    assert list(find_bare()) == []


NOTHING = Outcome((), (), (), (), (), (), (), ())
UNITS = tuple(spoken._RESTARTED_BY)


@pytest.mark.parametrize(("prefix", "end"), [("mlhost_limits_", ": true"), ("", ": true")])
def test_what_a_task_says_is_accepted_by_it(prefix: str, end: str) -> None:
    outcome = NOTHING._replace(shortfalls=("a beats b",), restart_required=UNITS)
    with NamedWith(prefix):
        told = spoken.tell_provision(outcome, ProvisionOptions())
    said = " ".join(" ".join([*told["brief"], *told["warnings"]]).split())
    for name in ("override", *(f"{one}_restart" for one, _ in spoken._RESTARTED_BY.values())):
        assert f" {prefix}{name}{end}" in said


def test_a_role_is_answered_in_its_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    def work(_given: dict[str, object], _check_mode: bool) -> dict[str, object]:
        return {"msg": name_option("interval")}

    monkeypatch.setitem(verbs.VERBS, "monitor", ({}, work))
    told = [
        verbs.answer("monitor", {}, False, one)["msg"] for one in ("mlhost_limits_monitor_", "")
    ]
    assert told == ["mlhost_limits_monitor_interval", "interval"]


def test_a_role_names_no_switch_of_another() -> None:
    outcome = NOTHING._replace(restart_required=UNITS)
    told = spoken.tell_provision(outcome, ProvisionOptions(sections=("services",)))
    assert [line for line in told["brief"] if "_restart" in line] == []


def test_the_command_names_its_flags(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    policy = tmp_path / "policy.json"
    policy.write_text('{"sessions": [{"users": ["*"], "limits": {"nofile": 900}}]}')
    words = ("--only", "sessions", "--sessions-file", "/etc/hosts")
    status = main(["provision", "--check", "--profile", "none", "--policy", str(policy), *words])
    assert status == 2
    assert "mlhost-limits: --sessions-file: '/etc/hosts' is not read" in capsys.readouterr().err
