# SPDX-License-Identifier: GPL-3.0-or-later
"""Try every case; write ``build/seeds.json``, end with a line of figures."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

from . import (
    cgroup,
    checkpoints,
    collectives,
    dataloader,
    embedding_cache,
    webdataset,
    worker_rule,
    zero3_offload,
    zero_floors,
)
from .trial import COLUMNS, TOP, CannotShowError, Outcome, Trial, try_trial

FILE = TOP / "build" / "seeds.json"
CASES = {
    "dataloader": dataloader.TRIALS,
    "deepspeed-zero3-offload": zero3_offload.TRIALS,
    "webdataset": webdataset.TRIALS,
    "simpletuner": embedding_cache.TRIALS,
    "transformers": checkpoints.TRIALS,
}
RULES = {
    "worker_rule": worker_rule.try_rule,
    "zero_floors": zero_floors.try_rule,
    "collectives": collectives.try_rule,
}


def main() -> int:
    """Try what is asked for; the status is 0 where every column of all of it is true."""
    parser = argparse.ArgumentParser(prog="python -m tests.seeds", description=__doc__)
    names = [*CASES, *RULES]
    parser.add_argument("--only", action="append", choices=names, help="may be repeated")
    wanted = parser.parse_args().only or names
    FILE.parent.mkdir(exist_ok=True)
    found = json.loads(FILE.read_text()) if FILE.exists() else {}
    try:
        for name in wanted:
            found[name] = try_case(CASES[name]) if name in CASES else try_rule(name)
            FILE.write_text(json.dumps(found, indent=2) + "\n")
    finally:
        cgroup.remove_all()
    good = [name for name in wanted if found[name]["holds"]]
    print(f"seeds: {len(good)} of {len(wanted)} hold; {FILE}")
    return 0 if good == wanted else 1


def try_case(trials: Iterable[Callable[[], Trial]]) -> dict[str, Any]:
    """Try every failure of a case; a column is true where it is true for each of them."""
    outcomes: list[Outcome] = []
    not_shown: list[str] = []
    for make in trials:
        start = time.monotonic()
        try:
            outcome = try_trial(make())
        except CannotShowError as exc:
            not_shown.append(str(exc))
            print(f"NOT SHOWN {exc}", flush=True)
            continue
        outcomes.append(outcome)
        tell(outcome, time.monotonic() - start)
    columns = {name: all(one.columns[name] for one in outcomes) for name in COLUMNS}
    return {
        **columns,
        "holds": all(columns.values()) and not not_shown,
        "trials": [one._asdict() for one in outcomes],
        "not_shown": not_shown,
    }


def try_rule(name: str) -> dict[str, Any]:
    """Compare one rule with the real thing, and print its figures."""
    try:
        result = RULES[name]()
    except CannotShowError as exc:
        result = {"holds": False, "not_shown": [str(exc)]}
    figures = {key: value for key, value in result.items() if not isinstance(value, list)}
    print(f"{name}: {', '.join(f'{value} {key}' for key, value in figures.items())}", flush=True)
    return result


def tell(outcome: Outcome, seconds: float) -> None:
    """Print a line for a failure and, where it is not as it should be, all that was printed."""
    columns = ", ".join(f"{'' if true else 'NOT '}{name}" for name, true in outcome.columns.items())
    print(f"{outcome.name}: {columns} ({seconds:.0f} s)", flush=True)
    if not outcome.holds:
        for step, text in outcome.printed.items():
            print(f"--- {step}\n{text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
