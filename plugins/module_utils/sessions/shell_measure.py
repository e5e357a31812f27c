# SPDX-License-Identifier: BSD-2-Clause
"""Find out whether a person's shell starts under given limits: an open session is not enough."""

from __future__ import annotations

import pwd
from collections.abc import Collection, Mapping, Sequence

from ..core.values import Rlimit
from ..host.as_user import Errand, ask_users, describe_person
from ..host.children import Report

_TIME_LIMIT = 20.0
_MOST = 2**20
NOBODY = 65534
NO_HOME = "/nonexistent"


def find_failing_shells(
    sessions: Sequence[tuple[str, Mapping[str, Rlimit]]], strangers: Collection[str] = ()
) -> list[str]:
    """Start the shell of each user under these limits, to do nothing (``-c :``).

    With too few descriptors or too little memory, a login ends right after PAM let it in.

    :param sessions: Users of this host, and the limits of a session of theirs.
    :param strangers: Those of whom nothing is to be run: their shell starts as nobody, so that
        what is in their own files, and what they do to their processes, decides nothing.
    :returns: For each why the shell did not start, or nothing.
    """
    people = [pwd.getpwnam(user) for user, _limits in sessions]
    people = [find_nobody(one) if one.pw_name in strangers else one for one in people]
    errands = [
        start_shell(person, limits, [find_shell(person), "-c", ":"], _TIME_LIMIT)
        for person, (_user, limits) in zip(people, sessions)
    ]
    reports = ask_users(errands)
    return [_judge(person, report) for person, report in zip(people, reports)]


def _judge(person: pwd.struct_passwd, report: Report) -> str:
    if report.problem:
        return report.problem
    status, _said, late = report.value
    if late:
        return f"{person.pw_shell} did not end within {_TIME_LIMIT:.0f} s"
    how = f"signal {-status}" if status < 0 else "an error"
    return f"{person.pw_shell} ends with {how}" if status else ""


def find_nobody(entry: pwd.struct_passwd) -> pwd.struct_passwd:
    """Return a user of whom nobody has a process or a file, with the shell of another."""
    return pwd.struct_passwd(["nobody", "x", NOBODY, NOBODY, "", NO_HOME, entry.pw_shell])


def find_shell(person: pwd.struct_passwd) -> str:
    return person.pw_shell or "/bin/sh"


def start_shell(
    person: pwd.struct_passwd, limits: Mapping[str, Rlimit], words: Sequence[str], seconds: float
) -> Errand:
    """Return the errand that starts a person's shell as a login does, with its environment."""
    environment = {**describe_person(person), "PATH": "/usr/bin:/bin"}
    return Errand(
        person,
        words=words,
        program=find_shell(person),
        environment=environment,
        limits=limits,
        seconds=seconds,
        most=_MOST,
        folder=person.pw_dir,
    )
