# SPDX-License-Identifier: BSD-2-Clause
"""Measure what a person's shell makes of a session's limits, where its startup files set some."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice

from ..core.quote import one_line
from ..core.values import Declaration, NamedTuple, Rlimit, parse_proc_limits
from ..host.as_user import Errand, ask_users
from ..host.children import Report, run_in_children
from ..host.files import read_text
from .doubts_read import may_set_limits
from .first_scripts import find_forced_keys
from .shell_files_read import find_lines, find_shared_lines
from .shell_limits import INTERACTIVE, LOGIN, ShellLine, list_startup_files
from .shell_measure import find_nobody, find_shell, start_shell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .measure import SessionResult

_KINDS = {
    "sshd": (LOGIN, INTERACTIVE),  # bash reads .bashrc under sshd where it is given a command.
    "login": (LOGIN,),
    "su-l": (LOGIN,),
    "sudo-i": (LOGIN,),
    "su": (INTERACTIVE,),
}
_TIME_LIMIT = 10.0
_MOST = 10
_LONGEST = 3000
_MARK = "mlhost-limits:"
_PRINT = f"echo {_MARK}; exec /bin/cat /proc/self/limits"
_BASH = "/bin/bash"
_MOST_FORCED = 3


class ShellResult(NamedTuple):
    """What a session has once its shell has started; ``limits`` is ``None`` where that is not
    known, for this reason. ``lines`` are those that may have changed something, ``how`` says how
    it was measured. All of that the user's own files have a say in.

    ``forced`` are lines of authorized_keys whose command may set limits in the place of a shell.

    ``given`` is what the start files that are root's leave of the session, where they set limits:
    measured as nobody, whose files and processes no user has.
    """

    limits: dict[str, Rlimit] | None
    reason: str
    lines: tuple[ShellLine, ...]
    how: str = ""
    given: ShellResult | None = None
    forced: tuple[Declaration, ...] = ()


def measure_shells(
    sessions: Collection[SessionResult],
    items: Collection[str],
    keys: Mapping[str, Sequence[str]] | None = None,
) -> dict[tuple[str, str], ShellResult]:
    """Start the shells of those whose startup files set one of these limits, and no others.

    :param keys: The files with each user's keys, as sshd names them.
    :returns: By service and user; a session that no shell changes is not in it.
    """
    asked = [one for one in sessions if one.limits is not None and one.service in _KINDS]
    users = list(dict.fromkeys(session.user for session in asked))
    reports = _ask([pwd.getpwnam(user) for user in users], tuple(items), keys or {})
    shared_by: dict[str, tuple[ShellLine, ...]] = {}
    found: dict[tuple[str, str], ShellResult] = {}
    for session in asked:
        report, entry = reports[session.user], pwd.getpwnam(session.user)
        own, trouble = _read_report(report, session.user)
        forced = _read_forced(report) if session.service == "sshd" else ()
        shell = entry.pw_shell or "/bin/sh"
        if shell not in shared_by:
            shared_by[shell] = tuple(islice(find_shared_lines(shell, items), _MOST))
        shared = shared_by[shell]
        lines = tuple(dict.fromkeys([*own, *shared]))
        given = None
        if shared and entry.pw_uid:
            given = _measure(session, find_nobody(entry), shared)
        if trouble:
            found[session.service, session.user] = ShellResult(None, trouble, lines, given=given)
        elif lines:
            measured = _measure(session, entry, lines)
            found[session.service, session.user] = measured._replace(given=given, forced=forced)
        elif forced:
            plain = ShellResult(session.limits, "", (), session.how, forced=forced)
            found[session.service, session.user] = plain
    return found


def _ask(
    people: Sequence[pwd.struct_passwd],
    items: tuple[str, ...],
    keys: Mapping[str, Sequence[str]],
) -> dict[str, Report]:
    """Return what the start files of users state, each asked in time; who asks needs no cage."""
    own = [one for one in people if one.pw_uid == os.geteuid()]
    others = [one for one in people if one not in own]
    looks = {one: partial(_look, one, items, keys.get(one.pw_name, ())) for one in people}
    tasks = [looks[one] for one in own]
    errands = [Errand(one, looks[one], seconds=_TIME_LIMIT) for one in others]
    reports = [*run_in_children(tasks, _TIME_LIMIT), *ask_users(errands)]
    return {one.pw_name: report for one, report in zip((*own, *others), reports)}


def _read_report(report: Report, user: str) -> tuple[list[ShellLine], str]:
    """Return the lines of a user's own files, and what keeps a shell from getting through them."""
    value = report.value or {}
    lines = [_read_line(*fields) for fields in value.get("lines", ())]
    if report.problem:
        return lines, f"the startup files of {user} cannot be read: {report.problem}"
    odd = one_line(str(value.get("odd", "")))
    return lines, f"the start files of {user}'s shell give no session: {odd}" if odd else ""


def _read_forced(report: Report) -> tuple[Declaration, ...]:
    return tuple(Declaration(*at) for at in (report.value or {}).get("forced", ()))


def _read_line(item: str, bounds: list[str], at: list[object]) -> ShellLine:
    return ShellLine(item, tuple(bounds), Declaration(*at))  # type: ignore[arg-type]


def _look(
    entry: pwd.struct_passwd, items: tuple[str, ...], keys: Sequence[str]
) -> dict[str, object]:
    """Return what a user's startup files say of these items, and keys. Runs as that user.

    Their links may lead anywhere, and the home may be on a server that trusts no root.
    """
    patterns = list_startup_files(entry.pw_shell or "/bin/sh")
    paths = [entry.pw_dir + one[1:] for one in patterns if one.startswith("~")]
    odd: list[str] = []
    lines = list(islice(find_lines(paths, entry.pw_dir, items, odd), _MOST))
    forced = list(islice(_find_forced(entry, keys), _MOST_FORCED))
    return {"lines": lines, "odd": next(iter(odd), ""), "forced": forced}


def _find_forced(entry: pwd.struct_passwd, keys: Sequence[str]) -> Iterator[Declaration]:
    """Yield the keys that run something in the place of the shell which may set limits."""
    marks = {"%h": entry.pw_dir, "%u": entry.pw_name, "%U": str(entry.pw_uid), "%%": "%"}
    for name in keys:
        path = re.sub("%[huU%]", lambda mark: marks[mark[0]], name)
        path = path if path.startswith("/") else f"{entry.pw_dir}/{path}"
        try:
            text = read_text(path) or ""
        except OSError:
            continue  # sshd reads it as the user, and cannot either.
        for line in find_forced_keys(text, path):
            if may_set_limits(str(line.value)):
                yield line


def _measure(
    session: SessionResult, entry: pwd.struct_passwd, lines: tuple[ShellLine, ...]
) -> ShellResult:
    """Start a shell in each way that the service may, and return the lowest of each limit."""
    kinds, limits = _KINDS[session.service], session.limits or {}
    words = [_write_words(find_shell(entry), kind) for kind in kinds]
    reports = ask_users([start_shell(entry, limits, each, _TIME_LIMIT) for each in words])
    texts = [report.value[1] if report.value else "" for report in reports]
    try:
        read = [parse_proc_limits(_find_table(text)) for text in texts]
    except ValueError:
        problems = [*filter(None, map(_describe, reports))]
        problems += ["it told no limits"] if any(_MARK in text for text in texts) else []
        reason = f"the start files of {entry.pw_name}'s shell give no session: "
        reason += (*problems, "it ended early")[0]
        unclear = [line.at.place for line in lines if not line.bounds]
        reason += f"; {unclear[0]} has it read or become something else" if unclear else ""
        return ShellResult(None, reason, lines)
    lowest = {
        item: Rlimit(min(one[item].soft for one in read), min(one[item].hard for one in read))
        for item in read[0]
    }
    how = f"{session.how}; then the {' and the '.join(kinds)} shell of {entry.pw_name}"
    return ShellResult(lowest, "", lines, how)


def _describe(report: Report) -> str:
    """Return what kept a shell from telling its limits, if it is known."""
    late = bool(report.value) and report.value[2]
    return f"no answer within {_TIME_LIMIT:g} s" if late else report.problem


def _write_words(shell: str, kind: str) -> list[str]:
    """Return what a shell is called with, to tell its limits in the end."""
    first = f"-{os.path.basename(shell)}" if kind == LOGIN else shell
    asked = ["-i"] if kind == INTERACTIVE and not shell.endswith("csh") else []
    # A script of bash is started from it, for that reads what BASH_ENV names.
    script = f"exec {_BASH} -c '{_PRINT}'" if os.path.exists(_BASH) else _PRINT
    return [first, *asked, "-c", script]


def _find_table(said: str) -> str:
    """Return what a shell printed last, after what its startup files did."""
    return said.rpartition(f"{_MARK}\n")[2][:_LONGEST]
