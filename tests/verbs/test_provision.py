# SPDX-License-Identifier: GPL-3.0-or-later
"""Each section is made true once, stays as it is, and is taken back to the byte."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from . import golden
from .cases import CASES
from .node import State
from .records import record_walk
from .walk import Step, Walk

Walks = Callable[[str], Walk]
pytestmark = pytest.mark.parametrize("name", CASES)


def files(state: State) -> State:
    """Return what is on disk; the running values of the kernel are not taken back."""
    return {path: content for path, content in state.items() if not path.startswith("/proc/")}


def test_check_mode_writes_nothing_and_tells_what_a_run_does(name: str, walks: Walks) -> None:
    one = walks(name)
    assert one.asked.after == one.before
    assert drop_words(one.asked.told) == drop_words(one.present.told)
    assert one.asked_back.after == one.again.after
    assert drop_words(one.asked_back.told) == drop_words(one.absent.told)


def drop_words(told: dict[str, Any]) -> dict[str, Any]:
    """Return a result without what says whether it was done: would change, changed."""
    return {key: value for key, value in told.items() if key not in ("msg", "warnings")}


def test_check_mode_tells_no_daemon(name: str, walks: Walks) -> None:
    for step in (walks(name).asked, walks(name).asked_back):
        assert not [call for call in step.calls if call.startswith("systemctl")]


def test_a_second_run_changes_nothing(name: str, walks: Walks) -> None:
    one = walks(name)
    for step in (one.again, one.absent_again):
        assert not step.told["changed"]
        assert not step.told["diff"]
    assert one.again.after == one.present.after
    assert one.absent_again.after == one.absent.after


def test_a_run_writes_the_files_that_it_names(name: str, walks: Walks) -> None:
    one = walks(name)
    assert one.present.told["changed"]
    changed = find_changed(files(one.before), files(one.present.after))
    assert changed == set(one.present.told["files"])
    gone = find_changed(files(one.again.after), files(one.absent.after))
    assert gone == set(one.absent.told["files"])


def find_changed(before: State, after: State) -> set[str]:
    return {path for path in {*before, *after} if before.get(path) != after.get(path)}


def test_absent_leaves_every_file_as_it_was(name: str, walks: Walks) -> None:
    assert files(walks(name).absent.after) == files(walks(name).before)


def test_the_diff_is_that_of_the_files(name: str, walks: Walks) -> None:
    """What a diff shows is the content; where secrets may be it is redacted, not left out."""
    for step in (walks(name).present, walks(name).absent):
        shown = {diff["after_header"].partition(" ")[0] for diff in step.told["diff"]}
        assert set(step.told["files"]) <= shown
        assert all(diff["before"] != diff["after"] for diff in step.told["diff"])


def test_a_check_finds_what_was_provisioned(name: str, walks: Walks) -> None:
    """Fewer findings fail once a section was made true."""
    before, after = (
        count_failing(step) for step in (walks(name).check_before, walks(name).check_after)
    )
    assert after < before


def count_failing(step: Step) -> int:
    return sum(finding["status"] == "fail" for finding in step.told["findings"])


def test_every_result_is_the_one_that_is_kept(name: str, walks: Walks) -> None:
    """See :mod:`tests.verbs.golden` for how to keep new ones."""
    assert golden.format_record(record_walk(walks(name))) == golden.read_record(name)


def test_nothing_is_left_of_a_run(name: str, walks: Walks, tmp_path: Path) -> None:
    for step in walks(name)[1:]:
        assert isinstance(step, Step)
        assert not [path for path in step.after if ".mlhost-" in path]
