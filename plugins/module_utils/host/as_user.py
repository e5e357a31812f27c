# SPDX-License-Identifier: BSD-2-Clause
"""Do something as a user: in a child that is that user before it touches anything of theirs.

A keeper that stays root starts the child, hears it over a pipe of its own, and ends all that came
of it. What the child answers is a claim of that user's.

Source: credentials(7), session-keyring(7), prctl(2) for PR_SET_NO_NEW_PRIVS, PR_SET_DUMPABLE and
PR_SET_CHILD_SUBREAPER, and ``audit_set_loginuid()`` of the kernel for loginuid.
"""

from __future__ import annotations

import codecs
import ctypes
import errno
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
from .cgroup_cage import Cage
from .children import Report, run_in_children, write_all
from .door import list_kernel_folder, list_pids, read_kernel_file
from .own_limits import set_own_limits

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 4, 36, 38
_KEYCTL = {
    "x86_64": 250,
    "aarch64": 219,
    "riscv64": 219,
    "loongarch64": 219,
    "ppc64le": 271,
    "s390x": 280,
}
_GET_KEYRING, _JOIN_SESSION_KEYRING = 0, 1
_SESSION_KEYRING = -3
_NO_KEYRINGS = (errno.ENOSYS, errno.EPERM)
_MOST = 2**20
_GRACE = 10.0  # Seconds that a keeper has beyond its child's, to end what came of it.
_PATIENCE = 5.0
_STEP = 20  # Milliseconds between two looks whether a child has ended.
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
    answer, bound it. ``gains_rights`` lets programs such as newuidmap(1) be what they are: without
    it they have no more rights than the user.
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


class Ended(NamedTuple):
    """How a program ended: its status, or the signal below 0; and what it wrote.

    ``late`` tells that it was ended because its time was over or it wrote too much.
    """

    status: int
    said: str
    late: bool = False


def ask_users(errands: Sequence[Errand]) -> list[Report]:
    """Do all errands at once and return what each tells, in order."""
    if not errands:
        return []
    me = os.geteuid()
    strange = next((one.person for one in errands if me not in (0, one.person.pw_uid)), None)
    if strange:
        return [Report(None, f"only root can look as {name_person(strange)}")] * len(errands)
    for name in _CODECS:
        codecs.lookup(name)
    longest = max(errand.seconds for errand in errands)
    most = max(errand.most for errand in errands)
    tasks = [partial(_keep, errand) for errand in errands]
    reports = run_in_children(tasks, longest + _GRACE, 8 * most + 4096)
    return [_read(report, errand) for report, errand in zip(reports, errands)]


def ask_user(errand: Errand) -> Report:
    """Do one errand; see :func:`ask_users`."""
    return ask_users([errand])[0]


def run_as_user(errand: Errand) -> Ended:
    """Run a program as a user, to its end, and return what it wrote.

    :raises OSError: If it could not be started.
    """
    report = ask_user(errand)
    if report.problem:
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
    status, said, late = report.value
    if errand.words:
        return Report((status, said, late), "", late)
    if late:
        return Report(None, f"no answer within {errand.seconds:g} s", late)
    if not said.endswith("\n"):
        how = f"killed by signal {-status}" if status < 0 else f"ended with status {status}"
        return Report(None, how)
    try:
        answer = json.loads(said)
        return Report(answer["value"], str(answer["problem"])[:500])
    except (ValueError, RecursionError, KeyError, TypeError):
        return Report(None, "its answer is not what was asked for")


def _keep(errand: Errand) -> tuple[int, str, bool]:
    """Start the child, hear it to its end, end all that came of it. Runs in a child, as root."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    try:
        cage = Cage(errand.person.pw_uid) if os.geteuid() == 0 else None
    except OSError as error:
        return _FAILED, _refuse(errand, error), False
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        _be_the_child(errand, writer, cage)
    os.close(writer)
    try:
        signal.signal(signal.SIGTERM, _leave)
        said, late = _hear(reader, pid, errand)
        status = _find_end(pid, late)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _end_all(pid, cage)
    return status, said.decode("utf-8", "replace"), late


def _leave(_number: int, _frame: object) -> NoReturn:
    raise SystemExit(1)  # Who started this keeper waits no longer: what it keeps is ended first.


def _hear(reader: int, pid: int, errand: Errand) -> tuple[bytes, bool]:
    """Return what comes until the child ends, and whether its time was over before.

    What it left in the background may hold the pipe for ever, so that its end says nothing.
    """
    deadline, said = time.monotonic() + errand.seconds, b""
    poller = select.poll()
    poller.register(reader, select.POLLIN)
    while time.monotonic() < deadline:
        has_ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        while poller.poll(0 if has_ended else _STEP):
            part = os.read(reader, 65536)
            said += part
            if len(said) > errand.most:
                return said[: errand.most], True
            if not part or (part.endswith(b"\n") and errand.task):
                return said, False
            if time.monotonic() >= deadline:
                break
        if has_ended:
            return said, False
    return said, True


def _find_end(pid: int, late: bool) -> int:
    """Return how the child ended; one whose time is over is ended first."""
    deadline = time.monotonic() + (0.0 if late else _PATIENCE)
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return -(status & 127) if status & 127 else status >> 8
        if time.monotonic() >= deadline:
            return -int(signal.SIGKILL)
        time.sleep(0.001)


def _end_all(pid: int, cage: Cage | None) -> None:
    """End the child and all that came of it, however often it forked or left its session."""
    with suppress(OSError):
        os.kill(pid, signal.SIGKILL)
    if cage:
        cage.end(reaps=True)
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        for descendant in _list_children():
            with suppress(OSError):
                os.kill(descendant, signal.SIGKILL)
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.001)
        except ChildProcessError:
            return


def _list_children() -> list[int]:
    """Return the children of this process; who lost a parent below it is one of them."""
    own = os.getpid()
    try:
        return [int(word) for word in read_kernel_file(f"/proc/self/task/{own}/children").split()]
    except OSError:
        found = list_pids()
        return [pid for pid in found if _find_parent(pid) == own]


def _find_parent(pid: int) -> int:
    try:
        return int(read_kernel_file(f"/proc/{pid}/stat").rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


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


def leave_root(
    person: pwd.struct_passwd, limits: Mapping[str, Rlimit], gains_rights: bool = False
) -> None:
    """Make this process a user's for good, and keep nothing of root's.

    :raises OSError, ValueError: If the kernel does not do all of it.
    """
    _leave_keyrings()
    _tell_audit(person.pw_uid)
    if not gains_rights:
        _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    os.setgroups(list_groups(person))
    os.setresgid(person.pw_gid, person.pw_gid, person.pw_gid)
    set_own_limits(limits)
    _become(person.pw_uid)
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getresuid() != (person.pw_uid,) * 3 or os.getresgid() != (person.pw_gid,) * 3:
        raise OSError("the kernel did not make this process the user's")


def _become(uid: int) -> None:
    """Take on a user's id, so that no process of the user's ever reads what is root's in here.

    Where fs.suid_dumpable is 1, as some databases ask for, whose id it is may trace a process that
    became theirs (ptrace(2)). The saved id, which counts as well, stays root's until nobody may.
    """
    if uid:
        os.setresuid(uid, uid, 0)
        _prctl(_PR_SET_DUMPABLE, 0)
    os.setresuid(uid, uid, uid)


def list_groups(person: pwd.struct_passwd) -> list[int]:
    """Return the groups of a user; of one that no database knows, the own."""
    if not person.pw_name:
        return [person.pw_gid]
    return os.getgrouplist(person.pw_name, person.pw_gid)


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


def _leave_keyrings() -> None:
    """Join a session keyring that is new and empty, so that root's is not at hand.

    :raises OSError: If the kernel has keyrings, and gives none.
    """
    number = _KEYCTL.get(os.uname().machine)
    if number is None:
        raise OSError(f"root's keyring cannot be left on {os.uname().machine}")
    if _call(number, _JOIN_SESSION_KEYRING, None) not in (*_NO_KEYRINGS, 0):
        raise OSError("no session keyring could be made")
    if _call(number, _GET_KEYRING, _SESSION_KEYRING) in (0, *_NO_KEYRINGS):
        return
    raise OSError("the session keyring is not the child's own")


def _call(number: int, operation: int, value: int | None) -> int:
    """Call keyctl(2). Return 0, or the error's number."""
    library = ctypes.CDLL(None, use_errno=True)
    argument = ctypes.c_void_p(value) if value is None else ctypes.c_long(value)
    done = library.syscall(
        ctypes.c_long(number), ctypes.c_long(operation), argument, ctypes.c_long(0)
    )
    return 0 if done >= 0 else ctypes.get_errno()


def _tell_audit(uid: int) -> None:
    """Let the audit log name the user, where it may be changed: root did not do what follows."""
    with suppress(OSError):
        handle = os.open("/proc/self/loginuid", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(handle, str(uid).encode("ascii"))
        finally:
            os.close(handle)


def _prctl(option: int, value: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    arguments = (option, value, 0, 0, 0)
    if library.prctl(*(ctypes.c_ulong(one) for one in arguments)):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
