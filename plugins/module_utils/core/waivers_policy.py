# SPDX-License-Identifier: BSD-2-Clause
"""Read what a policy lets pass for a while: what, where, why, and until when."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from .keys import Key
from .quote import one_line
from .reader import read_entries

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
    """A shortfall that is known and borne; all but ``why`` and ``until`` are patterns of fnmatch.

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
