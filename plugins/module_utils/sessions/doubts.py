# SPDX-License-Identifier: BSD-2-Clause
"""What may change a session's limits besides all that was run: with it a pass is unknown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..core.cause import Cause, Remedy, cite
from ..core.finding import PASS, UNKNOWN, Finding, Observation, judge
from ..core.values import Declaration, NamedTuple, Rlimit

CODES = {
    "pam-module-not-run": "a module that a check does not run may set limits in the session",
    "sshd-forces-command": "sshd runs a command in the place of the shell, which may set limits",
    "session-script-not-run": "a script that a session starts with, or its scripts, may set limits",
    "session-service-other": "sshd opens its sessions through another service of PAM",
    "session-user-record": "systemd sets limits of a user's record after all else",
    "session-daemon-older": "the daemon that passes a limit on may lose it when it starts again",
    "sudoers-sets-limit": "sudo sets limits after PAM, or opens no session of PAM",
}

_FULL = "check with probe: full, which runs it, or call pam_limits and nothing like it"


class Doubt(NamedTuple):
    """A line that may change the limits of a session; ``item`` is empty where it may be any.

    ``limit`` is what it makes of that item, where the line says so.
    """

    cause: Cause
    item: str = ""
    limit: Rlimit | None = None


def doubt_module(at: Declaration) -> Doubt:
    """Doubt what a PAM module does that a quiet session leaves out."""
    return _make("pam-module-not-run", at, "may set limits, and a check does not run it", _FULL)


def doubt_command(at: Declaration) -> Doubt:
    """Doubt what sshd runs in the place of a user's shell."""
    does = "takes the place of the shell and may set limits; it was not run"
    fix = "let that command set no limit, or log in that way and read `ulimit -a`"
    return _make("sshd-forces-command", at, does, fix)


def doubt_script(at: Declaration) -> Doubt:
    """Doubt what a session runs or reads first, and no look at its shell shows."""
    does = "is run or read when a session, or a script in it, starts; it may set limits"
    return _make("session-script-not-run", at, does, "let it set no limit, or take that line out")


def doubt_service(at: Declaration) -> Doubt:
    """Doubt a session of a PAM service that sshd does not use."""
    does = "has sshd open sessions through another PAM service than the one looked at"
    return _make("session-service-other", at, does, "take that line out, or have it name sshd")


def _make(code: str, at: Declaration, does: str, fix: str) -> Doubt:
    return Doubt(Cause(code, f"{cite(at)} {does}", Remedy(fix), at))


def doubt_record(at: Declaration) -> Doubt:
    """Doubt what pam_systemd, which a check does not run, takes from the record of a user."""
    text = f"{at.path} holds limits that pam_systemd sets after all else; it was not run"
    remedy = Remedy("take resourceLimits out of that record, or state them there")
    return Doubt(Cause("session-user-record", text, remedy, at))


def doubt_sudo(at: Declaration, item: str, limit: Rlimit | None = None) -> Doubt:
    """Doubt what sudo makes of a session that PAM has opened, or has not."""
    does = f"sets {item} after PAM did" if item else "keeps sudo from its own session of PAM"
    remedy = Remedy("take that setting out with visudo")
    return Doubt(Cause("sudoers-sets-limit", f"{cite(at)} {does}", remedy, at), item, limit)


def doubt_daemon(reason: str, path: str) -> Cause:
    """Doubt what sessions inherit once their daemon is started again, where nothing else decides.

    :param path: The file at fault, if one is.
    """
    remedy = Remedy("state both bounds in a limits file, or restart that daemon and check again")
    at = Declaration(path, 0, "", "") if path else None
    return Cause("session-daemon-older", f"{reason}, and no limits file states both", remedy, at)


def doubt_findings(findings: Iterable[Finding], doubts: Sequence[Doubt]) -> list[Finding]:
    """Return findings of a session of which none passes that something may still change."""
    return [_doubt(finding, doubts) for finding in findings]


def _doubt(finding: Finding, doubts: Sequence[Doubt]) -> Finding:
    item = finding.requirement.item
    open_ = [one for one in doubts if one.item in ("", item) and not _meets(finding, one.limit)]
    causes = tuple(one.cause for one in open_)
    if finding.status != PASS or not causes:
        return finding
    seen = finding.observation._replace(value=None, reason=causes[0].text)
    return finding._replace(status=UNKNOWN, observation=seen, causes=causes)


def _meets(finding: Finding, limit: Rlimit | None) -> bool:
    """Tell whether what a line sets is enough; nothing is where it does not say."""
    if limit is None:
        return False
    value = limit.hard if finding.requirement.bound == "hard" else limit.soft
    return judge(finding.requirement, Observation(value, "")).status == PASS
