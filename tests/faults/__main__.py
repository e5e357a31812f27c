# SPDX-License-Identifier: GPL-3.0-or-later
"""Make every fault, alone and in pairs; write ``build/faults.json``, end with a line of figures."""

from __future__ import annotations

import argparse
import json
import re
import signal
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tests.host.snapshot import Snapshot

from .base import saved_host
from .codes import count_codes, find_broken_words, find_unexcused
from .every import FAULTS, PAIRS, SEED, choose_pairs
from .lanes import in_lanes, leave
from .quiet import QUIET_HOSTS, Quiet, try_quiet
from .trial import Result, try_fault, try_pair

FILE = Path(__file__).parents[2] / "build" / "faults.json"
ENOUGH = 0.95
BY_LINE = {fault.name for fault in FAULTS if all(culprit.line for culprit in fault.culprits)}
"""Faults that count as named for their line alone; of the others some words may say it."""

LANES = 2


def main() -> int:
    """Run what is asked for; the status is 0 where all of it is named and mended."""
    signal.signal(signal.SIGTERM, leave)
    given = parse_arguments()
    wanted = re.compile(given.only)
    faults = [fault for fault in FAULTS if wanted.search(fault.name)]
    pairs = [
        pair
        for pair in choose_pairs(count=given.pairs, seed=given.seed)
        if wanted.search(f"pair: {pair[0].name} + {pair[1].name}")
    ]
    quiet = [name for name in QUIET_HOSTS if wanted.search(f"quiet: {name}")]
    if given.list:
        for fault in faults:
            print(fault.name)
        for one, other in pairs:
            print(f"pair: {one.name} + {other.name}")
        for name in quiet:
            print(f"quiet: {name}")
        return 0
    single: list[Result] = []
    double: list[Result] = []
    calm: list[Quiet] = []
    try:
        for extra in dict.fromkeys(["", *(fault.extra for fault in faults)]):
            mine = [fault for fault in faults if fault.extra == extra]
            if not (mine or (not extra and (pairs or quiet))):
                continue
            with saved_host(extra) as saved:
                single.extend(tell(in_lanes(given.lanes, partial(try_fault, saved), mine)))
                if not extra:
                    trials = in_lanes(given.lanes, partial(try_pair, saved), pairs)
                    double.extend(tell(trials, "pair: "))
                    calm.extend(tell_quiet(saved, quiet, given.lanes))
    finally:
        status = report(single, double, calm, whole=not given.only)
    return status


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--only", default="", metavar="REGEX", help="of names, as --list has them")
    parser.add_argument("--list", action="store_true", help="print the names and end")
    parser.add_argument("--pairs", type=int, default=PAIRS, help="how many (default: %(default)s)")
    parser.add_argument(
        "--seed", type=int, default=SEED, help="of the pairs (default: %(default)s)"
    )
    parser.add_argument(
        "--lanes", type=int, default=LANES, help="guests at a time (default: %(default)s)"
    )
    return parser.parse_args()


def tell(results: Iterable[Result], kind: str = "") -> Iterator[Result]:
    """Print a line for each trial as it ends, and below it what is wrong."""
    for result in results:
        named = "named" if result.named else "NOT NAMED"
        mended = "remedied" if result.remedied else "" if kind else "NOT REMEDIED"
        print(f"{named:<10}{mended:<13}{result.seconds:5.1f} s  {kind}{result.name}")
        for text in result.wrong:
            print(f"{'':>28}{text}")
        sys.stdout.flush()
        yield result


def tell_quiet(saved: Snapshot, names: Iterable[str], lanes: int) -> Iterator[Quiet]:
    for results in in_lanes(lanes, lambda name: list(try_quiet(saved, name)), names):
        for result in results:
            verdict = "ALARM" if result.alarms else "quiet"
            print(f"{verdict:<23}{result.seconds:5.1f} s  {result.name}")
            for text in result.alarms:
                print(f"{'':>28}{text}")
            sys.stdout.flush()
            yield result


def report(single: list[Result], double: list[Result], calm: list[Quiet], whole: bool) -> int:
    """Write the figures and what they are made of; return the exit status.

    :param whole: Whether everything was made, so that every code must have been shown.
    """
    figures = {
        "injected": len(single),
        "named": sum(result.named for result in single),
        "named_by_line": sum(result.named and result.name in BY_LINE for result in single),
        "judged_by_words": sum(result.name not in BY_LINE for result in single),
        "remedied": sum(result.remedied for result in single),
        "pairs": len(double),
        "pairs_named": sum(result.named for result in double),
        "quiet_hosts": len(calm),
        "false_alarms": sum(bool(result.alarms) for result in calm),
    }
    codes = count_codes(
        {code for result in (*single, *double) if result.named for code in result.codes}
    )
    broken = find_broken_words({result.name: result.codes for result in single})
    content: dict[str, Any] = {
        **figures,
        **codes,
        "codes_not_shown_as_said": broken,
        "faults": [result._asdict() for result in single],
        "pair_results": [result._asdict() for result in double],
        "quiet_results": [result._asdict() for result in calm],
    }
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(json.dumps(content, indent=2) + "\n")
    never = codes["codes_never_shown"]
    told = f"; never shown: {', '.join(never) or 'none'}" if whole else ""
    print(f"codes: {codes['codes_shown']} of {codes['codes']} shown{told}")
    if broken:
        print(f"docs/causes*.md: not shown as they say: {', '.join(broken)}")
    print(f"faults: {', '.join(f'{count} {name}' for name, count in figures.items())}; {FILE}")
    failed = (
        figures["named"] < figures["injected"]
        or figures["remedied"] < figures["injected"]
        or figures["pairs_named"] < ENOUGH * figures["pairs"]
        or figures["false_alarms"]
        or broken
        or (whole and find_unexcused(never))
    )
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
