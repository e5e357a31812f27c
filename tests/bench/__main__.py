# SPDX-License-Identifier: GPL-3.0-or-later
"""Time this collection against the stock modules and a ping; write build/bench.json and a table."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from .audit import measure_audit
from .crowd import measure_crowd
from .figures import compute_ratios, format_table
from .memory import measure_peaks
from .node import measure_node
from .peers import install_peers
from .readme import keep
from .series import measure
from .target import guest_target, native_target
from .training import measure_training

ROUNDS = 5
_LEAST_TOLD = 3
"""Fewer rounds have no median that is worth a place in README."""

BUILD = Path("build").absolute()
_OURS = str(BUILD / "collections")


def main() -> int:
    """Run what is asked for, and keep its figures; those of a whole run go into README."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--runs", type=int, default=ROUNDS, help="rounds (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="one round, to see that it works")
    parser.add_argument("--only", choices=["guest", "native"], help="one of the two targets")
    given = parser.parse_args()
    rounds = 1 if given.quick else given.runs
    if rounds < 1:
        parser.error("--runs takes 1 or more")
    ours = os.environ.get("ANSIBLE_COLLECTIONS_PATH", _OURS)
    collections = f"{ours}:{install_peers(BUILD / 'peers')}"
    figures: dict[str, float] = {"runs": rounds}
    if given.only != "native":
        figures.update(_measure_guest(collections, rounds))
        _write(figures)  # The other target takes minutes more, and may be interrupted.
    if given.only != "guest":
        native = _measure_native(collections, rounds)
        figures.update({f"native_{name}": value for name, value in native.items()})
        figures.update(measure_crowd())
        figures.update(measure_node())
        figures.update(measure_training())
        figures.update(measure_audit(rounds))
        _write(figures)
    if rounds >= _LEAST_TOLD and not given.only:
        keep(figures)
    print(format_table(figures))
    return 0


def _write(figures: dict[str, float]) -> None:
    rounded = {name: round(value, 3) for name, value in figures.items()}
    (BUILD / "bench.json").write_text(json.dumps(rounded, indent=2, sort_keys=True) + "\n")


def _measure_guest(collections: str, rounds: int) -> dict[str, float]:
    with guest_target(BUILD / "bench" / "guest", collections) as target:
        peaks = measure_peaks(target)
        seconds = measure(target, rounds)
        return {**peaks, **seconds, **compute_ratios(seconds)}


def _measure_native(collections: str, rounds: int) -> dict[str, float]:
    with native_target(BUILD / "bench" / "native", collections) as target:
        seconds = measure(target, rounds)
        return {**seconds, **compute_ratios(seconds)}


if __name__ == "__main__":
    sys.exit(main())
