# SPDX-License-Identifier: BSD-2-Clause
"""Say what a user's own dockerd cannot give, and let remedies of its files act as that user."""

from __future__ import annotations

from typing import NamedTuple

from .cause import Cause, Outlook
from .docker_remedies import format_pair
from .finding import FAIL, Finding
from .quote import one_line
from .remedy import Remedy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .rlimit import Rlimit

CODES = {
    "docker-rootless-capped": "a user's dockerd can give no container more than it has itself",
}


class Rootless(NamedTuple):
    """A user's own dockerd, and the limits of its process: the hard ones cap every container."""

    user: str
    pid: int
    limits: Mapping[str, Rlimit] = {}


def explain_rootless(finding: Finding, daemon: Rootless) -> Finding:
    """Return a finding of a user's own dockerd or of its container, what caps it said first."""
    causes = [_act_as(cause, daemon) for cause in finding.causes]
    wanted = finding.requirement
    cap = daemon.limits.get(wanted.item)
    if finding.status != FAIL or wanted.minimum is None or cap is None:
        return finding._replace(causes=tuple(causes))
    if cap.hard < wanted.minimum:
        outlook = Outlook("", FAIL, finding.outlook.after_boot and "unknown")
        return finding._replace(causes=(_blame_cap(wanted.item, cap, daemon),), outlook=outlook)
    return finding._replace(causes=tuple(causes))


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
    commands = tuple(("runuser", "-u", user, "--", *words) for words in cause.remedy.commands)
    then = f"{user} restarts it: systemctl --user restart docker"
    remedy = cause.remedy._replace(commands=commands, then=then if commands else cause.remedy.then)
    return cause._replace(remedy=remedy)
