# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the tables of docs/supported.md and build/releases.json from runs on real hosts."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from .controllers import CONTROLLERS, run_controllers
from .debian import RELEASES, SCENARIOS, run_releases
from .table import update_table

TOP = Path(__file__).parents[2]
PAGE = TOP / "docs" / "supported.md"
RESULT = TOP / "build" / "releases.json"

Rows = Iterator[tuple[bool, dict[str, str]]]


def main() -> int:
    options = _parse_options()
    if options.kind == "controllers":
        rows: Rows = run_controllers(options.only or list(CONTROLLERS))
    else:
        rows = run_releases(options.only or list(RELEASES), options.scenario or ["default"])
    good = True
    for passed, row in rows:
        good = good and passed
        record(options.kind, row)
    print(f"{PAGE} and {RESULT} are written")
    return 0 if good else 1


def record(kind: str, row: dict[str, str]) -> None:
    """Keep a row at once: what follows it takes long and may be interrupted."""
    PAGE.write_text(update_table(PAGE.read_text(), kind, [row]))
    RESULT.parent.mkdir(exist_ok=True)
    kept = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    first = next(iter(row.values()))
    rows = {next(iter(one.values())): one for one in kept.get(kind, [])}
    kept[kind] = list({**rows, first: {**rows.get(first, {}), **row}}.values())
    RESULT.write_text(json.dumps(kept, indent=2) + "\n")


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python3 -m tests.releases", description=__doc__)
    kinds = parser.add_subparsers(dest="kind", required=True)
    releases = kinds.add_parser("releases", help="scenarios on each Debian release")
    releases.add_argument("--only", action="append", choices=list(RELEASES))
    releases.add_argument(
        "--scenario", action="append", choices=SCENARIOS, help="by default default"
    )
    controllers = kinds.add_parser("controllers", help="the collection run by each controller")
    controllers.add_argument("--only", action="append", choices=list(CONTROLLERS))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
