# SPDX-License-Identifier: GPL-3.0-or-later
"""Make a fault on a fresh copy of the base host, look whether it is named, and do what is said."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tests.host import guest
from tests.host.snapshot import Snapshot

from .base import POLICY
from .fault import Culprit, Fault, merge_policies
from .judge import (
    Lines,
    find_misses,
    find_named,
    find_short,
    find_strangers,
    first_cause,
    is_green,
    is_named_by,
)
from .shell import Look, Shell, opened

ROUNDS = 4


class Result(NamedTuple):
    """How a trial went; ``wrong`` says what was not as it must be, ``steps`` what was done."""

    name: str
    named: bool
    remedied: bool
    seconds: float
    wrong: tuple[str, ...]
    steps: tuple[dict[str, Any], ...]
    report: tuple[str, ...]


def try_fault(saved: Snapshot, fault: Fault) -> Result:
    """Make one fault and follow what is printed until the host is green, or for some rounds."""
    start = time.monotonic()
    with guest.running(saved=saved) as host, opened(host) as shell:
        shell.do(fault.make)
        lines = find_lines(shell, fault.culprits)
        policy = merge_policies(POLICY, fault.policy)
        look = shell.check(policy)
        misses = list(dict.fromkeys(find_misses(fault, lines, look.findings)))
        steps: list[dict[str, Any]] = []
        report = tuple(look.report)
        while not is_green(look.findings) and len(steps) < ROUNDS:
            if not take_step(shell, look, lines, [fault], steps):
                break
            look = shell.check(policy)
    remedied = is_green(look.findings)
    wrong = [*misses, *([] if remedied else describe_end(look, steps))]
    seconds = time.monotonic() - start
    return Result(fault.name, not misses, remedied, seconds, tuple(wrong), tuple(steps), report)


def try_pair(saved: Snapshot, pair: Sequence[Fault]) -> Result:
    """Make two faults; each must be named, the one that the other masks after that one's remedy."""
    start = time.monotonic()
    name = " + ".join(fault.name for fault in pair)
    with guest.running(saved=saved) as host, opened(host) as shell:
        for fault in pair:
            shell.do(fault.make)
        lines = find_lines(shell, [culprit for fault in pair for culprit in fault.culprits])
        policy = merge_policies(POLICY, *(fault.policy for fault in pair))
        look = shell.check(policy)
        report = tuple(look.report)
        named = find_named(pair, lines, look.findings)
        strangers = list(find_strangers(pair, lines, look.findings))
        steps: list[dict[str, Any]] = []
        while len(named) < len(pair) and len(steps) < ROUNDS:
            if not take_step(shell, look, lines, pair, steps):
                break
            look = shell.check(policy)
            named |= find_named(pair, lines, look.findings)
            strangers += find_strangers(pair, lines, look.findings)
    missing = [f"not named: {fault.name}" for fault in pair if fault.name not in named]
    wrong = [*missing, *dict.fromkeys(strangers)]
    seconds = time.monotonic() - start
    green = is_green(look.findings)
    return Result(name, not wrong, green, seconds, tuple(wrong), tuple(steps), report)


def find_lines(shell: Shell, culprits: Iterable[Culprit]) -> dict[Culprit, int]:
    """Return the number of each line at fault, as it stands in the file now.

    :raises RuntimeError: If the line is not there exactly once: then the test is wrong.
    """
    found = {}
    for culprit in culprits:
        if culprit.line:
            text = shell.do(f"cat {culprit.file}")
            numbers = [
                number
                for number, line in enumerate(text.splitlines(), start=1)
                if culprit.line in line
            ]
            if len(numbers) != 1:
                raise RuntimeError(f"{culprit.line!r} is in {len(numbers)} lines of {text!r}")
            found[culprit] = numbers[0]
    return found


def take_step(
    shell: Shell, look: Look, lines: Lines, faults: Sequence[Fault], steps: list[dict[str, Any]]
) -> bool:
    """Carry out the commands of the first cause as they are printed, then what is left to a person.

    :returns: Whether there was anything to carry out.
    """
    cause = first_cause(look.findings)
    if cause is None:
        return False
    remedy = cause["remedy"]
    done = [[words, *shell.run(words)] for words in remedy["commands"]]
    left = remedy["then"] or not remedy["commands"]
    person = [fault.person for fault in faults if left and is_named_by(cause, fault, lines)]
    person = [script for script in person if script]
    for script in person:
        shell.do(script)
    steps.append({"code": cause["code"], "remedy": remedy, "done": done, "person": person})
    return bool(done or person)


def describe_end(look: Look, steps: Sequence[dict[str, Any]]) -> list[str]:
    """Say why a host is not green after the last step."""
    wrong = [
        f"{words} ended with {status}: {text.strip()}"
        for step in steps
        for words, status, text in step["done"]
        if status
    ]
    if steps and not steps[-1]["done"] and not steps[-1]["person"]:
        wrong.append(f"no commands: {steps[-1]['remedy']['text']}")
    left = [f"{one['place']} {one['item']} {one['status']}" for one in find_short(look.findings)]
    unknown = [
        f"{one['place']}: {one['reason']}" for one in look.findings if one["status"] == "unknown"
    ]
    return [*wrong, *(f"left: {text}" for text in dict.fromkeys([*left, *unknown]))]
