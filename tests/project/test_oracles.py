# SPDX-License-Identifier: GPL-3.0-or-later
"""An oracle that did not compare its number of cases is red, and none is skipped by itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.oracle import record as figures
from tests.oracle.__main__ import KINDS, WHERE

TOP = Path(__file__).parents[2]
ORACLES = [TOP / path for path in WHERE]
_SKIPS = re.compile(r"pytest\.skip|skipif|xfail|importorskip|mark\.skip")
_KIND = re.compile(r"\b(?:record|report|judge)\(\s*\"([a-z -]+)\"")


@pytest.mark.parametrize(
    ("cases", "unknown", "of", "red"),
    [
        (100, 0, 100, False),
        (100, 25, 100, False),
        (99, 0, 100, True),
        (0, 0, 0, True),
        (100, 26, 100, True),
        (100, 100, 100, True),
    ],
)
def test_fewer_cases_than_there_were_to_be_are_red(
    cases: int, unknown: int, of: int, red: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "FIGURES", tmp_path / "oracle.json")
    if red:
        with pytest.raises(AssertionError, match=r"of them|cases were compared|are unknown"):
            figures.record("x", "y", cases, 0, unknown, of=of)
    else:
        figures.record("x", "y", cases, 0, unknown, of=of)
    assert (tmp_path / "oracle.json").exists() is not red


@pytest.mark.parametrize("path", ORACLES, ids=lambda path: path.name)
def test_no_oracle_is_skipped_in_a_whole_run(path: Path) -> None:
    """What is left out for want of time or of root is left out by ``record``, which knows when."""
    assert not _SKIPS.search(path.read_text())


def test_a_whole_run_misses_what_nobody_compared() -> None:
    """Each kind that an oracle records is one that the run asks for in the end."""
    found = {kind for path in ORACLES for kind in _KIND.findall(path.read_text())}
    assert found - {"here"} == set(KINDS)
