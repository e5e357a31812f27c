# SPDX-License-Identifier: BSD-2-Clause
"""Say why a connection falls short although a fresh session would not."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.cause import Cause, Remedy
from ..core.finding import Finding, format_observed
from ..core.quote import one_line
from ..core.values import Declaration, NamedTuple

CODES = {
    "connection-kept-open": "this connection is older than the limits files, and keeps its limits",
    "connection-inherits": "something on the way of this connection lowered its limits",
}


class Connection(NamedTuple):
    """The session that the looking process belongs to.

    ``opener`` is the process that opened it, ``newer`` the limits files changed since.
    """

    opener: str
    pid: int
    since: str
    newer: tuple[str, ...] = ()


def find_connection_causes(short: Sequence[Finding], facts: Connection) -> list[Cause]:
    """Return why a connection has less than a fresh session would.

    :param short: What it falls short of, judged.
    """
    if not short:
        return []
    told = ", ".join(dict.fromkeys(_describe(finding) for finding in short))
    session = f"this connection ({facts.opener}, pid {facts.pid}, since {facts.since}) has {told}"
    if not facts.newer:
        text = f"{session}, while a fresh session has enough: a program on the way lowered it"
        remedy = Remedy("connect again, and look at what starts the connection's programs")
        return [Cause("connection-inherits", text, remedy)]
    path = facts.newer[-1]
    text = f"{session}: it is older than the last change of {one_line(path)}"
    remedy = Remedy("connect again (in a play: meta: reset_connection)")
    at = Declaration(path, 0, "", "")
    return [Cause("connection-kept-open", text, remedy, at)]


def _describe(finding: Finding) -> str:
    wanted, value = finding.requirement, finding.observation.value
    return f"{wanted.item} {wanted.bound} {format_observed(value or 0, wanted.unit)}"
