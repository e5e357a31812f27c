# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare what ``preflight --try`` measures of runs with what they then took.

``python -m tests.seeds.tried_loaders`` prints how far each forecast is off.

The runs are those of ``measured_runs.json`` that have one rank and a loop of their own.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from . import drawn
from .drawn_figures import is_within
from .environments import run_with
from .product import check, describe
from .settings import shared_memory
from .trial import execute

NOT_MEASURED = ("epochs", "threads", "dataset_files")
"""What no trial sees: later epochs, threads, and files that a worker keeps."""
RUNS = 24


def list_rows(many: int) -> list[dict[str, Any]]:
    """Return runs that were measured, evenly out of all."""
    rows = [
        row
        for row in json.loads(drawn.MEASURED.read_text())
        if row["library"] == "torch" and row["options"].get("ranks", 1) == 1
    ]
    return rows[:: max(len(rows) // many, 1)][:many]


def try_row(row: dict[str, Any]) -> dict[str, Any]:
    """Return the run that a trial measures."""
    one = drawn.Drawn(row["limit"], row["library"], row["options"], returns_memory=True)
    stated = {name: one.run[name] for name in NOT_MEASURED if name in one.run}
    words = (*describe(stated), "--try", "20", "--let-write", "--json", "--")
    run = run_with("torch", "load_drawn.py", *describe({**one.options, "library": "torch"}))
    asking = check("none", *words, *run.words)
    asking = asking._replace(environment={**drawn.HEAP, **asking.environment})
    done = execute(asking.within(*shared_memory("8g")))
    return {**stated, **json.loads(done.output)["run"]}


def count(run: dict[str, Any], returns_memory: bool) -> dict[str, int]:
    """Return what the product says that a measured run takes of each."""
    from mlhost_limits.training.policy import Training

    return drawn.count_run(Training(**run, returns_memory=returns_memory))


def main() -> int:
    """Print how far each forecast is off that has measured values; the status is 1 if one is."""
    parser = argparse.ArgumentParser(prog="python -m tests.seeds.tried_loaders")
    parser.add_argument("--runs", type=int, default=RUNS)
    many = parser.parse_args().runs
    beyond = 0
    for row in list_rows(many):
        tried = try_row(row)
        off = drawn.find_off(
            drawn.Drawn(row["limit"], "torch", row["options"]),
            row["peaks"],
            count(tried, row["returns_memory"]),
        )
        wrong = [name for name, number in off.items() if not is_within(name, number)]
        beyond += bool(wrong)
        print(row["number"], row["options"], tried, off, "OFF" if wrong else "", *wrong, flush=True)
    print(f"{beyond} of {many} beyond what is wanted")
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main())
