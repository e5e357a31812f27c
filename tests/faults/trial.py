# SPDX-License-Identifier: GPL-3.0-or-later
"""Make a fault on a fresh copy of the base host, look whether it is named, and do what is said."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tests.host import guest
from tests.host.cache import HostError
from tests.host.snapshot import Snapshot

from .base import POLICY, find_release
from .codes import find_codes
from .examples import Example, find_examples
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
from .shell import Look, Shell, TrialError, opened

ROUNDS = 4
Step = dict[str, Any]
"""A cause's code and remedy, what its commands printed, and what a person did after them."""


class Result(NamedTuple):
    """How a trial went.

    ``wrong`` says what was not as it must be, ``steps`` what was done, ``codes`` which causes
    were named in any look, and ``examples`` what was printed of each.
    """

    name: str
    named: bool
    remedied: bool
    seconds: float
    wrong: tuple[str, ...]
    steps: tuple[Step, ...] = ()
    report: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    examples: Mapping[str, Example] = {}


class Story(NamedTuple):
    """What was seen of a host with faults: a look when they were made, and one after each step."""

    lines: Lines
    looks: list[Look]
    steps: list[Step]


def try_fault(saved: Snapshot, fault: Fault) -> Result:
    """Make one fault and follow what is printed until the host is green, or for some rounds."""
    start = time.monotonic()
    try:
        lines, looks, steps = follow(
            saved, [fault], lambda story: is_green(story.looks[-1].findings)
        )
    except (HostError, TrialError) as error:
        return Result(fault.name, False, False, time.monotonic() - start, (str(error),))
    misses = tuple(dict.fromkeys(find_misses(fault, lines, looks[0].findings)))
    left = () if is_green(looks[-1].findings) else tuple(describe_end(looks[-1], steps))
    return Result(
        fault.name,
        named=not misses,
        remedied=bool(steps) and not left,
        seconds=time.monotonic() - start,
        wrong=(*misses, *left),
        steps=tuple(steps),
        report=tuple(looks[0].report),
        codes=list_codes(looks),
        examples=list_examples(looks),
    )


def list_codes(looks: Iterable[Look]) -> tuple[str, ...]:
    """Return the codes of all looks: what shows after a step is shown by the fault as well."""
    return tuple(sorted({code for look in looks for code in find_codes(look.findings)}))


def list_examples(looks: Iterable[Look]) -> dict[str, Example]:
    """Return what was printed of each cause, when it showed first."""
    found: dict[str, Example] = {}
    for look in looks:
        found = {**find_examples(look), **found}
    return found


def try_pair(saved: Snapshot, pair: Sequence[Fault]) -> Result:
    """Make two faults; each must be named, the one that the other masks after that one's remedy.

    Where the host is green then, the first was all that there was to name.
    """
    start = time.monotonic()
    name = " + ".join(fault.name for fault in pair)
    try:
        story = follow(saved, pair, lambda story: is_settled(story, pair))
    except (HostError, TrialError) as error:
        return Result(name, False, False, time.monotonic() - start, (str(error),))
    strangers = [
        text for look in story.looks for text in find_strangers(pair, story.lines, look.findings)
    ]
    unnamed = () if is_settled(story, pair) else find_unnamed(story, pair)
    wrong = (*unnamed, *dict.fromkeys(strangers))
    return Result(
        name,
        named=not wrong,
        remedied=bool(story.steps) and is_green(story.looks[-1].findings),
        seconds=time.monotonic() - start,
        wrong=wrong,
        steps=tuple(story.steps),
        report=tuple(story.looks[0].report),
        codes=list_codes(story.looks),
    )


def is_settled(story: Story, faults: Sequence[Fault]) -> bool:
    """Tell whether all faults were named, or some and nothing falls short without the others."""
    unnamed = find_unnamed(story, faults)
    return not unnamed or (len(unnamed) < len(faults) and is_green(story.looks[-1].findings))


def find_unnamed(story: Story, faults: Iterable[Fault]) -> list[str]:
    """Return which faults no look named so far."""
    named: set[str] = set()
    for look in story.looks:
        named |= find_named(faults, story.lines, look.findings)
    return [f"not named: {fault.name}" for fault in faults if fault.name not in named]


def follow(saved: Snapshot, faults: Sequence[Fault], done: Callable[[Story], bool]) -> Story:
    """Make faults on a fresh copy of the base host, and take step after step until it is done.

    :raises HostError, TrialError: If a fault cannot be made or looked at.
    """
    policy = merge_policies(POLICY, *(fault.policy for fault in faults))
    release = find_release(faults[0].extra)
    with guest.running(release, saved=saved) as host, opened(host) as shell:
        for fault in faults:
            shell.do(fault.make)
        lines = find_lines(shell, [culprit for fault in faults for culprit in fault.culprits])
        through = faults[0].through
        story = Story(lines, [shell.check(policy, through=through)], [])
        while not done(story) and len(story.steps) < ROUNDS:
            step = take_step(shell, story.looks[-1], lines, faults)
            if step is None:
                break
            story.steps.append(step)
            if not step["done"] and not step["person"]:
                break
            story.looks.append(shell.check(policy, through=through))
    return story


def find_lines(shell: Shell, culprits: Iterable[Culprit]) -> dict[Culprit, int]:
    """Return the number of each line at fault, as it stands in the file now.

    :raises TrialError: If the line is not there exactly once: then the test is wrong.
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
                raise TrialError(f"{culprit.line!r} is in {len(numbers)} lines of {text!r}")
            found[culprit] = numbers[0]
    return found


def take_step(shell: Shell, look: Look, lines: Lines, faults: Sequence[Fault]) -> Step | None:
    """Carry out the commands of the first cause as they are printed, then what a person is left.

    :returns: What was done, or nothing where no cause says anything.
    """
    cause = first_cause(look.findings)
    if cause is None:
        return None
    remedy = cause["remedy"]
    done = [[words, *shell.run(words)] for words in remedy["commands"]]
    left = remedy["then"] or not remedy["commands"]
    mine = [fault for fault in faults if is_named_by(cause, fault, lines)]
    person = [fault.person for fault in mine if left and fault.person]
    for script in person:
        shell.do(script)
    return {"code": cause["code"], "remedy": remedy, "done": done, "person": person}


def describe_end(look: Look, steps: Sequence[Step]) -> list[str]:
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
