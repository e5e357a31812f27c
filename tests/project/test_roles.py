# SPDX-License-Identifier: GPL-3.0-or-later
"""What roles and modules say of their options is what they do with them."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
import types
from fnmatch import fnmatch
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import yaml

TOP = Path(__file__).parents[2]
ROLES = sorted(path.parent.name for path in TOP.glob("roles/*/meta"))
MODULES = sorted(path.stem for path in TOP.glob("plugins/modules/*.py"))
PACKAGE = "ansible_collections.mlhost.limits.plugins"


def read_yaml(path: Path) -> dict[str, Any]:
    return dict(yaml.safe_load(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("role", ROLES)
def test_the_defaults_of_a_role_are_the_documented_ones(role: str) -> None:
    defaults = read_yaml(TOP / "roles" / role / "defaults" / "main.yml")
    specs = read_yaml(TOP / "roles" / role / "meta" / "argument_specs.yml")
    options = specs["argument_specs"]["main"]["options"]
    documented = {
        name: option["default"] for name, option in options.items() if "default" in option
    }
    assert documented == defaults
    assert {name for name in options if options[name].get("required")} == set(options) - set(
        defaults
    )


def test_every_variable_has_a_prefix_that_no_site_has() -> None:
    for role in ROLES:
        specs = read_yaml(TOP / "roles" / role / "meta" / "argument_specs.yml")
        names = specs["argument_specs"]["main"]["options"]
        assert all(name.startswith("mlhost_limits_") for name in names)


def test_a_variable_means_the_same_in_every_role() -> None:
    """Given once for a group of hosts, it works with each of them."""
    told: dict[str, dict[str, Any]] = {}
    for role in ROLES:
        specs = read_yaml(TOP / "roles" / role / "meta" / "argument_specs.yml")
        for name, option in specs["argument_specs"]["main"]["options"].items():
            kinds = {key: option.get(key) for key in ("type", "default", "choices")}
            assert told.setdefault(name, kinds) == kinds, (role, name)
    assert {"mlhost_limits_policy", "mlhost_limits_profile", "mlhost_limits_state"} <= set(told)


def test_a_task_of_a_role_or_a_playbook_reads_no_other_variable() -> None:
    own = r"mlhost_limits_|__mlhost_limits_|audit_folder|audit_before|preflight_run|ansible_check_mode|ansible_failed_result|hostvars"
    words = r"default|omit|bool|combine|path_join|lookup|true|false|none|if|else|is|defined|not|and"
    names = re.compile(rf"\b(?!(?:{own}))(?!(?:{words}|training|html|json)\b)[a-z]\w*")
    for path in [*TOP.glob("roles/*/tasks/*.yml"), *TOP.glob("playbooks/*.yml")]:
        for template in re.findall(r"\{\{(.*?)\}\}", path.read_text(encoding="utf-8")):
            code = re.sub(r"'[^']*'|(?<=[\w\]])\.\w+", "", template)
            assert not names.findall(code), (path, template)


def test_every_module_is_in_the_action_group() -> None:
    groups = read_yaml(TOP / "meta" / "runtime.yml")["action_groups"]
    called = [name for name in MODULES if name != "kept"]  # The others call that one.
    assert groups["limits"] == called
    takes = [name for name in called if "policy" in read_argument_spec(name)]
    assert groups["policy"] == takes


def test_what_our_commands_write_into_the_current_folder_is_not_packed() -> None:
    ignored = read_yaml(TOP / "galaxy.yml")["build_ignore"]
    endings = ("html", "json", "xml", "csv", "sarif")
    pages = [f"mlhost-limits-{kind}.{end}" for kind in ("audit", "report") for end in endings]
    for written in (*pages, "plan.json", "plan.json.done"):
        assert any(fnmatch(written, one) for one in ignored), written


def read_documentation(module: str) -> dict[str, dict[str, object]]:
    """Return the documented options, those of the shared fragment too where it takes a policy."""
    own = read_constant(TOP / "plugins" / "modules" / f"{module}.py")
    if "extends_documentation_fragment" not in own:
        assert "policy" not in own["options"]
        return dict(own["options"])
    assert own["extends_documentation_fragment"] == "mlhost.limits.policy"
    fragment = read_constant(TOP / "plugins" / "doc_fragments" / "policy.py")
    return {**fragment["options"], **own["options"]}


def read_constant(path: Path) -> dict[str, Any]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "DOCUMENTATION":
            return dict(yaml.safe_load(ast.literal_eval(node.value)))
    raise AssertionError(f"{path} has no DOCUMENTATION")


def read_argument_spec(module: str) -> dict[str, dict[str, object]]:
    """Return what the module hands to Ansible, which stops it there, or what its action takes."""
    for name in ("ansible_collections", "ansible_collections.mlhost", PACKAGE.rpartition(".")[0]):
        sys.modules.setdefault(name, types.ModuleType(name))
    for name, folder in (
        (PACKAGE, "plugins"),
        (f"{PACKAGE}.modules", "plugins/modules"),
        (f"{PACKAGE}.action", "plugins/action"),
    ):
        package = sys.modules.setdefault(name, types.ModuleType(name))
        package.__path__ = [str(TOP / folder)]
    loaded = importlib.import_module(f"{PACKAGE}.modules.{module}")
    if not hasattr(loaded, "main"):
        return dict(importlib.import_module(f"{PACKAGE}.action.{module}").ARGUMENTS)
    stop = mock.patch.object(loaded, "AnsibleModule", side_effect=InterruptedError)
    with stop as made, pytest.raises(InterruptedError):
        loaded.main()
    return dict(made.call_args.kwargs["argument_spec"])


@pytest.mark.parametrize("module", [name for name in MODULES if name != "kept"])
def test_the_options_of_a_module_are_the_documented_ones(module: str) -> None:
    documented = {
        name: {key: value for key, value in option.items() if key != "description"}
        for name, option in read_documentation(module).items()
    }
    taken = {
        name: {key: value for key, value in option.items() if key != "no_log"}
        for name, option in read_argument_spec(module).items()
    }
    assert taken == documented


@pytest.mark.parametrize("module", MODULES)
def test_a_role_offers_the_choices_of_the_module(module: str) -> None:
    documented = read_documentation(module)
    for role in ROLES:
        specs = read_yaml(TOP / "roles" / role / "meta" / "argument_specs.yml")
        for name, option in specs["argument_specs"]["main"]["options"].items():
            short = name[len("mlhost_limits_") :].replace(f"{role}_", "", 1)
            if short in documented and "choices" in option:
                assert option["choices"] == documented[short]["choices"]


@pytest.mark.parametrize("role", ROLES)
def test_a_role_describes_itself_in_one_way(role: str) -> None:
    about = read_yaml(TOP / "roles" / role / "meta" / "main.yml")["galaxy_info"]
    specs = read_yaml(TOP / "roles" / role / "meta" / "argument_specs.yml")["argument_specs"]
    assert about["description"] == specs["main"]["short_description"]


@pytest.mark.parametrize("path", sorted(TOP.glob("molecule/*/molecule.yml")), ids=str)
def test_a_side_effect_of_a_scenario_is_run(path: Path) -> None:
    """Molecule skips one in silence that its provisioner does not name."""
    scenario = read_yaml(path)
    sequence = scenario["scenario"]["test_sequence"]
    if any(step.startswith("side_effect") for step in sequence):
        assert "side_effect" in scenario["provisioner"]["playbooks"]
