# SPDX-License-Identifier: BSD-2-Clause
"""What a policy lets pass for a while: what, where, why, and until when; and what needs it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase

from .finding import FAIL, UNKNOWN, WAIVED, Finding
from .quote import one_line
from .reader import Key, read_entries
from .values import NamedTuple

WAIVER = {
    "what": Key(
        "pattern", "an item (`nofile`, `fs.*`), or with its bound (`nofile hard`); else `*`"
    ),
    "where": Key("pattern", "a place, as findings name it; else `*`, but not both"),
    "hosts": Key("patterns", "names of hosts, with or without the domain; else every host"),
    "why": Key("text", "the reason; needed"),
    "until": Key("day", "the last day that it holds; needed"),
}
_DAY = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])")


class Waiver(NamedTuple):
    """A shortfall that is accepted; all but ``why`` and ``until`` are patterns of fnmatch.

    ``what`` is an item, or an item and its bound (``nofile hard``); ``where`` is a place.
    ``hosts`` are names of hosts; with none, every host is meant. ``until`` is the last day that it
    holds, as ``2026-12-31``.
    """

    what: str
    where: str
    why: str
    until: str
    hosts: tuple[str, ...] = ()

    def describe(self) -> str:
        """Return what is waived where, for people."""
        return f"{self.what} in {self.where} (until {self.until}: {self.why})"


def read_waivers(raw: object, problems: list[str]) -> tuple[Waiver, ...]:
    """Read the section ``waivers``, and report every violation."""
    waivers = []
    for path, entry in read_entries("waivers", raw, WAIVER, problems):
        what, where = (_read_text(path, entry, key, problems, "*") for key in ("what", "where"))
        if what == where == "*":
            problems.append(f"{path}: would waive everything; say what or where")
        why = _read_text(path, entry, "why", problems)
        until = str(entry.get("until", ""))  # YAML reads a day as a date.
        if not _DAY.fullmatch(until):
            problems.append(f"{path}.until: {until!r} was given; a day as 2026-12-31 is accepted")
        waivers.append(Waiver(what, where, why, until, _read_hosts(path, entry, problems)))
    return tuple(waivers)


def _read_text(
    path: str, entry: Mapping[str, object], key: str, problems: list[str], default: str = ""
) -> str:
    value = entry.get(key, default)
    if not isinstance(value, str) or not value.strip():
        problems.append(f"{path}.{key}: {value!r} was given; a text is accepted")
    return one_line(str(value))


def _read_hosts(path: str, entry: Mapping[str, object], problems: list[str]) -> tuple[str, ...]:
    hosts = entry.get("hosts", [])
    if not isinstance(hosts, list) or not all(isinstance(one, str) for one in hosts):
        problems.append(f"{path}.hosts: {hosts!r} was given; a list of names is accepted")
        return ()
    return tuple(hosts)


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
