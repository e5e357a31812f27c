# SPDX-License-Identifier: GPL-3.0-or-later
"""Guards of what root does as a user, each a function that takes it out."""

from __future__ import annotations

import json
import os
import signal
from contextlib import suppress
from typing import Any

try:
    from replacing import find_module, replace  # type: ignore[import-not-found]
except ImportError:  # On the controller.
    from .replacing import find_module, replace


def stay_root() -> None:
    """Do as root what a child does as a user."""
    replace("host.as_user", "leave_root", lambda *_arguments: None)


def keep_keyrings() -> None:
    """Leave root's keyrings to a child that is a user."""
    replace("host.leave_root", "_leave_keyrings", lambda: None)


def become_user_first() -> None:
    """Leave root's keyrings once nothing of root's is left to do it with."""
    leave = find_module("host.leave_root")
    become, leave_keyrings = leave._become, leave._leave_keyrings

    def late(uid: int) -> None:
        become(uid)
        with suppress(OSError):
            leave_keyrings()

    replace("host.leave_root", "_leave_keyrings", lambda: None)
    replace("host.leave_root", "_become", late)


def wait_for_ever() -> None:
    """Wait for every answer until it comes; a whole check has less time, and shows it sooner."""
    guarded, program = (
        find_module("host.guarded").run_guarded,
        find_module("host.program").run_program,
    )
    errands, children = find_module("host.as_user").Errands, find_module("host.children").Children
    within, start, begin = find_module("check_within").check_within, errands.start, children.start

    def check(policy: Any, options: Any, *others: Any, **more: Any) -> Any:
        return within(policy, options._replace(time_limit=_SOONER), *others, **more)

    def run(words: Any, _seconds: float, **more: Any) -> Any:
        return program(words, _ENDLESS, **more)

    replace("host.guarded", "run_guarded", lambda task, _seconds: guarded(task, _ENDLESS))
    replace("host.program", "run_program", run)
    replace("check_within", "check_within", check)
    replace("docker.api_read", "_allow", lambda connection, _deadline: connection.settimeout(None))
    replace("docker.api_read", "_left", lambda *_arguments: _ENDLESS)
    replace("podman.measure", "_TIME_LIMIT", _ENDLESS)
    errands.start = lambda self, name, one: start(self, name, one._replace(seconds=_ENDLESS))
    children.start = lambda self, name, one, _seconds, most: begin(self, name, one, _ENDLESS, most)


_ENDLESS, _SOONER = 1e5, 40.0


def stay_here() -> None:
    """Do in root's own process, and believe, what a child of the user's does."""
    report = find_module("host.children").Report
    errands = find_module("host.as_user").Errands
    start = errands.start

    def do(self: Any, name: int, errand: Any) -> None:
        if errand.task is None:
            start(self, name, errand)
        else:
            self._refused[name] = report(json.loads(json.dumps(errand.task())))

    errands.start = do


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
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)

    replace("host.as_user", "Cage", Nothing)
    replace("host.as_user", "_end_all", end)


def keep_terminal() -> None:
    """Leave root's terminal to what runs as a user."""
    os.setsid = os.getpid  # type: ignore[assignment]


def expect_answers() -> None:
    """Expect that a user's child and shell tell what they were asked."""
    measure = find_module("sessions.shell_limits_measure")

    def read(trial: Any, told: Any) -> Any:
        tables = [measure._find_table(report.value[1]) for report in told]
        read = [measure.parse_proc_limits(table) for table in tables]
        return measure.ShellResult(read[0], "", trial.lines)

    def read_report(report: Any, _user: str) -> Any:
        return [measure._read_line(*fields) for fields in report.value["lines"]], ""

    replace("sessions.shell_limits_measure", "_read_trial", read)
    replace("sessions.shell_limits_measure", "_read_report", read_report)


def share_a_pipe() -> None:
    """Hear what all users' processes tell over one pipe, whose end they all have."""
    users = find_module("host.as_user")
    write_all, report = find_module("host.children").write_all, find_module("host.children").Report

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

    replace("host.as_user", "_close_all_but", lambda *_kept: None)
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

    replace("host.as_user", "_hear", hear)


def share_a_canary() -> None:
    """Make the folder of a user's canary as root, give it away, and read there what is told."""
    measure, users = find_module("podman.measure"), find_module("host.as_user")
    report = find_module("host.children").Report
    begin, prepare = measure._Run.__init__, measure._Run.prepare

    def init(self: Any, program: str, folder: str, person: Any) -> None:
        begin(self, program, folder, person)
        self.person = person
        self.is_users = True
        self.environment["XDG_RUNTIME_DIR"] = f"{folder}/xdg"

    def give(self: Any, machine: str, conf: str) -> None:
        prepare(self, machine, conf)
        for folder, _folders, names in os.walk(self.folder):
            for path in (folder, *(f"{folder}/{name}" for name in names)):
                os.lchown(path, self.person.pw_uid, self.person.pw_gid)

    def start(self: Any) -> tuple[int, str]:
        words = ["podman", "--root", f"{self.folder}/root", "--runroot", f"{self.folder}/run"]
        words += ["--tmpdir", f"{self.folder}/libpod", "--storage-driver", "vfs", "run", "--detach"]
        words += ["--network", "none", "--pidfile", f"{self.folder}/pid", "--log-driver", "none"]
        words += ["--rootfs", f"{self.folder}/fs", "/pause"]
        errand = users.Errand(self.person, None, words, self.program, self.environment)
        ended = users.run_as_user(errand._replace(seconds=60.0, gains_rights=True))
        return ended.status, ended.said

    measure._Run.__init__, measure._Run.prepare, measure._Run._start = init, give, start
    measure.ask_user = lambda errand: report(json.loads(json.dumps(errand.task())))
