# SPDX-License-Identifier: BSD-2-Clause
"""Say what a user's own dockerd cannot give, and let remedies of its files act as that user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..core.cause import Cause, Outlook, Remedy
from ..core.finding import FAIL, Finding
from ..core.line_edit import as_user
from ..core.quote import one_line
from ..core.values import NamedTuple, Rlimit
from .daemon_json import StatedDefault
from .remedies import cite_statement, format_pair

CODES = {"docker-rootless-capped": "a user's dockerd can give no container more than it has itself"}


class Rootless(NamedTuple):
    """A user's own dockerd, and the limits of its process: the hard ones cap every container.

    ``stated`` is what its daemon.json and its flags state.
    """

    user: str
    pid: int
    limits: Mapping[str, Rlimit] = {}
    stated: Sequence[StatedDefault] = ()


def explain_rootless(finding: Finding, daemon: Rootless) -> Finding:
    """Return a finding of a user's own dockerd or of its container, what caps it said first."""
    causes = [_act_as(cause, daemon) for cause in finding.causes]
    wanted = finding.requirement
    if wanted.exact is not None:  # That a container starts at all.
        caps = daemon.limits
        known = (one for one in daemon.stated if one.name in caps)
        above = (one for one in known if one.limit.hard > caps[one.name].hard)
        causes += [_blame_default(one, daemon) for one in above]
        return finding._replace(causes=tuple(causes))
    cap = daemon.limits.get(wanted.item)
    if finding.status != FAIL or wanted.minimum is None or cap is None:
        return finding._replace(causes=tuple(causes))
    if cap.hard < wanted.minimum:
        outlook = Outlook("", FAIL, finding.outlook.after_boot and "unknown")
        return finding._replace(causes=(_blame_cap(wanted.item, cap, daemon),), outlook=outlook)
    return finding._replace(causes=tuple(causes))


def _blame_default(default: StatedDefault, daemon: Rootless) -> Cause:
    """Blame a default that dockerd may not set, with which no container starts."""
    item, at, user = default.name, default.declaration, one_line(daemon.user)
    most = format_pair(item, Rlimit(*[daemon.limits[item].hard] * 2))
    text = (
        f"{cite_statement(at)} asks for more than the {item} {most} that dockerd of {user} (pid"
        f" {daemon.pid}) may give"
    )
    remedy = Remedy(f"state at most {most} there, or raise {item} for sessions of {user}")
    return Cause("docker-rootless-capped", text, remedy, at)


def _blame_cap(item: str, cap: Rlimit, daemon: Rootless) -> Cause:
    user = one_line(daemon.user)
    text = (
        f"dockerd of {user} (pid {daemon.pid}) has {item} {format_pair(item, cap)} itself, and no"
        " container of it can have more"
    )
    remedy = Remedy(
        f"raise {item} for sessions of {user} (the check of processes names the line of its user"
        " manager)",
        then=f"systemctl restart user@$(id -u {user}), which ends all that {user} runs",
    )
    return Cause("docker-rootless-capped", text, remedy)


def _act_as(cause: Cause, daemon: Rootless) -> Cause:
    """Return a cause whose commands touch a user's files as that user: links lead nowhere else."""
    user = one_line(daemon.user)
    commands = tuple(as_user(user, words) for words in cause.remedy.commands)
    then = f"{user} restarts it: systemctl --user restart docker"
    remedy = cause.remedy._replace(commands=commands, then=then if commands else cause.remedy.then)
    return cause._replace(remedy=remedy)
