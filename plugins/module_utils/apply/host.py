# SPDX-License-Identifier: BSD-2-Clause
"""Write a host's plans in the order that locks nobody out, prove it, or put all of it back."""

from __future__ import annotations

from functools import partial

from ..probe.session import measure_sessions, pick_users
from ..probe.shell import find_failing_shells
from ..probe.users import find_connecting_user
from .docker import restart_docker
from .kernel import apply_sysctls
from .rehearsal import rehearse
from .replace import apply_edits, commit_edits, revert_edits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..policy.plan import SectionPlan
    from ..probe.session import SessionResult
    from .replace import Changes

_NOT_HERE = ("no PAM service", "libpam.so.0:")  # Where a way in is missing, none can be lost.
_SERVICES = ("sshd", "su", "sudo", "cron", "login")


def apply_plans(
    plans: tuple[SectionPlan, SectionPlan, SectionPlan],
    writes: tuple[tuple[str, str], ...],
    docker_address: str | None,
    users: Sequence[str] = (),
) -> tuple[str, ...]:
    """Write the plans of kernel, sessions and Docker.

    Running values rise first, so that fs.nr_open is up before a nofile may reach for it.

    :param users: Whose sessions must still open, besides root's, those of whoever is connected
        and of one ordinary user.
    :param docker_address: The socket of the daemon to restart, or ``None`` for no restart.
    :returns: What was wrong with the host before: the sessions that did not open, and why.
    :raises OSError: If something could not be written, a session that opened does not open any
        more, or Docker does not come back. Everything is as it was then.
    """
    kernel, sessions, docker = plans
    before = _open_sessions(users) if sessions.edits or writes else []
    undo = apply_sysctls(writes)
    try:
        harm = rehearse(sessions.edits, partial(_find_lost_session, before))
        if harm:
            raise OSError(f"{harm}; nothing was written")
        changes = apply_edits((*kernel.edits, *sessions.edits, *docker.edits))
        _prove(changes, before, docker_address)
    except BaseException:
        apply_sysctls(undo)
        raise
    commit_edits(changes)
    return tuple(_describe_closed(before))


def _prove(changes: Changes, before: Sequence[SessionResult], docker_address: str | None) -> None:
    """Open every session again and restart Docker; put the files back if one is lost.

    :raises OSError: With what was lost.
    """
    try:
        lost = _find_lost_session(before)
        down = "" if lost or not docker_address else restart_docker(docker_address)
    except BaseException:
        revert_edits(changes)
        raise
    if lost or down:
        revert_edits(changes)
        again = restart_docker(docker_address) if docker_address and down else ""
        state = f" and Docker still does not run: {again}" if again else ""
        raise OSError(f"{lost or down}; every file was put back{state}")


def _open_sessions(users: Sequence[str]) -> list[SessionResult]:
    """Open a session of everyone who must keep a way in, in every way."""
    connecting = filter(None, [find_connecting_user()])
    everyone = dict.fromkeys(["root", *connecting, *pick_users(1), *users])
    wanted = [(service, user) for user in everyone for service in _SERVICES]
    results = _add_shells(measure_sessions(wanted))
    unknown = [result.reason for result in results if _is_unknown(result)]
    if unknown and all(result.opens is None for result in results):
        raise OSError(
            f"no session can be opened, so nothing proves that logins go on ({unknown[0]});"
            " nothing was written"
        )
    return results


def _is_unknown(result: SessionResult) -> bool:
    """Tell whether a session could exist here, and it was not found out whether it opens."""
    return result.opens is None and not result.reason.startswith(_NOT_HERE)


def _find_lost_session(before: Sequence[SessionResult]) -> str:
    """Return which session that opened before does not open any more, and why; or nothing."""
    wanted = [(result.service, result.user) for result in before if result.opens]
    for result in _add_shells(measure_sessions(wanted)):
        if not result.opens:
            return (
                f"a session of {result.user} through {result.service} would not open any more"
                f" ({result.reason})"
            )
    return ""


def _add_shells(results: Sequence[SessionResult]) -> list[SessionResult]:
    """Return the results, those as closed in which the user's shell does not start."""
    tried = {_shell_key(result): result for result in results if result.opens and result.limits}
    failures = find_failing_shells([(one.user, one.limits or {}) for one in tried.values()])
    reasons = {key: reason for key, reason in zip(tried, failures) if reason}
    return [
        result._replace(opens=False, reason=reasons[_shell_key(result)])
        if _shell_key(result) in reasons
        else result
        for result in results
    ]


def _shell_key(result: SessionResult) -> tuple[str, str]:
    """Tell sessions apart in which a shell may start or not: by user and limits."""
    return result.user, str(sorted((result.limits or {}).items()))


def _describe_closed(before: Sequence[SessionResult]) -> Iterator[str]:
    for result in before:
        session = f"a session of {result.user} through {result.service}"
        if result.opens is False:
            yield f"before this run, {session} did not open ({result.reason})"
        elif _is_unknown(result):
            yield f"whether {session} opens was not found out ({result.reason})"
