# SPDX-License-Identifier: GPL-3.0-or-later
"""The real DataLoader goes on with fewer workers, where ``make seeds`` has installed torch."""

from __future__ import annotations

import json
import subprocess

import pytest

from .trial import BUILD, RUNS, TOP

PYTHON = BUILD / "venv" / "torch" / "bin" / "python"


@pytest.mark.slow
@pytest.mark.skipif(not PYTHON.exists(), reason="needs torch, which make seeds installs")
@pytest.mark.parametrize(("soft", "most"), [(4096, 8), (120, 4), (60, 4), (40, 1)])
def test_three_epochs_give_the_same_batches(soft: int, most: int) -> None:
    words = [
        str(PYTHON),
        str(RUNS / "guard_loader.py"),
        str(TOP / "plugins/module_utils"),
        str(soft),
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=120)
    is_same, workers = json.loads(done.stdout.splitlines()[-1])
    assert is_same
    assert workers <= most
    assert (workers == 8) == (soft == 4096)
