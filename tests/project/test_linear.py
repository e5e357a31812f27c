# SPDX-License-Identifier: GPL-3.0-or-later
"""What a file of many lines costs grows with its lines, and no faster: calls are counted."""

from __future__ import annotations

import contextlib
import io
import sys
from pathlib import Path
from types import FrameType

import pytest
from mlhost_limits.cli import main

from tests.bench.lines import COMMANDS, FILES, make_tree

FEW, MANY = 400, 1600
_CHEAP = 1.25
"""What a line may cost among many, to what it costs among few."""


def count_calls(tree: Path) -> int:
    """Return how many functions of any kind the commands call."""
    calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        sys.setprofile(count)
        try:
            for words in COMMANDS:
                main([*words, "--root", str(tree)])
        finally:
            sys.setprofile(None)
    return calls


@pytest.mark.parametrize("name", FILES)
@pytest.mark.slow
def test_calls_grow_with_the_lines(name: str, tmp_path: Path) -> None:
    path, make = FILES[name]
    _warm, none, few, many = (
        count_calls(make_tree(tmp_path / f"{step}", path, make(count)))
        for step, count in enumerate((1, 1, FEW, MANY))
    )
    assert many - none <= _CHEAP * (MANY / FEW) * max(few - none, FEW)
