# SPDX-License-Identifier: BSD-2-Clause
"""Write a host's plans in the order that locks nobody out, prove it, or put all of it back."""

from __future__ import annotations

import ctypes
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from ..core.plan import Section
from ..host.children import run_in_children
from ..host.image import is_image
from ..host.scratch import make_scratch, remove_scratch
from ..host.users import find_connecting_user, read_user
from ..kernel.settle import apply_sysctls
from ..write.replace import Changes, apply_edits, commit_edits, find_target, revert_edits
from .measure import SessionResult, measure_sessions, pick_users
from .pam_limits import LIMITS_CONF
from .shell_measure import find_failing_shells

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.edit import Edit
    from .policy import SessionRule

    Settle = Callable[[], str]

_FOLDER = os.path.dirname(LIMITS_CONF)
_CLONE_NEWNS = 0x00020000
_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 0x40000
_TIME_LIMIT = 120.0
_MOST_USERS = 5  # Of a long list, whose sessions are opened before and after a change.


def rehearse(edits: Sequence[Edit], find_harm: Callable[[], str]) -> str:
    """Return the harm that these edits of limits files would do; nothing of them is written.

    A run that is killed between its write and its proof must not leave a host that nobody can
    enter, so the proof comes first. Where this process may not have a mount namespace (in most
    containers), nothing is found out and the proof after the write stands alone.

    :param find_harm: What to find out while /etc/security looks as it will.
    """
    if not edits or not all(find_target(edit.path).startswith(f"{_FOLDER}/") for edit in edits):
        return ""
    scratch = make_scratch()
    try:
        copy = f"{scratch}{_FOLDER}"
        shutil.copytree(_FOLDER, copy, symlinks=True)
        apply_edits(edits, scratch)
        report = run_in_children([partial(_look, copy, find_harm)], _TIME_LIMIT)[0]
    finally:
        remove_scratch(scratch)
    return report.value if isinstance(report.value, str) else ""


def _look(copy: str, find_harm: Callable[[], str]) -> str:
    """Show this process alone the copy in place of the real folder. Runs in a child."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNS):
        return ""
    # What is mounted from here on must not be seen by anybody else.
    private = libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None)
    if private or libc.mount(os.fsencode(copy), _FOLDER.encode(), None, _MS_BIND, None):
        return ""
    return find_harm()


_NOT_HERE = ("no PAM service", "libpam.so.0:")  # Where a way in is missing, none can be lost.
_SERVICES = ("sshd", "su", "sudo", "cron", "login")


def apply_plans(sections: Mapping[str, Section], users: Sequence[str] = ()) -> tuple[str, ...]:
    """Write the plans of a host in their order, and prove that logins go on.

    The kernel's values change first, so that fs.nr_open is up before a nofile may reach for it.

    :param sections: By name: the plan of ``sessions`` is rehearsed, wherever it stands.
    :param users: Whose sessions must still open, besides root's, those of whoever is connected
        and of one ordinary user.
    :returns: What was wrong with the host before: the sessions that did not open, and why.
    :raises OSError: If something could not be written, a session that opened does not open any
        more, or a daemon does not come back. Everything is as it was then.
    """
    logins = sections.get("sessions", Section()).plan.edits
    writes = [(key, after) for one in sections.values() for key, _before, after in one.sysctls]
    before = _open_sessions(users) if (logins or writes) and not is_image() else []
    find_lost = partial(_find_lost_session, before, users)
    undo = apply_sysctls(writes)
    try:
        harm = rehearse(logins, find_lost)
        if harm:
            raise OSError(f"{harm}; nothing was written")
        changes = apply_edits([edit for one in sections.values() for edit in one.plan.edits])
        _prove(changes, find_lost, [one.settle for one in sections.values() if one.settle])
    except BaseException:
        apply_sysctls(undo)
        raise
    commit_edits(changes)
    return tuple(_describe_closed(before))


def find_named_users(rules: Iterable[SessionRule]) -> list[str]:
    """Return the first users whom a policy names and the host has."""
    names = dict.fromkeys(name for rule in rules for name in rule.users)
    return [name for name in names if name[:1] not in "*@%:" and read_user(name)][:_MOST_USERS]


def _prove(changes: Changes, find_lost: Callable[[], str], settles: Sequence[Settle]) -> None:
    """Open every session again and settle the daemons; put the files back if one is lost.

    :raises OSError: With what was lost.
    """
    settled: list[Settle] = []
    try:
        lost = find_lost()
        for settle in settles:
            if not lost:
                settled.append(settle)
                lost = settle()
    except BaseException:
        revert_edits(changes)
        raise
    if lost:
        revert_edits(changes)
        again = "; ".join(filter(None, [settle() for settle in settled]))
        state = f" and still: {again}" if again else ""
        raise OSError(f"{lost}; every file was put back{state}")


def _open_sessions(users: Sequence[str]) -> list[SessionResult]:
    """Open a session of everyone who must keep a way in, in every way."""
    everyone = dict.fromkeys([*_list_known(users), *pick_users(1)])
    wanted = [(service, user) for user in everyone for service in _SERVICES]
    results = _add_shells(measure_sessions(wanted), _find_strangers(users))
    unknown = [result.reason for result in results if _is_unknown(result)]
    if unknown and all(result.opens is None for result in results):
        raise OSError(
            f"no session can be opened, so nothing proves that logins go on ({unknown[0]});"
            " nothing was written"
        )
    return results


def _list_known(users: Sequence[str]) -> list[str]:
    return ["root", *filter(None, [find_connecting_user()]), *users]


def _find_strangers(users: Sequence[str]) -> list[str]:
    """Return who stands for all ordinary users: nobody asked what that one wants of this host."""
    return [user for user in pick_users(1) if user not in _list_known(users)]


def _is_unknown(result: SessionResult) -> bool:
    """Tell whether a session could exist here, and it was not found out whether it opens."""
    return result.opens is None and not result.reason.startswith(_NOT_HERE)


def _find_lost_session(before: Sequence[SessionResult], users: Sequence[str]) -> str:
    """Return which session that opened before does not open any more, and why; or nothing."""
    wanted = [(result.service, result.user) for result in before if result.opens]
    for result in _add_shells(measure_sessions(wanted), _find_strangers(users)):
        if not result.opens:
            return (
                f"a session of {result.user} through {result.service} would not open any more"
                f" ({result.reason})"
            )
    return ""


def _add_shells(results: Sequence[SessionResult], strangers: Sequence[str]) -> list[SessionResult]:
    """Return the results, those as closed in which the user's shell does not start."""
    tried = {_shell_key(result): result for result in results if result.opens and result.limits}
    sessions = [(one.user, one.limits or {}) for one in tried.values()]
    failures = find_failing_shells(sessions, strangers)
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
