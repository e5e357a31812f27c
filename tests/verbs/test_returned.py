# SPDX-License-Identifier: GPL-3.0-or-later
"""What the documentation of a module says that it returns is what it returns."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from mlhost_limits.fleet_view import Fleet
from mlhost_limits.workspace.provision import Outcome

from plugins.action.report import describe

TOP = Path(__file__).parents[2]
GOLDEN = Path(__file__).with_name("golden")
OF_ANSIBLE = {"changed", "diff", "failed", "msg", "warnings"}
"""What every module may return."""
MARKS = {"check": "findings", "provision": "in_effect", "monitor": "files"}
"""A key that only results of this module have, among the files that are looked at."""
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


def list_results(module: str) -> list[dict[str, Any]]:
    """Return real results: of made-up hosts, or of what makes them."""
    if module == "report":
        return [dict(describe(Fleet(), ["/srv/limits.html"], "never"))]  # type: ignore[no-untyped-call]
    if module == "workspace":
        return [dict(Outcome((), (), ("a.pt",), ("a note",)).as_result())]
    names = ["monitor.json"] if module == "monitor" else [one.name for one in GOLDEN.iterdir()]
    recorded = [json.loads((GOLDEN / name).read_text(encoding="utf-8")) for name in names]
    return [found for data in recorded for found in find_results(data, MARKS[module])]


@pytest.mark.parametrize("module", ["check", "monitor", "provision", "report", "workspace"])
def test_what_is_returned_is_documented_and_what_is_documented_is_returned(module: str) -> None:
    documented = read_returned(module)
    always = {key for key, told in documented.items() if told["returned"] != "failure"}
    results = list_results(module)
    assert results
    for result in results:
        assert set(result) - OF_ANSIBLE == always
        for key in always:
            told = documented[key]
            assert isinstance(result[key], KINDS[told["type"]]), key
            if told["type"] == "list":
                assert all(isinstance(one, KINDS[told["elements"]]) for one in result[key]), key


@pytest.mark.parametrize("module", ["check", "provision", "report"])
def test_a_sample_has_the_shape_of_real_results(module: str) -> None:
    compared = set()
    for key, told in read_returned(module).items():
        for result in list_results(module) if told["returned"] != "failure" else ():
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
