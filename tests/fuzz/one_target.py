# SPDX-License-Identifier: GPL-3.0-or-later
"""Let libFuzzer look for a text that a parser neither reads nor refuses in one sentence."""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[2]))
import tests.conftest  # noqa: F401 - it makes the library importable

with atheris.instrument_imports(include=["mlhost_limits"]):
    from tests.fuzz.targets import feed

NAME = sys.argv.pop(1)


def take(raw: bytes) -> None:
    feed(NAME, raw.decode("utf-8", "surrogateescape"))


atheris.Setup(sys.argv, take)
atheris.Fuzz()
