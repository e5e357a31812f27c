# SPDX-License-Identifier: BSD-2-Clause
"""Do something as a user: in a child that is that user before it touches anything of theirs.

A keeper that stays root starts the child, hears it over a pipe of its own, and ends all that came
of it. What the child answers is a claim of that user's.

Source: prctl(2) for PR_SET_CHILD_SUBREAPER.
"""

from __future__ import annotations

import codecs
import json
import os
import pwd
import select
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import NoReturn

from ..core.values import NamedTuple, Rlimit
from .cgroup_cage import MEMORY, TASKS, Cage, find_patience
from .children import Children, Report, reap, write_all
from .door import list_kernel_folder, list_pids, read_kernel_file
from .leave_root import PR_SET_CHILD_SUBREAPER, leave_root, prctl

_MOST = 2**20
_GRACE = 10.0  # Seconds that a keeper has beyond its child's, to end what came of it.
_PATIENCE = 5.0
_STEP = 20  # Milliseconds between two looks whether a child has ended.
_MOST_LOOKS = 50  # At children that have all ended: another look finds what one has missed.
_FAILED = 127
_NO_GROUP = 65534
_ENDLESS = (RecursionError, MemoryError)
_CODECS = ("ascii", "latin-1", "utf-8")
"""What is needed on the way: a child may not read the files of a Python that root keeps at home."""

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Errand(NamedTuple):
    """What a child does as a user, and under what.

    ``task`` returns what JSON can carry. Where it is ``None`` a program runs: ``words``, with
    ``environment`` alone; ``program`` is its path where the first word is not. ``limits`` are the
    resource limits that it starts with, besides its own. ``seconds``, and ``most`` bytes of
    answer, bound it; and ``memory``, in bytes, and ``tasks`` bound all that comes of it, where root
    may make a control group. ``gains_rights`` lets programs such as newuidmap(1) be what they are:
    without it they have no more rights than the user.
    """

    person: pwd.struct_passwd
    task: Callable[[], object] | None = None
    words: Sequence[str] = ()
    program: str = ""
    environment: Mapping[str, str] = {}
    limits: Mapping[str, Rlimit] = {}
    seconds: float = 10.0
    most: int = _MOST
    gains_rights: bool = False
    folder: str = "/"
    memory: int = MEMORY
    tasks: int = TASKS


class Ended(NamedTuple):
    """How a program ended: its status, or the signal below 0; and what it wrote.

    ``late`` tells that it was ended because its time was over or it wrote too much.
    """

    status: int
    said: str
    late: bool = False


class Errands:
    """Errands that are under way at once; all end with the block."""

    def __init__(self) -> None:
        for name in _CODECS:
            codecs.lookup(name)
        self._children = Children()
        self._started: dict[int, Errand] = {}
        self._refused: dict[int, Report] = {}

    def __enter__(self) -> Errands:
        return self

    def __exit__(self, *error: object) -> None:
        self._children.__exit__(*error)

    def __len__(self) -> int:
        """Return how many are under way, or have a report that nobody took."""
        return len(self._refused) + len(self._children)

    def start(self, name: int, errand: Errand) -> None:
        person = errand.person
        if os.geteuid() not in (0, person.pw_uid):
            self._refused[name] = Report(None, f"only root can look as {name_person(person)}")
            return
        self._started[name] = errand
        seconds = errand.seconds + _GRACE + find_patience(errand.tasks)
        most = 8 * errand.most + 4096
        self._children.start(name, partial(_keep, errand), seconds, most)

    def hear(self) -> dict[int, Report]:
        """Return the reports that there are, by name; where there are none, wait for some."""
        refused, self._refused = self._refused, {}
        found = {} if refused else self._children.hear()
        return {**refused, **{name: _read(one, self._started[name]) for name, one in found.items()}}


def ask_users(errands: Sequence[Errand]) -> list[Report]:
    """Do all errands at once and return what each tells, in order."""
    reports: dict[int, Report] = {}
    with Errands() as under_way:
        for at, errand in enumerate(errands):
            under_way.start(at, errand)
        while under_way:
            reports.update(under_way.hear())
    return [reports[at] for at in range(len(errands))]


def ask_user(errand: Errand) -> Report:
    """Do one errand; see :func:`ask_users`."""
    return ask_users([errand])[0]


def run_as_user(errand: Errand) -> Ended:
    """Run a program as a user, to its end, and return what it wrote.

    :raises OSError: If it could not be started.
    """
    report = ask_user(errand)
    if report.value is None:
        raise OSError(f"as {name_person(errand.person)}: {report.problem}")
    return Ended(*report.value)


def name_person(person: pwd.struct_passwd) -> str:
    return person.pw_name or f"uid {person.pw_uid}"


def describe_person(person: pwd.struct_passwd) -> dict[str, str]:
    """Return the environment that a user's own program starts with."""
    names = {"HOME": person.pw_dir, "USER": person.pw_name, "LOGNAME": person.pw_name}
    return {**names, "SHELL": person.pw_shell or "/bin/sh", "PATH": _PATH}


def _read(report: Report, errand: Errand) -> Report:
    """Return what the child itself said; the keeper's own answer is only its wrapping."""
    if report.problem:
        return report
    status, said, why = report.value
    if errand.words:
        return Report((status, said, bool(why)), why, bool(why))
    if why:
        return Report(None, why, late=True)
    if not said.endswith("\n"):
        how = f"killed by signal {-status}" if status < 0 else f"ended with status {status}"
        return Report(None, how)
    try:
        answer = json.loads(said)
        return Report(answer["value"], str(answer["problem"])[:500])
    except (ValueError, RecursionError, KeyError, TypeError):
        return Report(None, "its answer is not what was asked for")


def _keep(errand: Errand) -> tuple[int, str, str]:
    """Start the child, hear it to its end, end all that came of it. Runs in a child, as root.

    :returns: Its status, what it said, and why it was ended, if it was.
    """
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    cage = None
    try:
        is_root = os.geteuid() == 0
        cage = Cage(errand.person.pw_uid, errand.memory, errand.tasks) if is_root else None
        pid, reader = _start(errand, cage)
    except OSError as error:
        if cage:
            cage.end()
        return _FAILED, _refuse(errand, error), ""
    deadline = time.monotonic() + errand.seconds
    try:
        signal.signal(signal.SIGTERM, _leave)
        said = _hear(reader, pid, errand, deadline)
        status, why = _find_end(pid, errand, said, deadline)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _end_all(pid, cage)
    return status, said[: errand.most].decode("utf-8", "replace"), why


def _start(errand: Errand, cage: Cage | None) -> tuple[int, int]:
    """Return the child, and the pipe over which it is heard."""
    reader, writer = os.pipe()
    try:
        pid = os.fork()
    except OSError as error:
        raise OSError(f"no process could be started: {error.strerror}") from None
    if pid == 0:
        _be_the_child(errand, writer, cage)
    os.close(writer)
    return pid, reader


def _leave(_number: int, _frame: object) -> NoReturn:
    raise SystemExit(1)  # Who started this keeper waits no longer: what it keeps is ended first.


def _hear(reader: int, pid: int, errand: Errand, deadline: float) -> bytes:
    """Return what comes until the child ends, or its time is over.

    What it left in the background may hold the pipe for ever, so that its end says nothing.
    """
    said = b""
    poller = select.poll()
    poller.register(reader, select.POLLIN)
    while time.monotonic() < deadline:
        has_ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        while poller.poll(0 if has_ended else _STEP) and time.monotonic() < deadline:
            part = os.read(reader, 65536)
            said += part
            if not part or len(said) > errand.most or (part.endswith(b"\n") and errand.task):
                return said
        if has_ended:
            break
    return said


def _find_end(pid: int, errand: Errand, said: bytes, deadline: float) -> tuple[int, str]:
    """Return how the child ended; and where it has to be ended, why.

    It can close the pipe and live on. Who has answered is waited for no longer.
    """
    if len(said) > errand.most:
        return -int(signal.SIGKILL), f"more than {errand.most} bytes of answer"
    if errand.task and said.endswith(b"\n"):
        return 0, ""
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return -(status & 127) if status & 127 else status >> 8, ""
        if time.monotonic() >= deadline:
            return -int(signal.SIGKILL), f"no answer within {errand.seconds:.3g} s"
        time.sleep(0.001)


def _end_all(pid: int, cage: Cage | None) -> None:
    """End the child and all that came of it, however often it forked or left its session.

    Nothing sleeps while one lives: without a cage, who forks on and on must be caught up with.
    """
    with suppress(OSError):
        os.kill(pid, signal.SIGKILL)
    if cage:
        cage.end(reaps=True)
    deadline, looks = time.monotonic() + _PATIENCE, 0
    while reap() and time.monotonic() < deadline and looks < _MOST_LOOKS:
        alive = [one for one in _list_children() if _read_stat(one)[:1] != [b"Z"]]
        for descendant in alive:
            with suppress(OSError):
                os.kill(descendant, signal.SIGKILL)
        # What has ended and is not ours to reap, because somebody traces it, is left to process 1.
        looks = 0 if alive else looks + 1
        time.sleep(0.0 if alive else 0.001)


def _list_children() -> list[int]:
    """Return the children of this process; who lost a parent below it is one of them."""
    own = os.getpid()
    try:
        return [int(word) for word in read_kernel_file(f"/proc/self/task/{own}/children").split()]
    except OSError:
        found = list_pids()
        return [pid for pid in found if _find_parent(pid) == own]


def _find_parent(pid: int) -> int:
    fields = _read_stat(pid)
    return int(fields[1]) if fields else 0


def _read_stat(pid: int) -> list[bytes]:
    """Return the state of a process, its parent and what follows; nothing of one that is gone."""
    try:
        return read_kernel_file(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    except OSError:
        return []


def _be_the_child(errand: Errand, writer: int, cage: Cage | None) -> NoReturn:
    status = _FAILED
    try:
        os.setsid()
        if os.geteuid() == 0:
            try:
                _leave_root(errand, cage)
            except (OSError, ValueError) as error:
                write_all(writer, _refuse(errand, error).encode())
                raise
        os.umask(0o022)
        if errand.task is None:
            _become_program(errand, writer)
        _close_all_but(writer)
        write_all(writer, _do(errand.task).encode() + b"\n")
        status = 0
    finally:
        os._exit(status)


def _leave_root(errand: Errand, cage: Cage | None) -> None:
    if cage:
        cage.enter()
    leave_root(errand.person, errand.limits, errand.gains_rights)


def find_person(uid: int) -> pwd.struct_passwd:
    """Return the user with this number, without a name or a home if no database knows one."""
    try:
        return pwd.getpwuid(uid)
    except KeyError:
        return pwd.struct_passwd(("", "x", uid, _NO_GROUP, "", "/", "/bin/sh"))


def _refuse(errand: Errand, error: OSError | ValueError) -> str:
    """Return what is answered where the child cannot become the user."""
    text = f"{error}\n"
    return text if errand.words else json.dumps({"value": None, "problem": str(error)}) + "\n"


def _do(task: Callable[[], object] | None) -> str:
    try:
        return json.dumps({"value": task() if task else None, "problem": ""})
    except (OSError, ValueError, LookupError, TypeError, ImportError, *_ENDLESS) as error:
        return json.dumps({"value": None, "problem": str(error) or type(error).__name__})


def _become_program(errand: Errand, writer: int) -> NoReturn:
    os.dup2(writer, 1)
    os.dup2(writer, 2)
    _close_all_but()
    with suppress(OSError):
        os.chdir(errand.folder)
    program = errand.program or errand.words[0]
    os.execve(program, list(errand.words), dict(errand.environment))  # noqa: S606 - by its path


def _close_all_but(*kept: int) -> None:
    """Close every descriptor but the standard streams and these."""
    names = map(int, list_kernel_folder("/proc/self/fd"))
    for handle in names:
        if handle > 2 and handle not in kept:
            with suppress(OSError):
                os.close(handle)
