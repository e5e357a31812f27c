# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports of made-up hosts are lists of things to do: narrow, each edit once, one edit of a line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.faults.paste import read_script

from . import golden
from .records import RECORDS

WIDTH = 80
EDIT = re.compile(r"sed -i '?([0-9]+)(?:c|s/\^/# /)")
EDITED = re.compile(r"readlink -f (\S+) ")


def find_results(data: Any, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what a check returned, wherever it was recorded, and where that is."""
    if isinstance(data, dict) and "brief" in data and "findings" in data:
        yield path, data
    elif isinstance(data, (dict, list)):
        pairs = data.items() if isinstance(data, dict) else enumerate(data)
        for key, below in pairs:
            yield from find_results(below, f"{path}/{key}")


RESULTS = dict(
    found for name in RECORDS for found in find_results(json.loads(golden.read_record(name)), name)
)


def list_edits(result: dict[str, Any]) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield which line of which file a command writes, and the command."""
    for finding in result["findings"]:
        for cause in finding["causes"] if finding["status"] == "fail" else ():
            for words in cause["remedy"]["commands"]:
                edit, edited = EDIT.search(words[-1]), EDITED.search(words[-1])
                if edit and edited:
                    yield (edited[1], edit[1]), words[-1]


@pytest.mark.parametrize("name", RESULTS)
def test_a_report_is_narrow_and_says_each_edit_once(name: str) -> None:
    lines = RESULTS[name]["brief"]
    assert [line for line in lines if len(line) > WIDTH] == []
    script = re.sub(r"\\\n *", "", read_script(lines)).splitlines()
    edits = [line for line in script if " >> " in line or "sed -i" in line]
    assert len(edits) == len(set(edits))


@pytest.mark.parametrize("name", RESULTS)
def test_a_line_is_written_in_one_way(name: str) -> None:
    """The second of two edits of a line would find it changed, and do nothing."""
    ways: dict[tuple[str, str], set[str]] = {}
    for line, command in list_edits(RESULTS[name]):
        ways.setdefault(line, set()).add(command)
    assert {line: told for line, told in ways.items() if len(told) > 1} == {}


def test_there_are_reports_with_edits_of_lines() -> None:
    assert len(RESULTS) > 60
    assert sum(bool(list(list_edits(one))) for one in RESULTS.values()) > 10
