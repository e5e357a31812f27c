# SPDX-License-Identifier: GPL-3.0-or-later
"""What verbs tell, of trees and of whole hosts, is what they told before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from . import golden
from .cases import CASES
from .records import RECORDS

pytestmark = pytest.mark.root  # Mount namespaces are root's.


@pytest.mark.parametrize("name", sorted(RECORDS.keys() - CASES.keys() - {"refusals"}))
def test_what_is_told_is_what_is_kept(name: str, tmp_path: Path) -> None:
    """See :mod:`tests.verbs.golden` for how to keep new ones; of sections and of
    refusals, see their own tests."""
    assert golden.format_record(RECORDS[name](tmp_path)) == golden.read_record(name)


def test_nothing_is_kept_that_nobody_compares() -> None:
    assert {path.stem for path in golden.FOLDER.iterdir()} == set(RECORDS)


def test_nothing_that_is_kept_names_this_machine() -> None:
    """A record must be the same wherever it is made."""
    for name in RECORDS:
        text = golden.read_record(name)
        assert str(Path(__file__).parents[2]) not in text
        assert "/tmp/pytest" not in text
        json.loads(text)
