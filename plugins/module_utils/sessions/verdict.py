# SPDX-License-Identifier: BSD-2-Clause
"""Judge a session by what root gives it, and what the user's own shell then makes of that.

A shell runs files that its user wrote, and prints what they like. So it speaks of that user alone:
it may add a shortfall of the user's own, and takes none of root's away.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..core.cause import Cause
from ..core.finding import FAIL, PASS, UNKNOWN, Finding, Observation, Requirement, judge_limits
from ..core.quote import one_line
from ..core.remedy import Remedy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.reader import Limit
    from ..core.rlimit import Rlimit

SHELL = "shell"
"""The item of the finding that a user's shell gives no session."""


class Told(NamedTuple):
    """The limits of a session at one moment, and how they were seen, or the reason why not."""

    limits: Mapping[str, Rlimit] | None
    how: str = ""
    reason: str = ""


def judge_session(
    place: str,
    wanted: Mapping[str, Limit],
    given: Told,
    shell: Told | None,
    owner: str,
    is_named: bool,
) -> list[Finding]:
    """Return the findings of one session.

    :param given: What PAM, and the start files that are root's, give.
    :param shell: What the user's shell says of itself, if it was asked.
    :param owner: Whose shell it is; empty for root's own.
    :param is_named: Whether the policy asks for this very user, who does not stand for others.
    """
    findings = judge_limits(place, wanted, given.limits, given.how, given.reason)
    if shell is None:
        return findings
    if shell.limits is None:
        return [*findings, _judge_silence(place, shell.reason, owner, is_named)]
    own = judge_limits(place, wanted, shell.limits, shell.how)
    return [
        mine._replace(owner=owner) if (first.status, mine.status) == (PASS, FAIL) else first
        for first, mine in zip(findings, own)
    ]


def _judge_silence(place: str, reason: str, owner: str, is_named: bool) -> Finding:
    """Judge a shell that told nothing: who stands for everybody has said nothing of the others."""
    wanted = Requirement(place, SHELL, "value", exact="a shell that starts")
    if not is_named:
        return Finding(UNKNOWN, wanted, Observation(None, "", reason), owner=owner)
    who = one_line(owner or "root")
    remedy = Remedy(f"let {who} find what keeps the own start files from ending")
    cause = Cause("shell-gives-no-session", reason, remedy)
    return Finding(
        FAIL, wanted, Observation("none", "a shell as at a login"), (cause,), owner=owner
    )
