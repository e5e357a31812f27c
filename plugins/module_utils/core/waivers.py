# SPDX-License-Identifier: BSD-2-Clause
"""Mark what falls short and the policy lets pass, and find the waivers that nothing needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

from .finding import FAIL, UNKNOWN, WAIVED, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .waivers_policy import Waiver


def waive(
    findings: Iterable[Finding], waivers: tuple[Waiver, ...], host: str, today: str
) -> list[Finding]:
    """Return the findings, those that are waived marked so; one that is expired only says so.

    :param host: The host's name, with or without its domain.
    :param today: The day, as ``2026-11-30``.
    """
    meant = [one for one in waivers if _means(one, host)]
    return [_waive(finding, meant, today) for finding in findings]


def find_idle(
    findings: Iterable[Finding], waivers: Iterable[Waiver], host: str
) -> Iterator[Waiver]:
    """Yield the waivers for this host of which nothing that falls short has need."""
    short = [finding for finding in findings if _falls_short(finding)]
    for waiver in waivers:
        if _means(waiver, host) and not any(_covers(waiver, finding) for finding in short):
            yield waiver


def _falls_short(finding: Finding) -> bool:
    return finding.status in (FAIL, UNKNOWN, WAIVED) or finding.fails_later


def _waive(finding: Finding, waivers: list[Waiver], today: str) -> Finding:
    covering = [one for one in waivers if _covers(one, finding)] if _falls_short(finding) else []
    if not covering:
        return finding
    longest = max(covering, key=lambda waiver: waiver.until)
    if longest.until < today:
        return finding._replace(waiver=f"its waiver ended on {longest.until}: {longest.why}")
    text = f"waived until {longest.until}: {longest.why}"
    return finding._replace(status=WAIVED, waiver=text)


def _means(waiver: Waiver, host: str) -> bool:
    names = (host, host.partition(".")[0])
    return not waiver.hosts or any(
        fnmatchcase(name, pattern) for pattern in waiver.hosts for name in names
    )


def _covers(waiver: Waiver, finding: Finding) -> bool:
    wanted = finding.requirement
    items = (wanted.item, f"{wanted.item} {wanted.bound}")
    return fnmatchcase(wanted.place, waiver.where) and any(
        fnmatchcase(item, waiver.what) for item in items
    )
