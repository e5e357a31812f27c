# SPDX-License-Identifier: BSD-2-Clause
"""Measure what a person's shell makes of a session's limits, where its startup files set some."""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice

from ..core.declaration import Declaration
from ..core.named import NamedTuple
from ..core.proc_limits import parse_proc_limits
from ..core.quote import one_line
from ..core.rlimit import Rlimit
from ..host.as_user import Errand, ask_users
from ..host.children import Report, run_in_children
from ..host.door import find_paths
from ..host.files import read_text
from .shell_limits import (
    BOTH,
    INTERACTIVE,
    KNOWN_SHELLS,
    LOGIN,
    ShellLine,
    find_shell_limits,
    find_sourced,
    list_startup_files,
)
from .shell_measure import NO_HOME, find_nobody, find_shell, start_shell

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
_DEEPEST = 3  # Files that read files that read files.
_SHARED = ("/etc/", "/usr/")  # Where root alone writes.
_MARK = "mlhost-limits:"
_PRINT = f"echo {_MARK}; exec /bin/cat /proc/self/limits"


class ShellResult(NamedTuple):
    """What a session has once its shell has started; ``limits`` is ``None`` where that is not
    known, for this reason. ``lines`` are those that may have changed something, ``how`` says how
    it was measured. All of that the user's own files have a say in.

    ``given`` is what the start files that are root's leave of the session, where they set limits:
    measured as nobody, whose files and processes no user has.
    """

    limits: dict[str, Rlimit] | None
    reason: str
    lines: tuple[ShellLine, ...]
    how: str = ""
    given: ShellResult | None = None


def measure_shells(
    sessions: Collection[SessionResult], items: Collection[str]
) -> dict[tuple[str, str], ShellResult]:
    """Start the shells of those whose startup files set one of these limits, and no others.

    :returns: By service and user; a session that no shell changes is not in it.
    """
    asked = [one for one in sessions if one.limits is not None and one.service in _KINDS]
    users = list(dict.fromkeys(session.user for session in asked))
    reports = _ask([pwd.getpwnam(user) for user in users], tuple(items))
    shared_by: dict[str, tuple[ShellLine, ...]] = {}
    found: dict[tuple[str, str], ShellResult] = {}
    for session in asked:
        report, entry = reports[session.user], pwd.getpwnam(session.user)
        own, trouble = _read_report(report, session.user)
        shell = entry.pw_shell or "/bin/sh"
        if shell not in shared_by:
            shared_by[shell] = tuple(islice(_find_shared(shell, items), _MOST))
        shared = shared_by[shell]
        lines = tuple(dict.fromkeys([*own, *shared]))
        given = None
        if shared and entry.pw_uid:
            given = _measure(session, find_nobody(entry), shared)
        if trouble:
            found[session.service, session.user] = ShellResult(None, trouble, lines, given=given)
        elif lines:
            measured = _measure(session, entry, lines)
            found[session.service, session.user] = measured._replace(given=given)
    return found


def _ask(people: Sequence[pwd.struct_passwd], items: tuple[str, ...]) -> dict[str, Report]:
    """Return what the start files of users state, each asked in time; who asks needs no cage."""
    own = [one for one in people if one.pw_uid == os.geteuid()]
    others = [one for one in people if one not in own]
    tasks = [partial(_look, one, items) for one in own]
    errands = [Errand(one, partial(_look, one, items), seconds=_TIME_LIMIT) for one in others]
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


def _read_line(item: str, bounds: list[str], at: list[object]) -> ShellLine:
    return ShellLine(item, tuple(bounds), Declaration(*at))  # type: ignore[arg-type]


def _look(entry: pwd.struct_passwd, items: tuple[str, ...]) -> dict[str, object]:
    """Return what a user's startup files say of these items. Runs as that user.

    Their links may lead anywhere, and the home may be on a server that trusts no root.
    """
    patterns = list_startup_files(entry.pw_shell or "/bin/sh")
    paths = [entry.pw_dir + one[1:] for one in patterns if one.startswith("~")]
    odd: list[str] = []
    lines = list(islice(_find_lines(paths, entry.pw_dir, items, odd), _MOST))
    return {"lines": lines, "odd": next(iter(odd), "")}


def _find_shared(shell: str, items: Collection[str]) -> Iterator[ShellLine]:
    """Yield the lines of startup files that all users share, and root wrote."""
    yield from _find_in_shell(shell, items)
    patterns = [one for one in list_startup_files(shell) if one.startswith("/")]
    paths = [path for pattern in patterns for path in find_paths(pattern)]
    yield from _find_lines(paths, NO_HOME, items, [], _SHARED)


def _find_in_shell(shell: str, items: Collection[str]) -> Iterator[ShellLine]:
    """Yield what a login shell states that is none of those whose files are known.

    It may be a script around another one, or a program that sets limits of its own accord.
    """
    folder, _slash, name = shell.rpartition("/")
    if name in KNOWN_SHELLS and folder in ("/bin", "/usr/bin"):
        return
    try:
        text = read_text(shell) or ""
    except OSError:
        text = ""
    stated = list(find_shell_limits(text, shell, hints=True)) if text.startswith("#!") else []
    found = [one for one in stated if one.item in ("", *items)]
    yield from found or [ShellLine("", BOTH, Declaration(shell, 0, "a login shell", ""))]


def _find_lines(
    paths: Iterable[str],
    home: str,
    items: Collection[str],
    odd: list[str],
    within: tuple[str, ...] = ("/",),
) -> Iterator[ShellLine]:
    """Yield the lines of files, and of those that they read, that set one of these items.

    :param odd: Takes in what a shell cannot get through.
    :param within: What the paths begin with that are read.
    """
    waiting = [(path, 0) for path in paths]
    seen = set()
    while waiting:
        path, depth = waiting.pop(0)
        if path in seen or not os.path.normpath(path).startswith(within):
            continue
        seen.add(path)
        try:
            strange = _find_strange(os.stat(path))
            odd += [f"{path} is {strange}"] if strange else []
            text = (os.path.isfile(path) and read_text(path)) or ""
        except OSError as exc:
            # A shell cannot read it either, unless it is only larger than a startup file is.
            odd += [] if exc.errno else [str(exc)]
            continue
        stated = find_shell_limits(text, path, hints=True)
        yield from (line for line in stated if line.item in ("", *items))
        if depth < _DEEPEST:
            waiting += [(name, depth + 1) for name in find_sourced(text, home)]


def _find_strange(found: os.stat_result) -> str:
    """Return what a file is that a shell would read without an end; /dev/null ends at once."""
    if stat.S_ISFIFO(found.st_mode):
        return "a FIFO"
    if stat.S_ISCHR(found.st_mode) and found.st_rdev != os.makedev(1, 3):
        return "a device"
    return ""


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
        return ShellResult(None, reason + (*problems, "it ended early")[0], lines)
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
    return [first, *asked, "-c", _PRINT]


def _find_table(said: str) -> str:
    """Return what a shell printed last, after what its startup files did."""
    return said.rpartition(f"{_MARK}\n")[2][:_LONGEST]
