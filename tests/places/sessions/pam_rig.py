# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare what we predict of generated limits files with the sessions that pam_limits gives.

``python3 -m tests.places.sessions.pam_rig FOLDER SEED FIRST COUNT`` tries that many sets of files from a
number on, as root in namespaces of its own, and prints one line of JSON for each. Where limits can
be raised again, one process opens session after session and takes back what they did to it;
else, and for what cannot be taken back, each session has a child.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from mlhost_limits.core.values import User
from mlhost_limits.host.children import run_in_children
from mlhost_limits.host.own_limits import read_own_limits, set_own_limits
from mlhost_limits.host.users import read_user
from mlhost_limits.sessions.dialect_read import read_dialect
from mlhost_limits.sessions.libpam_measure import Libpam, PamCall, load_modules
from mlhost_limits.sessions.limits_read import find_hanging_limits_files, read_limits_files
from mlhost_limits.sessions.pam_limits import find_obstacle, read_lines

from tests.places.sessions.limits_files import (
    HANGING,
    LIMITS_CONF,
    LIMITS_D,
    USERS,
    Files,
    make_files,
)
from tests.places.sessions.pam_prediction import (
    Session,
    identify,
    predict,
    predict_untouched,
    read_kernel,
)
from tests.places.sessions.pam_world import SERVICES, run_inside

BATCH = 200
"""Sets for one process, which must have used less than a minute of CPU, the least limit."""

_LEAST_CPU = 60
_OUT_OF_TIME = [f"killed by signal {int(number)}" for number in (signal.SIGXCPU, signal.SIGKILL)]
_MISMATCHES = 5  # As many of a batch are made small; it takes a while.
_GET_NO_NEW_PRIVS = 39  # PR_GET_NO_NEW_PRIVS of prctl(2)
Result = dict[str, Any]


class Outcome(NamedTuple):
    """What differs between a prediction and a session, and what was not predicted."""

    differences: list[str]
    unknown: list[str]


class Rig:
    """This process, with the limits that sessions inherit, in a :mod:`tests.places.sessions.pam_world`."""

    def __init__(self, nr_open: int) -> None:
        self.dialect = read_dialect()
        self.users = {name: find_user(name) for name in USERS}
        self.pam = Libpam()
        self.libc = ctypes.CDLL(None)
        self.root = os.open("/", os.O_PATH)
        self.kernel = read_kernel(nr_open)
        load_modules(("pam_limits.so", "pam_permit.so"))
        signal.signal(signal.SIGXCPU, signal.SIG_IGN)
        set_own_limits(self.kernel.inherited)

    def compare(self, files: Files, users: list[str]) -> list[Outcome]:
        """Return for each user how the prediction fared."""
        write_files(files)
        expected = self.predict([self.users[name] for name in users])
        if self.kernel.may_raise and not any(map(leaves_traces, expected)):
            return [judge(one, self.open_here(name)) for one, name in zip(expected, users)]
        reports = run_in_children([partial(self.open_in_child, name) for name in users], 60.0)
        return [judge(one, report.value, report.problem) for one, report in zip(expected, reports)]

    def predict(self, users: list[User]) -> list[Session]:
        """Return the sessions that the files as they are now will give."""
        files, hanging = read_limits_files(), find_hanging_limits_files()
        lines = read_lines(files, self.dialect)
        return [
            predict_untouched(self.kernel, opens=False)
            if find_obstacle(files, hanging, user, self.dialect)
            else predict(lines, user, self.dialect, self.kernel)
            for user in users
        ]

    def open(self, user: str) -> Session:
        """Open a session and return what this process is like in it."""
        free = os.dup(self.root)
        os.close(free)
        outcome = self.pam.open_session(PamCall("oracle", user, user, {}, SERVICES))
        session: Session = {name: list(pair) for name, pair in read_own_limits().items()}
        session["priority"] = os.getpriority(os.PRIO_PROCESS, 0)
        session["nonewprivs"] = self.libc.prctl(_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
        session["chroot"] = identify("/")
        session.update(opens=outcome.opens, reason=outcome.reason, descriptors=free)
        return session

    def open_in_child(self, user: str) -> Session:
        """Open a session in a process that may end with it."""
        signal.signal(signal.SIGXCPU, signal.SIG_DFL)
        return self.open(user)

    def open_here(self, user: str) -> Session:
        """Open a session and take back what it did to this process."""
        session = self.open(user)
        set_own_limits(self.kernel.inherited)
        os.setpriority(os.PRIO_PROCESS, 0, 0)
        os.fchdir(self.root)
        os.chroot(".")
        return session

    def shrink(self, files: Files, user: str) -> Files:
        """Return the files with every line left out that the mismatch does not need."""
        for path in list(files):
            lines = files[path].split("\n")
            for index in reversed(range(len(lines))):
                fewer = [*lines[:index], *lines[index + 1 :]]
                tried = {**files, path: "\n".join(fewer)}
                if self.compare(tried, [user])[0].differences:
                    files, lines = tried, fewer
        return {
            path: text
            for path, text in files.items()
            if text or path == LIMITS_CONF or path.endswith(HANGING)
        }


def find_user(name: str) -> User:
    """Return a user of this world as the library reads it."""
    user = read_user(name)
    assert user
    return user


def leaves_traces(session: Session) -> bool:
    """Tell whether a session does to its process what cannot be undone."""
    return bool(session["nonewprivs"]) or session["cpu"][0] < _LEAST_CPU


def judge(expected: Session, found: Session | None, problem: str = "") -> Outcome:
    """Compare what was predicted; ``found`` is ``None`` where the process did not live."""
    if found is None:
        ended = problem in _OUT_OF_TIME and expected["cpu"][0] < _LEAST_CPU
        return Outcome([] if ended else [f"no session: {problem}"], [])
    if expected["nofile"][0] <= found["descriptors"]:
        expected["opens"] = False  # libpam writes to the audit log last, which takes one more.
    unknown = (
        ["whether it opens, with hardly any memory or descriptors"]
        if expected["opens"] is None
        else []
    )
    differences = [
        f"{item}: predicted {value}, got {found[item]} {found['reason']}".rstrip()
        for item, value in expected.items()
        if value is not None and value != found[item]
    ]
    return Outcome(differences, unknown)


def write_files(files: Files) -> None:
    """Make these the limits files of this machine, and no others."""
    for old in [*Path(LIMITS_D).iterdir(), Path(LIMITS_CONF)]:
        old.unlink(missing_ok=True)
    for path, text in files.items():
        if path.endswith(HANGING):
            Path(path[: -len(HANGING)]).symlink_to("nowhere")
        else:
            Path(path).write_bytes(text.encode("latin-1"))


def try_sets(rig: Rig, seed: int, first: int, count: int, writer: int) -> None:
    """Try some sets of files; write one line of JSON for each."""
    wrong = 0
    for number in range(first, first + count):
        files, users = make_files(seed, number, rig.kernel.may_raise)
        result: Result = {"cases": len(users), "mismatches": [], "unknown": []}
        for user, outcome in zip(users, rig.compare(files, users)):
            result["unknown"] += outcome.unknown
            if outcome.differences:
                wrong += 1
                least = rig.shrink(files, user) if wrong <= _MISMATCHES else files
                differences = rig.compare(least, [user])[0].differences
                result["mismatches"].append([user, least, differences])
        os.write(writer, json.dumps(result).encode() + b"\n")


def run_batches(nr_open: int, seed: int, first: int, count: int) -> None:
    """Try all sets, each batch in a child; one that ends too early is a mismatch."""
    number = first
    while number < first + count:
        size = min(BATCH, first + count - number)
        done, status = run_batch(nr_open, seed, number, size)
        number += done
        if done < size:
            files, users = make_files(seed, number, True)
            ended = [" or ".join(users), files, [f"the process ended with wait status {status}"]]
            result = {"cases": len(users), "mismatches": [ended], "unknown": []}
            print(json.dumps(result), flush=True)
            number += 1


def run_batch(nr_open: int, seed: int, first: int, count: int) -> tuple[int, int]:
    """Pass on what a child writes; return how many sets it has tried, and how it ended."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try_sets(Rig(nr_open), seed, first, count, writer)
        os._exit(0)  # An error has left this process by now, and told what it was.
    os.close(writer)
    done = 0
    with os.fdopen(reader) as results:
        for line in results:
            print(line, end="", flush=True)
            done += 1
    return done, os.waitpid(child, 0)[1]


def main() -> None:
    """Enter a world of our own and try what the command line asks for."""
    seed, first, count = map(int, sys.argv[2:])
    nr_open = int(Path("/proc/sys/fs/nr_open").read_text())
    try:
        run_inside(Path(sys.argv[1]), partial(run_batches, nr_open, seed, first, count))
    except PermissionError as error:
        sys.exit(f"refused: {error}")


if __name__ == "__main__":
    main()
