# SPDX-License-Identifier: GPL-3.0-or-later
"""What we read in crio.conf and its drop-ins is what CRI-O itself makes of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mlhost_limits.core.values import UNLIMITED
from mlhost_limits.crio.crio_conf import (
    DEFAULT_TASKS,
    DROP_INS,
    MAIN,
    OWN,
    order_files,
    read_all,
    read_conf,
)
from mlhost_limits.podman.containers_conf import ConfError, find_tasks, resolve

R = "[crio.runtime]\n"
RECORDED = json.loads(Path(__file__).with_name("recorded.json").read_text(encoding="utf-8"))
"""Made-up sets of files, and what ``pkg/config`` of CRI-O 1.37 gave a container with them.

Limits by item and the bound on tasks, ``null`` where it did not start. Recorded on 2026-11-27.
"""


@pytest.mark.parametrize("case", RECORDED, ids=range(len(RECORDED)))
def test_files_give_what_crio_gave(case: dict[str, Any]) -> None:
    files = {path: text.encode().decode("latin-1") for path, text in case["files"].items()}
    if case["gives"] is None:
        with pytest.raises(ConfError):
            read_all(files)
        return
    given = resolve(read_all(files))
    limits = {item: list(one.limit) for item, one in given.ulimits.items()}
    assert [limits, find_tasks(given.tasks, DEFAULT_TASKS)] == case["gives"]


def test_every_file_below_the_folder_is_read_in_the_order_of_a_walk() -> None:
    """Sorted in each folder, so that ``a/x`` is before ``a-/x``; its name may end with anything."""
    names = (".hidden", "10.conf~", "99-mlhost-limits.conf", "B.conf", "a/x", "a-/x", "a.conf")
    paths = [MAIN, *(f"{DROP_INS}/{name}" for name in names)]
    assert order_files([*reversed(paths), "/etc/crio/other", f"{DROP_INS}.x/y"]) == paths


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('default_ulimits = "nofile=1"', "takes a list of texts"),
        ("default_ulimits = [1]", "takes a list of texts"),
        ("default_ulimits = [{append=true}]", "takes a list of texts"),
        ("pids_limit = 1.5", "takes a whole number"),
        ("pids_limit = 9223372036854775808", "beyond every number"),
        ("\xff = 1", "is not UTF-8"),
        ("x = [", "no value"),
    ],
)
def test_what_crio_cannot_read_is_named_with_its_line(text: str, reason: str) -> None:
    with pytest.raises(ConfError, match=reason) as caught:
        read_conf(MAIN, R + text)
    assert caught.value.at.path == MAIN


def test_a_bad_entry_counts_only_in_the_list_that_counts() -> None:
    """``LoadUlimits()`` reads the limits once all files are read."""
    files = {MAIN: f'{R}default_ulimits = ["nofile=2",\n"NOFILE=1"]\n'}
    with pytest.raises(ConfError, match=f"{MAIN}:3: 'NOFILE=1' is not a limit"):
        read_all(files)
    assert resolve(read_all({**files, OWN: f"{R}default_ulimits = []\n"})).ulimits == {}


def test_no_bound_on_tasks_is_the_default_and_0_is_systemds() -> None:
    given = [resolve([read_conf(MAIN, R + text)]).tasks for text in ("", "pids_limit = 0")]
    assert [find_tasks(at, DEFAULT_TASKS) for at in given] == [UNLIMITED, None]
