# SPDX-License-Identifier: GPL-3.0-or-later
"""Make every attack; write ``build/hostile.json``, end with a line of figures."""

from __future__ import annotations

import argparse
import json
import re
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from tests.faults.lanes import in_lanes, leave
from tests.host.cache import HostError
from tests.host.snapshot import Snapshot

from .attack import Attack
from .base import make_base, saved_host
from .every import ATTACKS
from .judge import TOTALS, Verdict, judge
from .trial import IDLE, Seen, TrialError, look_beside
from .verbs import VERBS

FILE = Path(__file__).parents[2] / "build" / "hostile.json"
SHOWN = Path(__file__).with_name("shown.json")
"""What each attack did to a library without the guard that stops it now."""
LANES = 2
REFUSED = 2


class Row(NamedTuple):
    """One attack and what came of it; ``problem`` says why it shows nothing."""

    name: str
    kind: str
    verb: str
    seconds: float
    seen: dict[str, list[str]]
    problem: str = ""


def main() -> int:
    """Make what is asked for; the status is 0 where no attack did anything."""
    signal.signal(signal.SIGTERM, leave)
    given = parse_arguments()
    wanted = re.compile(given.only)
    attacks = [attack for attack in ATTACKS if wanted.search(f"{attack.kind}: {attack.name}")]
    if given.list:
        for attack in attacks:
            print(f"{attack.kind}: {attack.name}")
        return 0
    rows: list[Row] = []
    with ExitStack() as stack:
        saved = (
            make_base(given.base, given.against)
            if given.base
            else stack.enter_context(saved_host(given.against))
        )
        make = partial(make_attack, saved, Calm(saved), given.guard_out)
        try:
            rows.extend(tell(in_lanes(given.lanes, make, attacks)))
        finally:
            status = report(rows, given)
    return status


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--only", default="", metavar="REGEX", help="of KIND: NAME, as --list says")
    parser.add_argument("--list", action="store_true", help="print the names and end")
    parser.add_argument("--against", default="", metavar="REV", help="whose library root runs")
    parser.add_argument(
        "--guard-out", default="", metavar="NAMES", help="guards to do without, or each one's own"
    )
    parser.add_argument("--base", type=Path, metavar="DIR", help="keep the base host there")
    parser.add_argument("--record", action="store_true", help=f"keep what worked in {SHOWN.name}")
    parser.add_argument("--output", type=Path, default=FILE, help="default: %(default)s")
    parser.add_argument(
        "--lanes", type=int, default=LANES, help="guests at a time (default: %(default)s)"
    )
    return parser.parse_args()


class Calm:
    """What each command sees beside a user who does nothing, by command and setup."""

    def __init__(self, saved: Snapshot) -> None:
        self._saved = saved
        self._file = saved.folder / "calm.json"
        self._kept: dict[str, Seen] = (
            json.loads(self._file.read_text()) if self._file.exists() else {}
        )
        self._locks: defaultdict[str, Lock] = defaultdict(Lock)

    def look(self, attack: Attack, guard: str = "") -> Seen:
        """Return what was seen, looking once for all attacks on the same base.

        :param guard: What the command does without: that alone is not an attack.
        :raises TrialError: If root's command is refused, or crashes, even so.
        """
        name = f"{' '.join(VERBS[attack.verb])}\n{attack.setup}" + (f"\n{guard}" if guard else "")
        with self._locks[name]:
            if name not in self._kept:
                self._kept[name] = self._look_until_all_is_known(attack, guard)
                self._file.write_text(json.dumps(dict(self._kept)))
        told = self._kept[name]["runs"][0]
        if told["status"] == REFUSED or "Traceback" in told["stderr"]:  # Nobody is at fault.
            raise TrialError(f"{attack.verb} does not work at all: {told['stderr'][-300:]}")
        return self._kept[name]

    def _look_until_all_is_known(self, attack: Attack, guard: str) -> Seen:
        """Look again where a canary did not start in time: the machine has other work."""
        quiet = Attack("", "", attack.verb, IDLE, attack.setup)
        for _again in range(0 if guard else 2):
            seen = look_beside(self._saved, quiet, guard)
            if '"status": "unknown"' not in "".join(run["stdout"] for run in seen["runs"]):
                return seen
        return look_beside(self._saved, quiet, guard)


def make_attack(saved: Snapshot, calm: Calm, guard: str, attack: Attack) -> Row:
    """Make one attack and judge it."""
    start = time.monotonic()
    out = attack.guard if guard == "own" else guard
    problem, verdict = "", Verdict({name: [] for name in TOTALS})
    seconds = 0.0
    try:
        before = calm.look(attack, out)
        seen = look_beside(saved, attack, out)
        verdict = judge(seen, before)
        if verdict.may_be_load:  # What an attack does, it does twice.
            seen = look_beside(saved, attack, out)
            verdict = judge(seen, before)
        seconds = max(run["seconds"] for run in seen["runs"])
    except (TrialError, HostError) as exc:
        problem = str(exc)
    seconds = seconds or round(time.monotonic() - start, 1)
    return Row(attack.name, attack.kind, attack.verb, seconds, verdict.harms, problem)


def tell(rows: Iterable[Row]) -> Iterator[Row]:
    """Print a line for each attack as it ends, and below it what it did."""
    for row in rows:
        harms = [name for name, lines in row.seen.items() if lines]
        word = "NOT MADE" if row.problem else "WORKED" if harms else "nothing"
        print(f"{word:<9}{row.seconds:6.1f} s  {row.kind}: {row.name} ({row.verb})")
        for name in harms:
            print(f"{'':>19}{name}: {'; '.join(row.seen[name][:3])[:300]}")
        if row.problem:
            print(f"{'':>19}{row.problem[-600:]}")
        sys.stdout.flush()
        yield row


def record(rows: Iterable[Row], given: argparse.Namespace) -> None:
    """Keep what was shown of each attack; one that did nothing keeps an older row."""
    shown = read_shown()
    guards = {attack.name: attack.guard for attack in ATTACKS}
    for row in rows:
        harms = {name: lines[:2] for name, lines in row.seen.items() if lines}
        guard = guards[row.name] if given.guard_out == "own" else given.guard_out
        if harms:
            old = {"against": given.against, "guard_out": guard, "seconds": row.seconds}
            shown[row.name] = {"kind": row.kind, "verb": row.verb, **old, "did": harms}
    SHOWN.write_text(json.dumps(dict(sorted(shown.items())), indent=1) + "\n")


def read_shown() -> dict[str, Any]:
    shown: dict[str, Any] = json.loads(SHOWN.read_text()) if SHOWN.exists() else {}
    return shown


def report(rows: list[Row], given: argparse.Namespace) -> int:
    """Write the figures and what they are made of; return the exit status."""
    totals = {name: sum(bool(row.seen[name]) for row in rows) for name in TOTALS}
    not_made = [row.name for row in rows if row.problem]
    shown = sum(row.name in read_shown() for row in rows)
    old = json.loads(given.output.read_text()) if given.output.exists() else {}
    content: dict[str, Any] = {
        **{name: old[name] for name in ("strains",) if name in old},
        "attacks": len(rows),
        "shown": shown,
        **totals,
        "not_made": not_made,
        "against": given.against,
        "guard_out": given.guard_out,
        "rows": [row._asdict() for row in rows],
    }
    given.output.parent.mkdir(exist_ok=True)
    given.output.write_text(json.dumps(content, indent=2) + "\n")
    if given.record:
        record(rows, given)
    figures = ", ".join(f"{count} {name}" for name, count in totals.items())
    how = f"{shown} of them shown to work without a guard, {figures}, {len(not_made)} not made"
    print(f"hostile: {len(rows)} attacks, {how}; {given.output}")
    return 1 if any(totals.values()) or not_made or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
