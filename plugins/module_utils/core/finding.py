# SPDX-License-Identifier: BSD-2-Clause
"""Judge what was observed against what a policy requires."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from .cause import Cause, Outlook
from .reader import Limit
from .values import ITEMS, NamedTuple, Rlimit, format_quantity

PASS, FAIL, UNKNOWN = "pass", "fail", "unknown"
WAIVED = "waived"
"""Falls short, or cannot be seen, and the policy says why it may, until a day to come."""
LATER = "later"
"""Passes now, and is predicted to fail after the next restart or boot."""


LOOK = "look"
"""Stands for an item where a whole section could not be looked at."""

FORETOLD = "predicted from the files"
"""How an image is looked at, in which nothing runs."""


class Requirement(NamedTuple):
    """One bound on one thing in one place.

    ``bound`` is ``soft``, ``hard`` or ``value``; the limits are in the kernel's ``unit``.
    ``exact`` is a text that must be there word by word; ``fields`` are the least numbers of a
    value that holds as many.
    """

    place: str
    item: str
    bound: str
    minimum: int | None = None
    maximum: int | None = None
    exact: str | None = None
    unit: str = ""
    fields: tuple[int, ...] = ()

    def pick(self, pair: Rlimit) -> int:
        """Return the bound of a pair that is meant."""
        return pair.soft if self.bound == "soft" else pair.hard

    def is_met_by(self, value: int) -> bool:
        """Tell whether a number is neither below the minimum nor above the maximum."""
        low, high = self.minimum, self.maximum
        return (low is None or value >= low) and (high is None or value <= high)

    def describe(self) -> str:
        """Return what is required, for people: ``65536``, ``1024 to 4096``, ``at most 9``."""
        if self.exact is not None:
            return f"exactly {self.exact}" if self.exact[:1].isdecimal() else self.exact
        words = [" ".join(map(str, self.fields))] if self.fields else []
        least = "" if self.minimum is None else format_quantity(self.minimum, self.unit)
        most = "" if self.maximum is None else format_quantity(self.maximum, self.unit)
        if least and most:
            return f"{least} to {most}"
        return ", ".join([*words, *filter(None, [least]), *([f"at most {most}"] if most else [])])


class Observation(NamedTuple):
    """What was measured and how; ``value`` is ``None`` where ``reason`` says why not."""

    value: int | str | None
    how: str
    reason: str = ""


class Finding(NamedTuple):
    """A requirement, judged. ``status`` is pass, fail, unknown or waived; unknown is never a pass.

    ``causes`` say why it is not met now or will not be after a boot, what comes first first.
    ``waiver`` says why it may fall short and until when, or that its time is over. ``owner`` is
    the user whose own file or process decides the value; it is empty where root decides.
    """

    status: str
    requirement: Requirement
    observation: Observation
    causes: tuple[Cause, ...] = ()
    outlook: Outlook = Outlook()
    waiver: str = ""
    owner: str = ""

    @property
    def fails_later(self) -> bool:
        """Tell whether a finding that passes now will not after a restart or a boot."""
        return self.status == PASS and FAIL in self.outlook

    @property
    def state(self) -> str:
        """Return the status, or ``later`` where it passes now and will not then."""
        return LATER if self.fails_later else self.status

    def as_dict(self) -> dict[str, object]:
        """Return the finding as plain data, for JSON; ``unlimited`` is written as that word."""
        wanted, seen = self.requirement, self.observation
        return {
            "status": self.status,
            "place": wanted.place,
            "item": wanted.item,
            "bound": wanted.bound,
            "required": wanted.describe(),
            "observed": None if seen.value is None else format_observed(seen.value, wanted.unit),
            "how": seen.how,
            "reason": seen.reason,
            "waiver": self.waiver,
            "owner": self.owner,
            "causes": [cause.as_dict() for cause in self.causes],
            **self.outlook._asdict(),
        }


def format_observed(value: int | str, unit: str) -> str:
    """Return an observed value as people read it."""
    return value if isinstance(value, str) else format_quantity(value, unit)


def judge(requirement: Requirement, observation: Observation) -> Finding:
    """Compare one observation with its requirement."""
    value = observation.value
    if value is None:
        return Finding(UNKNOWN, requirement, observation)
    if requirement.exact is not None:
        met = str(value).split() == requirement.exact.split()
    elif requirement.fields:
        return _judge_fields(requirement, observation)
    elif isinstance(value, str):
        reason = f"{value!r} is not a number"
        return Finding(UNKNOWN, requirement, observation._replace(value=None, reason=reason))
    else:
        met = requirement.is_met_by(value)
    return Finding(PASS if met else FAIL, requirement, observation)


def _judge_fields(wanted: Requirement, seen: Observation) -> Finding:
    from .fields import are_met, parse_fields  # Few policies ask for any.

    has = parse_fields(seen.value)
    if len(has) != len(wanted.fields):
        reason = f"{seen.value!r} does not hold the {len(wanted.fields)} numbers that are asked for"
        return Finding(UNKNOWN, wanted, seen._replace(value=None, reason=reason))
    return Finding(PASS if are_met(wanted.fields, has) else FAIL, wanted, seen)


def judge_unlooked(section: str, reason: str) -> Finding:
    """Return that a section of the policy could not be looked at: unknown, with the reason."""
    return judge(Requirement(section, LOOK, "value"), Observation(None, "", reason))


def find_unlooked(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings that say that a section could not be looked at."""
    return [one for one in findings if one.requirement.item == LOOK]


def require_limits(place: str, limits: Mapping[str, Limit]) -> Iterator[Requirement]:
    """Yield what a policy demands of a process: at least soft and hard, hard at most max."""
    for name, limit in limits.items():
        unit = ITEMS[name].unit
        if limit.text is not None or ITEMS[name].resource is None:
            yield Requirement(place, name, "value", limit.hard, exact=limit.text, unit=unit)
            continue
        if limit.soft is not None:
            yield Requirement(place, name, "soft", limit.soft, unit=unit)
        if limit.hard is not None or limit.max is not None:
            yield Requirement(place, name, "hard", limit.hard, limit.max, unit=unit)


def observe_limit(
    requirement: Requirement, limits: Mapping[str, Rlimit] | None, how: str, reason: str
) -> Observation:
    """Pick what a requirement asks for out of a process's limits."""
    if limits is None:
        return Observation(None, how, reason)
    if requirement.item not in limits:
        return Observation(None, how, f"{requirement.item} is not a limit that a process shows")
    return Observation(requirement.pick(limits[requirement.item]), how)


def judge_limits(
    place: str,
    wanted: Mapping[str, Limit],
    limits: Mapping[str, Rlimit] | None,
    how: str,
    reason: str = "",
) -> list[Finding]:
    """Judge all that a policy demands of one process."""
    return [
        judge(requirement, observe_limit(requirement, limits, how, reason))
        for requirement in require_limits(place, wanted)
    ]


def is_short_by_root(finding: Finding) -> bool:
    """Tell whether a finding fails and root decides it: that alone says that a host is bad."""
    return finding.status == FAIL and not finding.owner


def count_statuses(findings: Iterable[Finding]) -> dict[str, int]:
    """Return how many findings have each status, and how many of those that pass will not last."""
    counts = dict.fromkeys((PASS, FAIL, UNKNOWN, WAIVED, LATER), 0)
    for finding in findings:
        counts[finding.status] += 1
        counts[LATER] += finding.fails_later
    return counts
