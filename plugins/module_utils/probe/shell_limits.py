# SPDX-License-Identifier: BSD-2-Clause
"""Measure what a person's shell makes of a session's limits, where its startup files set some."""

from __future__ import annotations

import glob
import os
import pwd
import signal
from functools import partial
from itertools import islice
from typing import NamedTuple

from ..policy.declaration import Declaration
from ..policy.proc_limits import parse_proc_limits
from ..policy.rlimit import Rlimit
from ..policy.shell_limits import (
    INTERACTIVE,
    LOGIN,
    ShellLine,
    find_shell_limits,
    find_sourced,
    list_startup_files,
)
from .children import run_in_children
from .files import read_text
from .shell import become, enter_shell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from .session import SessionResult

_KINDS = {
    "sshd": (LOGIN, INTERACTIVE),  # bash reads .bashrc under sshd where it is given a command.
    "login": (LOGIN,),
    "su-l": (LOGIN,),
    "sudo-i": (LOGIN,),
    "su": (INTERACTIVE,),
}
_TIME_LIMIT = 10.0
_MOST = 10
_ROWS = 17  # Of /proc/self/limits.
_DEEPEST = 3  # Files that read files that read files.
_MARK = "mlhost-limits:"
_PRINT = f"echo {_MARK}; exec /bin/cat /proc/self/limits"


class ShellResult(NamedTuple):
    """What a session has once its shell has started; ``limits`` is ``None`` where that is not
    known, for this reason. ``lines`` are those that may have changed something, ``how`` says how
    it was measured."""

    limits: dict[str, Rlimit] | None
    reason: str
    lines: tuple[ShellLine, ...]
    how: str = ""


def measure_shells(
    sessions: Collection[SessionResult], items: Collection[str]
) -> dict[tuple[str, str], ShellResult]:
    """Start the shells of those whose startup files set one of these limits, and no others.

    :returns: By service and user; a session that no shell changes is not in it.
    """
    asked = [one for one in sessions if one.limits is not None and one.service in _KINDS]
    users = list(dict.fromkeys(session.user for session in asked))
    tasks = [partial(_look, user, tuple(items)) for user in users]
    reports = dict(zip(users, run_in_children(tasks, _TIME_LIMIT)))
    found = {}
    for session in asked:
        report = reports[session.user]
        lines = tuple(_read_line(*fields) for fields in report.value or ())
        if report.problem:
            reason = f"the startup files of {session.user} cannot be read: {report.problem}"
            found[session.service, session.user] = ShellResult(None, reason, ())
        elif lines:
            found[session.service, session.user] = _measure(session, lines)
    return found


def _read_line(item: str, bounds: list[str], at: list[object]) -> ShellLine:
    return ShellLine(item, tuple(bounds), Declaration(*at))  # type: ignore[arg-type]


def _look(user: str, items: tuple[str, ...]) -> list[ShellLine]:
    """Return the lines of a user's startup files that set one of these items. Runs in a child.

    The files are read as the user, whose links may lead anywhere, and whose home may be on a
    server that trusts no root.
    """
    entry = pwd.getpwnam(user)
    become(entry)
    return list(islice(_find_lines(entry, items), _MOST))


def _find_lines(entry: pwd.struct_passwd, items: tuple[str, ...]) -> Iterator[ShellLine]:
    waiting = [(path, 0) for path in _list_files(entry)]
    seen = set()
    while waiting:
        path, depth = waiting.pop(0)
        if path in seen or not os.path.isfile(path):
            continue
        seen.add(path)
        try:
            text = read_text(path) or ""
        except OSError:
            continue  # Nor can the shell read it, or it is larger than any startup file is.
        yield from (line for line in find_shell_limits(text, path) if line.item in items)
        if depth < _DEEPEST:
            waiting += [(name, depth + 1) for name in find_sourced(text, entry.pw_dir)]


def _list_files(entry: pwd.struct_passwd) -> Iterator[str]:
    for pattern in list_startup_files(entry.pw_shell or "/bin/sh"):
        if pattern.startswith("~"):
            yield entry.pw_dir + pattern[1:]
        else:
            yield from sorted(glob.glob(pattern))


def _measure(session: SessionResult, lines: tuple[ShellLine, ...]) -> ShellResult:
    """Start the shell in each way that the service may, and return the lowest of each limit."""
    kinds = _KINDS[session.service]
    tasks = [partial(_start, session.user, session.limits or {}, kind) for kind in kinds]
    reports = run_in_children(tasks, _TIME_LIMIT)
    texts = [str(report.value or "").partition(f"{_MARK}\n")[2] for report in reports]
    try:
        read = [parse_proc_limits(text) for text in texts]
    except ValueError:
        problem = next((report.problem for report in reports if report.problem), "it ended early")
        reason = f"the shell of {session.user}, which sets limits, told nothing: {problem}"
        return ShellResult(None, reason, lines)
    lowest = {
        item: Rlimit(min(one[item].soft for one in read), min(one[item].hard for one in read))
        for item in read[0]
    }
    how = f"{session.how}; then the {' and the '.join(kinds)} shell of {session.user}"
    return ShellResult(lowest, "", lines, how)


def _start(user: str, limits: Mapping[str, Rlimit], kind: str) -> str:
    """Start one shell and return what it prints. Runs in a child."""
    entry = pwd.getpwnam(user)
    shell = entry.pw_shell or "/bin/sh"
    first = f"-{os.path.basename(shell)}" if kind == LOGIN else shell
    asked = ["-i"] if kind == INTERACTIVE and not shell.endswith("csh") else []
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(writer, 1)
        enter_shell(entry, limits, [first, *asked, "-c", _PRINT])
    os.close(writer)
    text = ""
    # What the shell leaves in the background may keep its output open for ever.
    while text.count("\n", max(text.rfind(_MARK), 0)) <= _ROWS:
        received = os.read(reader, 65536)
        if not received:
            break
        text += received.decode("utf-8", "replace")
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.killpg(0, signal.SIGTERM)  # What the shell left in the background.
    return text[text.rfind(_MARK) :][:3000]
