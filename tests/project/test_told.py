# SPDX-License-Identifier: GPL-3.0-or-later
"""The documents say as much as was shown: of distributions, of training runs, of what others take."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from mlhost_limits.core import distribution

from tests.bench.values import GUEST, format_variables
from tests.host import built_like, upstream_pam
from tests.places.sessions.lockouts import LOCKOUTS
from tests.releases.table import split_page
from tests.seeds.__main__ import CASES
from tests.seeds.worker_rule import GRID
from tests.seeds.zero_floors import list_settings
from tests.worlds.trees import TREES

TOP = Path(__file__).parents[2]
BENCH = TOP / "tests" / "bench"
_CODE = re.compile("`[^`]*`")
_MARKED = re.compile(r"\*[^*]+\*")


def read_rows(text: str) -> list[list[str]]:
    """Return the cells of the tables of a page, without their heads."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    heads = {index for index, line in enumerate(lines) if set(line) <= set("| -")}
    heads |= {index - 1 for index in heads}
    return [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for index, line in enumerate(lines)
        if index not in heads
    ]


def test_how_much_was_shown_is_said_of_each_distribution() -> None:
    page = (TOP / "docs/supported.md").read_text(encoding="utf-8")
    shown = page.partition("## How much was shown of each")[2]
    shown, _heading, known = shown.partition("### What is known of each")
    rows = {name: (how, what) for name, how, what in read_rows(shown)}
    assert list(rows) == [row[0] for row in read_rows(known.partition("## Controllers")[0])]
    families = {find_family(name) for name in rows}
    assert families - {""} >= set(distribution._FACTS)
    booted = {row[0].lower() for row in read_rows(split_page(page, "releases")[1])}
    trees = {name.lower().replace("red hat", "rhel") for name in TREES}
    built = {name for name, (how, _what) in rows.items() if how == "built like"}
    assert all(what for how, what in rows.values() if how == "built like")
    assert Path(upstream_pam.__file__ or "").relative_to(TOP).as_posix() in shown
    assert built == {name.replace("like-rhel", "rhel ") for name in built_like.FAMILIES}
    assert Path(built_like.__file__ or "").relative_to(TOP).as_posix() in shown
    assert built <= trees
    expected = {**dict.fromkeys(rows, "sources alone"), **dict.fromkeys(trees, "files alone")}
    expected.update(dict.fromkeys(booted, "booted"))
    expected.update(dict.fromkeys(built, "built like"))
    assert {name: how for name, (how, _what) in rows.items()} == expected


def find_family(name: str) -> str:
    own, _space, version = name.partition(" ")
    found = distribution.find_distribution({"ID": own, "VERSION_ID": version})
    return str(found.family)


def test_what_only_a_whole_run_shows_is_marked_among_the_lockouts() -> None:
    page = (TOP / "docs/lockouts.md").read_text(encoding="utf-8")
    rows = read_rows(page)
    marked = [mark for row in rows for mark in _MARKED.findall(_CODE.sub("x", row[0]))]
    assert len(marked) == sum(not one.share for one in LOCKOUTS)
    assert page.count("| **U** ") == sum(upstream_pam.INSTALL in one.make for one in LOCKOUTS)


def test_the_runs_that_fail_are_as_many_as_are_tried() -> None:
    page = (TOP / "docs/cases.md").read_text(encoding="utf-8")
    told = {row[0].strip("`"): row[-1] for row in read_rows(page.partition("Held means")[0])}
    assert told == {name: f"{len(trials)} of {len(trials)}" for name, trials in CASES.items()}
    assert f"of {len(GRID)} settings of soft limit" in page
    assert f"{len(list(list_settings()))} settings, none differs" in page


@pytest.mark.parametrize(
    ("page", "said", "playbook"),
    [
        ("docs/comparison.md", "makes {} module runs", "peers.yml"),
        ("docs/comparison.md", "and {} at their best", "peers_best.yml"),
        ("README.md", ", {} runs of stock modules that read the same", "peers_facts.yml"),
    ],
)
def test_what_others_take_is_counted(page: str, said: str, playbook: str) -> None:
    text = " ".join((TOP / page).read_text(encoding="utf-8").split())
    assert said.format(count_runs(playbook)) in text


def count_runs(playbook: str) -> int:
    """Return how many modules a playbook of the benchmark runs where everything is new."""
    (play,) = yaml.safe_load((BENCH / playbook).read_text())
    gathering = int(play["gather_facts"])
    return gathering + sum(map(count_entries, [*play["tasks"], *play.get("handlers", [])]))


def count_entries(task: dict[str, Any]) -> int:
    loop = task.get("loop")
    if loop is None or isinstance(loop, list):
        return len(loop or [task])
    if "community.general.pam_limits" in task:
        return len(str(format_variables(GUEST)["bench_limits_file"]).splitlines())
    assert "bench_sysctls" in loop
    return len(GUEST.sysctls)
