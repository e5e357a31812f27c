# SPDX-License-Identifier: GPL-3.0-or-later
"""Have a person paste all that a report prints, in its order, and see whether the host is mended.

``python -m tests.faults.paste`` makes pairs and triples of faults. The remedies of one report are
one plan: none may undo another's work, or make fall short what was met.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import re
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.host import guest
from tests.host.cache import HostError
from tests.host.snapshot import Snapshot

from .base import POLICY, saved_host
from .every import FAULTS, SEED
from .fault import Fault, are_compatible, merge_policies
from .judge import describe, find_short, is_green, is_named_by
from .lanes import in_lanes
from .shell import Look, Shell, TrialError, opened
from .trial import find_lines

FILE = Path(__file__).parents[2] / "build" / "paste.json"
ROUNDS = 3
"""A fault that another masks is printed only once that one is mended."""

_RUN = re.compile(r"^     (?:run  |or   (?=echo |printf ))(.*)$")
_MORE = " " * 10


class Pasted(NamedTuple):
    """How it went: whether the host is green after some rounds, and what is wrong."""

    name: str
    green: bool
    rounds: int
    seconds: float
    wrong: tuple[str, ...]
    scripts: tuple[str, ...] = ()


def read_script(report: Sequence[str]) -> str:
    """Return what stands behind ``run`` in a report, as it would be copied from a terminal."""
    rows: list[str] = []
    inside = False
    for line in report:
        first = _RUN.match(line)
        inside = bool(first) or (inside and line.startswith(_MORE))
        if inside:
            rows.append(first[1] if first else line[len(_MORE) :])
    return "".join(f"{row}\n" for row in rows)


def choose(size: int, count: int, seed: int) -> Iterator[tuple[Fault, ...]]:
    """Yield sets of faults of the plain host that leave each other alone."""
    plain = [fault for fault in FAULTS if not fault.extra and not fault.through]
    rng = random.Random(f"{seed} {size}")
    found = 0
    while found < count:
        some = tuple(rng.sample(plain, size))
        if all(are_compatible(one, other) for one, other in itertools.combinations(some, 2)):
            found += 1
            yield some


def try_pasting(saved: Snapshot, faults: Sequence[Fault]) -> Pasted:
    """Make faults; then check and paste, until nothing is left to paste or for some rounds."""
    start, name = time.monotonic(), " + ".join(fault.name for fault in faults)
    policy = merge_policies(POLICY, *(fault.policy for fault in faults))
    scripts: list[str] = []
    wrong: list[str] = []
    try:
        with guest.running(saved=saved) as host, opened(host) as shell:
            for fault in faults:
                shell.do(fault.make)
            lines = find_lines(shell, [one for fault in faults for one in fault.culprits])
            look = shell.check(policy)
            while not is_green(look.findings) and len(scripts) < ROUNDS:
                scripts.append(read_script(look.report))
                said = shell.run(["bash", "-c", scripts[-1]]).text
                _leave_to_person(shell, look, faults, lines)
                after = shell.check(policy)
                wrong += _find_harm(look, after, said)
                look = after
    except (HostError, TrialError) as error:
        return Pasted(name, False, len(scripts), time.monotonic() - start, (str(error),))
    left = [f"left: {describe(one)} {one['status']}" for one in find_short(look.findings)]
    seconds = time.monotonic() - start
    return Pasted(
        name, is_green(look.findings), len(scripts), seconds, (*wrong, *left), (*scripts,)
    )


def _leave_to_person(shell: Shell, look: Look, faults: Sequence[Fault], lines: object) -> None:
    """Do what a remedy leaves to a person in words."""
    causes = [cause for one in find_short(look.findings) for cause in one["causes"]]
    for fault in faults:
        mine = [cause for cause in causes if is_named_by(cause, fault, lines)]  # type: ignore[arg-type]
        if fault.person and mine:
            shell.do(fault.person)


def _find_harm(before: Look, after: Look, said: str) -> list[str]:
    """Return what was met before all was pasted, and is not after it."""
    met = {describe(one) for one in before.findings if one["status"] == "pass"}
    short = {describe(one): one for one in find_short(before.findings)}
    harmed = [
        describe(one)
        for one in after.findings
        if one["status"] == "fail" and describe(one) in met and describe(one) not in short
    ]
    return [f"harmed: {text}; it said: {said.strip()[-300:]}" for text in harmed]


def main() -> int:
    """Try pairs and triples; the status is 0 where nothing is harmed and all is mended."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.paste", description=__doc__)
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--triples", type=int, default=30)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--lanes", type=int, default=2)
    given = parser.parse_args()
    sets = [*choose(2, given.pairs, given.seed), *choose(3, given.triples, given.seed)]
    done: list[Pasted] = []
    with saved_host() as saved:
        for result in in_lanes(given.lanes, partial(try_pasting, saved), sets):
            done.append(result)
            verdict = "green" if result.green and not result.wrong else "WRONG"
            print(f"{verdict}  {result.rounds} rounds {result.seconds:5.1f} s  {result.name}")
            for text in result.wrong:
                print(f"{'':>10}{text}")
            sys.stdout.flush()
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(json.dumps([result._asdict() for result in done], indent=2) + "\n")
    good = sum(result.green and not result.wrong for result in done)
    harmed = sum(any(one.startswith("harmed") for one in result.wrong) for result in done)
    print(f"pasted: {len(done)} sets, {good} green, {harmed} harmed; {FILE}")
    return int(good < len(done))


if __name__ == "__main__":
    sys.exit(main())
