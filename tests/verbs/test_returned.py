# SPDX-License-Identifier: GPL-3.0-or-later
"""What the documentation of a module says that it returns is what it returns."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from mlhost_limits.fleet_view import Fleet
from mlhost_limits.rollout import Rollout
from mlhost_limits.verbs import CHECK_ARGUMENTS, run_check
from mlhost_limits.workspace.provision import Outcome

from plugins.action import waves
from plugins.action.report import describe
from plugins.plugin_utils.library import read_finder

TOP = Path(__file__).parents[2]
GOLDEN = Path(__file__).with_name("golden")
OF_ANSIBLE = {"changed", "diff", "failed", "msg", "skipped", "warnings"}
"""What every module may return."""
MARKS = {"check": "findings", "provision": "in_effect", "monitor": "files"}
"""A key that only results of this module have, among the files that are looked at."""
MODULES = ("check", "kept", "monitor", "provision", "report", "waves", "workspace")
KINDS: Mapping[str, type] = {"list": list, "dict": dict, "str": str, "bool": bool, "int": int}


def read_returned(module: str) -> dict[str, dict[str, Any]]:
    source = (TOP / "plugins" / "modules" / f"{module}.py").read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "RETURN":
            return dict(yaml.safe_load(ast.literal_eval(node.value)))
    raise AssertionError(f"{module} has no RETURN")


def find_results(data: Any, mark: str) -> Iterator[dict[str, Any]]:
    """Yield what a module returned, wherever it was recorded."""
    if isinstance(data, dict) and mark in data:
        yield data
    elif isinstance(data, (dict, list)):
        for below in data.values() if isinstance(data, dict) else data:
            yield from find_results(below, mark)


def is_returned(when: str, result: Mapping[str, Any]) -> bool:
    """Tell whether a key is in a result, by what its documentation says of when."""
    if "problems" in result:
        return when in ("always", "failure", "when it is refused")
    of_step = "shows_jobs" in result
    return when not in ("failure", "when it is refused", f"with O({'plan' if of_step else 'step'})")


def list_waves() -> list[dict[str, Any]]:
    """Return what following a plan returns, and what becomes of a node that is not drained."""
    stated = {"by_hand": False, "override": False, "wave": None}
    action = waves.ActionModule.__new__(waves.ActionModule)
    step = {"rollout": {}, "reboot": False, "step": "drain", "drain": ""}
    node = action._take_step(step, {"inventory_hostname": "a1"})  # type: ignore[no-untyped-call]
    told = waves.describe(Rollout((), (), (), (), frozenset()), stated, set())  # type: ignore[no-untyped-call]
    return [{**told, "written": "2026-11-26T12:00:00Z"}, {**node, "msg": ""}]


def run_kept(folder: Path) -> dict[str, Any]:
    """Return what a host answers that keeps no library."""
    words = {
        "verb": "check",
        "digest": "0" * 64,
        "finder": f"{read_finder()}\ndef name_folder(): return {str(folder / 'none')!r}\n",
        "_ansible_check_mode": True,
        "_ansible_no_log": True,
    }
    source = (TOP / "plugins" / "modules" / "kept.py").read_text(encoding="ascii")
    source = source.replace("<<INCLUDE_ANSIBLE_MODULE_JSON_ARGS>>", json.dumps(words))
    done = subprocess.run([sys.executable, "-"], input=source, capture_output=True, text=True)
    return dict(json.loads(done.stdout))


def list_results(module: str) -> list[dict[str, Any]]:
    """Return real results: of made-up hosts, or of what makes them."""
    if module == "report":
        return [dict(describe(Fleet(), ["/srv/limits.html"], "never"))]  # type: ignore[no-untyped-call]
    if module == "waves":
        return list_waves()
    if module == "kept":
        return [run_kept(Path("/nowhere"))]
    if module == "workspace":
        return [dict(Outcome((), (), ("a.pt",), ("a note",)).as_result())]
    names = ["monitor.json"] if module == "monitor" else [one.name for one in GOLDEN.iterdir()]
    recorded = [json.loads((GOLDEN / name).read_text(encoding="utf-8")) for name in names]
    return [found for data in recorded for found in find_results(data, MARKS[module])]


def test_every_module_is_looked_at() -> None:
    assert {path.stem for path in (TOP / "plugins" / "modules").glob("*.py")} == set(MODULES)


def test_a_refused_check_returns_what_it_documents() -> None:
    given = {name: one.get("default") for name, one in CHECK_ARGUMENTS.items()}
    result = run_check({**given, "policy": {"sesions": 1}}, False)
    documented = read_returned("check")
    told = {key for key, one in documented.items() if is_returned(one["returned"], result)}
    assert set(result) - OF_ANSIBLE == told == {"problems"}


@pytest.mark.parametrize("module", MODULES)
def test_what_is_returned_is_documented_and_what_is_documented_is_returned(module: str) -> None:
    documented = read_returned(module)
    results = list_results(module)
    assert results
    for result in results:
        always = {key for key, told in documented.items() if is_returned(told["returned"], result)}
        assert set(result) - OF_ANSIBLE == always - OF_ANSIBLE
        for key in always:
            told = documented[key]
            assert isinstance(result[key], KINDS[told["type"]]), key
            if told["type"] == "list":
                assert all(isinstance(one, KINDS[told["elements"]]) for one in result[key]), key


@pytest.mark.parametrize("module", ["check", "provision", "report"])
def test_a_sample_has_the_shape_of_real_results(module: str) -> None:
    compared = set()
    for key, told in read_returned(module).items():
        for result in list_results(module):
            if not is_returned(told["returned"], result):
                continue

            for path, sample, real in pair(key, told.get("sample"), result[key]):
                assert set(sample) == set(real), path
                compared.add(path)
    assert (
        compared
        >= {
            "check": {"findings[]", "findings[].causes[]", "findings[].causes[].remedy", "summary"},
            "provision": {"sysctls[]"},
            "report": {"summary"},
        }[module]
    )


def pair(path: str, sample: Any, real: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the mappings of a sample beside those of a result at the same place."""
    if isinstance(sample, dict) and isinstance(real, dict) and path != "connection":
        yield path, sample, real
        for key in set(sample) & set(real):
            yield from pair(f"{path}.{key}", sample[key], real[key])
    elif isinstance(sample, list) and isinstance(real, list) and sample:
        for one in real:
            yield from pair(f"{path}[]", sample[0], one)
