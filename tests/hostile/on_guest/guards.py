# SPDX-License-Identifier: GPL-3.0-or-later
"""Guards of the library that can be taken out, to show that an attack works without them."""

from __future__ import annotations

import importlib
import json
import mmap
import os
import re
import shutil
import signal
import socket
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any


PACKAGE = "mlhost_limits"


def _find(module: str) -> Any:
    return importlib.import_module(f"{PACKAGE}.{module}")


def _replace(module: str, name: str, value: Any) -> None:
    """Put something in the place of what a module has, and of what others took from there.

    :raises AttributeError: If it has nothing of that name: a guard that moved stands as it did.
    """
    found = _find(module)
    old = getattr(found, name)
    setattr(found, name, value)
    for other in [one for key, one in sys.modules.items() if key.startswith(PACKAGE)]:
        if getattr(other, name, None) is old:
            setattr(other, name, value)


def follow_every_link() -> None:
    """Follow links on the way to a directory, whoever made them."""

    def read(link: int, _path: str, _owner: int, _count: int) -> str:
        return os.readlink("", dir_fd=link)

    _replace("host.open_directory", "_read_link", read)


def write_anywhere() -> None:
    """Make a workspace wherever its path leads."""
    _replace("workspace.settle", "find_target", os.path.realpath)


def print_every_byte() -> None:
    """Print what a user wrote as it is."""
    _replace("core.quote", "_DOUBTFUL", re.compile("(?!)"))
    _replace("core.report", "_clean", lambda text: text)


def stay_root() -> None:
    """Do as root what a child does as a user."""
    _replace("host.as_user", "leave_root", lambda *_arguments: None)


def keep_keyrings() -> None:
    """Leave root's keyrings to a child that is a user."""
    _replace("host.leave_root", "_leave_keyrings", lambda: None)


def believe_names() -> None:
    """Take every process for root's daemon that bears its name."""

    def is_daemon(pid: int, program: str, *_others: object) -> bool:
        try:
            with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
                return file.read().rstrip("\n") == program[:15]
        except OSError:
            return False

    _replace("host.daemons", "is_daemon", is_daemon)
    _replace("host.daemons", "is_roots", lambda *_arguments: True)
    _replace("host.look", "read_process", _read_for_roots)


def _read_for_roots(pid: int, proc: str = "/proc") -> Any:
    kind = _find("host.look").Process
    comm, rest = _read(f"{proc}/{pid}/stat").partition("(")[2].rpartition(")")[::2]
    return kind(pid, comm, 0, _read(f"{proc}/{pid}/cgroup").strip(), int(rest.split()[19]))


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def believe_slurmd() -> None:
    """Take the oldest process of that name for slurmd, whoever started it."""
    processes = _find("host.look").find_processes

    def find() -> Any:
        named = [one for one in processes() if one.comm == "slurmd"]
        return min(named, key=lambda one: one.start, default=None)

    _replace("slurm.read", "find_slurmd", find)


def believe_containerd() -> None:
    """Take any process of that name for containerd."""

    def find(processes: Any) -> Any:
        return next((one for one in processes if one.comm == "containerd"), None)

    _replace("containerd.measure", "find_containerd", find)


def blame_root() -> None:
    """Take what a user did, or hid, for root's doing."""
    _replace("core.finding", "is_short_by_root", lambda finding: finding.status != "pass")


def own_nothing() -> None:
    """Say of every process that root decides what it has."""
    _replace("host.users", "find_owner", lambda *_arguments: "")


def ask_the_files() -> None:
    """Take the owner of what /proc tells of a process for whose the process is."""

    def find(process: Any, _proc: str = "/proc") -> str:
        uid = os.stat(f"/proc/{process.pid}/limits").st_uid
        return str(_find("host.users").name_user(uid)) if uid else ""

    _replace("host.users", "find_owner", find)


def wait_for_ever() -> None:
    """Wait for every answer until it comes; a whole check has less time, so that it shows sooner."""
    guarded, program = _find("host.guarded").run_guarded, _find("host.program").run_program
    errands, children = _find("host.as_user").Errands, _find("host.children").Children
    within, start, begin = _find("check_within").check_within, errands.start, children.start

    def check(policy: Any, options: Any, look: Any = None) -> Any:
        return within(policy, options._replace(time_limit=_SOONER), look)

    def run(words: Any, _seconds: float, **more: Any) -> Any:
        return program(words, _ENDLESS, **more)

    _replace("host.guarded", "run_guarded", lambda task, _seconds: guarded(task, _ENDLESS))
    _replace("host.program", "run_program", run)
    _replace("check_within", "check_within", check)
    _replace("docker.api_read", "_allow", lambda connection, _deadline: connection.settimeout(None))
    _replace("docker.api_read", "_left", lambda *_arguments: _ENDLESS)
    _replace("podman.measure", "_TIME_LIMIT", _ENDLESS)
    errands.start = lambda self, name, one: start(self, name, one._replace(seconds=_ENDLESS))
    children.start = lambda self, name, one, _seconds, most: begin(self, name, one, _ENDLESS, most)


_ENDLESS, _SOONER = 1e5, 25.0


def read_whatever_size() -> None:
    """Read files and answers however long they are."""
    errands, part = _find("host.as_user").Errands, 65536
    start = errands.start

    def read(handle: int, _most: int, _path: str) -> bytes:
        with open(handle, "rb") as file:
            return b"".join(iter(lambda: file.read(part), b""))

    _replace("host.door", "read_handle", read)
    errands.start = lambda self, name, one: start(self, name, one._replace(most=2**40))


def stay_here() -> None:
    """Do in root's own process, and believe, what a child of the user's does."""
    report = _find("host.children").Report
    errands = _find("host.as_user").Errands
    start = errands.start

    def do(self: Any, name: int, errand: Any) -> None:
        if errand.task is None:
            start(self, name, errand)
        else:
            self._refused[name] = report(json.loads(json.dumps(errand.task())))

    errands.start = do


def open_what_is_there() -> None:
    """Open files by their path alone, whosever they are and whatever kind they have."""
    door = _find("host.door")
    door._Walk.judge_end = lambda *_arguments: None

    def look(walk: Any, name: str) -> os.stat_result:
        return os.stat(name, dir_fd=walk.handle, follow_symlinks=False)

    def open_file(path: str, root: str = "/") -> int:
        return os.open(path if root == "/" else f"{root}{path}", os.O_RDONLY | os.O_CLOEXEC)

    def open_inside(folder: int, name: str, *_others: object, **_more: object) -> int:
        return os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)

    def connect(path: str, _deadline: float) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(path)
        return connection

    door._Walk.look = look
    _replace("host.door", "open_file", open_file)
    _replace("host.door", "connect", connect)
    _replace("training.cache_open_read", "open_regular", open_inside)
    _replace("training.cache_open_read", "find_stranger", lambda _handle: "")
    read = _find("host.files").read_text
    _replace("sessions.shell_files_read", "_read_startup", lambda path, _odd: read(path) or "")


def cage_nobody() -> None:
    """Let what runs as a user start what it likes, and end none of it but the first process."""

    class Nothing:
        def __init__(self, _uid: int) -> None:
            self.folders: list[str] = []

        def enter(self) -> None:
            pass

        def end(self, reaps: bool = False) -> None:
            pass

    def end(pid: int, _cage: object) -> None:
        os.kill(pid, signal.SIGKILL)

    _replace("host.as_user", "Cage", Nothing)
    _replace("host.as_user", "_end_all", end)


def keep_terminal() -> None:
    """Leave root's terminal to what runs as a user."""
    os.setsid = os.getpid  # type: ignore[assignment]


def expect_text() -> None:
    """Expect that what the kernel tells is UTF-8."""
    read = _find("host.door").read_kernel_file
    _replace("host.door", "read_kernel_text", lambda path: read(path).decode())


def expect_processes() -> None:
    """Expect that a process which is listed is there when it is read."""
    look = _find("host.look")

    def find(proc: str = "/proc") -> Any:
        for pid in look.list_pids(proc):
            yield look.read_process(pid, proc)

    _replace("host.look", "find_processes", find)


def edit_as_root() -> None:
    """Let remedies of a user's files run as root, on whatever is there by then."""

    def edit(_user: str, at: Any, _row: str, script: str) -> tuple[str, ...]:
        return ("sed", "-i", "--follow-symlinks", f"{at.line}{script}", at.path)

    _replace("core.line_edit", "_edit_as", edit)


def write_for_shells() -> None:
    """Write remedies as lines for a shell, and quote no word."""
    remedy = _find("core.cause").Remedy
    old = remedy.as_dict
    remedy.as_dict = lambda self: {**old(self), "commands": [" ".join(one) for one in self.commands]}


def sweep_everything() -> None:
    """Remove what has a name of ours, wherever it leads."""

    def sweep(parent: str, prefix: str = "mlhost-limits-") -> Any:
        for name in os.listdir(parent):
            if name.startswith(prefix):
                shutil.rmtree(os.path.realpath(f"{parent}/{name}"), ignore_errors=True)
        return _find("host.scratch").Swept([], [])

    _replace("host.scratch", "sweep", sweep)


def cross_mounts() -> None:
    """Ask what is mounted in the place of a folder of ours."""

    def see(name: str, parent: int) -> int:
        return os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=parent)

    _replace("host.scratch", "see_inside", see)


def remove_trials() -> None:
    """Remove the folder of a trial by its path, whatever has that by then."""

    @contextmanager
    def trial(parent: int, name: str) -> Iterator[int]:
        os.mkdir(name, 0o700, dir_fd=parent)
        inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=parent)
        try:
            yield inner
        finally:
            os.close(inner)
            folder = os.readlink(f"/proc/self/fd/{parent}")
            for _dummy, _dummy2, names in os.walk(f"{folder}/{name}"):
                for one in names:
                    os.unlink(f"{folder}/{name}/{one}")
            shutil.rmtree(f"{folder}/{name}", ignore_errors=True)

    _replace("host.trial_folder", "trial_folder", trial)


def trust_headers() -> None:
    """Believe the head of a file of weights."""
    part = 2**24

    def check(read: Any, _size: int) -> Any:
        end = 8 + int.from_bytes(read(0, 8), "little")
        json.loads(b"".join([read(at, min(part, end - at)) for at in range(8, end, part)]))
        return _find("training.file_verdict").Verdict("sound")

    _find("training.cache_look_read")._FORMATS["safetensors"] = check


def walk_by_calls() -> None:
    """Walk through folders by a function that calls itself."""
    checked = _find("training.cache_read").Checked

    def walk(path: str, _deep: bool = False) -> Iterator[Any]:
        with os.scandir(path) as entries:
            for one in entries:
                if one.is_dir(follow_symlinks=False):
                    here = os.open(one.path, os.O_RDONLY)
                    yield from walk(f"/proc/self/fd/{here}")
                    os.close(here)
                else:
                    yield checked(one.path, "sound")

    _replace("training.cache_read", "check_files", walk)


def map_files() -> None:
    """Map files instead of reading them."""

    def check(handle: int, *_others: object, **_more: object) -> Any:
        if os.fstat(handle).st_size:
            with mmap.mmap(handle, 0, prot=mmap.PROT_READ) as whole:
                for _again in range(50):
                    zlib.crc32(whole[:])
        return _find("training.file_verdict").Verdict("sound")

    _replace("training.cache_look_read", "check_open_file", check)


def expect_forms() -> None:
    """Expect the form of Docker's answers in what a socket says."""
    api = _find("docker.api_read")

    def read(address: str = "", timeout: float = 30.0) -> Any:
        return list(api._read_containers(address, time.monotonic() + timeout))

    _replace("docker.api_read", "read_containers", read)
    _replace("docker.api_read", "_parse_answer", lambda said, _at: said.split(b"\r\n\r\n")[1])


def become_user_first() -> None:
    """Leave root's keyrings once nothing of root's is left to do it with."""
    leave = _find("host.leave_root")
    become, leave_keyrings = leave._become, leave._leave_keyrings

    def late(uid: int) -> None:
        become(uid)
        with suppress(OSError):
            leave_keyrings()

    _replace("host.leave_root", "_leave_keyrings", lambda: None)
    _replace("host.leave_root", "_become", late)


def expect_answers() -> None:
    """Expect that a user's child and shell tell what they were asked."""
    measure = _find("sessions.shell_limits_measure")

    def read(trial: Any, told: Any) -> Any:
        tables = [measure._find_table(report.value[1]) for report in told]
        read = [measure.parse_proc_limits(table) for table in tables]
        return measure.ShellResult(read[0], "", trial.lines)

    def read_report(report: Any, _user: str) -> Any:
        return [measure._read_line(*fields) for fields in report.value["lines"]], ""

    _replace("sessions.shell_limits_measure", "_read_trial", read)
    _replace("sessions.shell_limits_measure", "_read_report", read_report)


def share_a_pipe() -> None:
    """Hear what all users' processes tell over one pipe, whose end they all have."""
    users = _find("host.as_user")
    write_all, report = _find("host.children").write_all, _find("host.children").Report

    def start(self: Any, name: int, errand: Any) -> None:
        if not hasattr(self, "pipe"):
            self.pipe, self.heard, self.open = os.pipe(), b"", {}
            os.set_inheritable(self.pipe[1], True)
        if os.fork() == 0:
            try:
                write_all(self.pipe[1], json.dumps([name, users._keep(errand)]).encode() + b"\n")
            finally:
                os._exit(0)
        self.open[name] = errand

    def hear(self: Any) -> dict[int, Any]:
        while b"\n" not in self.heard:
            self.heard += os.read(self.pipe[0], 65536)
        line, _end, self.heard = self.heard.partition(b"\n")
        name, value = json.loads(line)
        return {name: users._read(report(value), self.open.pop(name))}

    _replace("host.as_user", "_close_all_but", lambda *_kept: None)
    users.Errands.start, users.Errands.hear = start, hear
    users.Errands.__len__ = lambda self: len(getattr(self, "open", ()))


def hear_at_the_end() -> None:
    """Read what a child told once it has ended."""

    def hear(reader: int, pid: int, _errand: Any, _deadline: float) -> bytes:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        os.set_blocking(reader, False)
        with suppress(BlockingIOError), open(reader, "rb", closefd=False) as file:
            return file.read() or b""
        return b""

    _replace("host.as_user", "_hear", hear)


def drop_makers() -> None:
    """Name a user's container of Podman as one of root's."""
    _replace("podman.check", "name_owner", lambda _uid: "")


def empty_leftovers() -> None:
    """Advise to empty what a run left, wherever its name leads by then."""
    cause = _find("core.cause")

    def blame(paths: Any, _size: int) -> Any:
        remedy = cause.Remedy("empty it", (("truncate", "-s", "0", "--", *paths),))
        return cause.Cause("run-shared-memory-leftovers", "it is left", remedy)

    _replace("training.causes", "blame_leftovers", blame)


def move_by_path() -> None:
    """Move damaged files by their paths, wherever these lead by then."""

    def move(top: int, _aside: int, name: str) -> bool:
        folder = os.readlink(f"/proc/self/fd/{top}")
        os.rename(f"{folder}/{name}", f"{folder}/aside-{os.urandom(4).hex()}")
        return True

    _replace("workspace.settle", "_move", move)


def read_their_compose() -> None:
    """Read the Compose files that a user's dockerd names."""
    rootless, read = _find("docker.rootless_check").RootlessRead, _find("docker.read").DockerRead
    rootless.read_compose = read.read_compose


GUARDS: dict[str, Callable[[], None]] = {
    "open_directory": follow_every_link,
    "clean": print_every_byte,
    "find_target": write_anywhere,
    "leave_root": stay_root,
    "keyrings": keep_keyrings,
    "is_daemon": believe_names,
    "find_slurmd": believe_slurmd,
    "find_containerd": believe_containerd,
    "owner": blame_root,
    "find_owner": own_nothing,
    "uids": ask_the_files,
    "deadline": wait_for_ever,
    "sizes": read_whatever_size,
    "apart": stay_here,
    "door": open_what_is_there,
    "cage": cage_nobody,
    "terminal": keep_terminal,
    "utf-8": expect_text,
    "gone": expect_processes,
    "as_user": edit_as_root,
    "quoting": write_for_shells,
    "sweep": sweep_everything,
    "mounts": cross_mounts,
    "trial_folder": remove_trials,
    "headers": trust_headers,
    "depth": walk_by_calls,
    "pread": map_files,
    "forms": expect_forms,
    "keyrings_first": become_user_first,
    "answers": expect_answers,
    "pipes": share_a_pipe,
    "hear": hear_at_the_end,
    "name_owner": drop_makers,
    "leftovers": empty_leftovers,
    "moves": move_by_path,
    "compose": read_their_compose,
}
