# SPDX-License-Identifier: GPL-3.0-or-later
"""A made-up host in a folder, on which verbs run in a process of their own, in milliseconds.

It is the way of ``tests/torture/world.py``, a private /etc in mount namespaces, taken further:
its /etc, /run, /var/lib, /home, /proc/sys, cgroups and programs are all made up, so that a run
tells the same everywhere. A run forks, so what the library loads is loaded once.

Coverage: a run, and each process that it forks, goes on counting in a file of its own, in a folder
of the host where every user may write. They are moved beside that of pytest-cov, which takes them
all in at the end. Nothing need be set; ``--cov=mlhost_limits``.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import inside
from .files import CGROUPS, HOST, PROC, USR
from .inside import Setting
from .library import PACKAGE, hurry, load_all

State = dict[str, bytes]
_KEPT = ("etc", "var/lib", "proc", f"files_of_usr/{inside.INSTALLED}")
_COUNTED = "/run/stand-ins/coverage"
load_all()
hurry()
_CACHED = [
    value
    for name, module in list(sys.modules.items())
    if name.partition(".")[0] == PACKAGE
    for value in list(vars(module).values())
    if hasattr(value, "cache_clear")
]


class Node:
    """A host in a folder. What runs change on it stays; the processes are those of one run."""

    def __init__(self, folder: Path, files: dict[str, str] | None = None) -> None:
        """Make the host of :data:`HOST`.

        :param files: More files, or others; by their paths.
        """
        self.folder = folder
        for name in ("run/stand-ins", "var/lib", "var/tmp", "home/alice", "srv", "usr", "cgroup"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        write_tree(folder, {**HOST, **(files or {})})
        write_tree(folder / "proc", PROC)
        write_tree(folder / "files_of_usr", USR)
        write_tree(folder / "cgroup", CGROUPS)
        os.chown(folder / "home/alice", 1000, 1000)
        (folder / "var/tmp").chmod(0o1777)

    def write(self, path: str, text: str) -> None:
        """Write a file of the host."""
        write_tree(self.folder, {path: text})

    def read(self) -> State:
        """Return every file that a run may write, by its path on the host.

        What stands for a value of the kernel keeps the end of a longer one that was there before.
        """
        return {
            f"/{path.relative_to(self.folder)}": path.read_bytes().split(b"\n")[0]
            if path.is_relative_to(self.folder / "proc")
            else path.read_bytes()
            for name in _KEPT
            for path in sorted((self.folder / name).rglob("*"))
            if path.is_file() and not path.is_symlink()
        }

    def read_calls(self) -> list[str]:
        """Return what the stand-ins were told since this was last asked, in order."""
        path = self.folder / "run/stand-ins/calls"
        calls = path.read_text().splitlines() if path.exists() else []
        path.write_text("")
        return calls

    def run(self, task: Callable[[], Any], setting: Setting = Setting()) -> Any:  # noqa: B008
        """Return what a task returns on this host; it must be what JSON can carry.

        :raises AssertionError: With its traceback, if it raises.
        """
        shutil.rmtree(self.folder / "cgroup")
        write_tree(self.folder / "cgroup", CGROUPS)
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            _enter(self.folder, task, setting, writer)
        os.close(writer)
        with os.fdopen(reader, "rb") as file:
            answer = file.read()
        os.waitpid(pid, 0)
        _take_coverage(self.folder)
        told = json.loads(answer or b'{"error": "the run ended without an answer"}')
        assert "error" not in told, told["error"]
        return told["value"]


def write_tree(top: Path, files: dict[str, str]) -> None:
    """Write files by their paths, with latin-1, so that every byte can be said."""
    for path, text in files.items():
        target = top / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode("latin-1"))


def _enter(folder: Path, task: Callable[[], Any], setting: Setting, writer: int) -> None:
    """Become the parent of the host's first process. Never returns."""
    try:
        inside.unshare()
        first = os.fork()
        if first == 0:
            _be_first(folder, task, setting, writer)
        os.close(writer)
        os.waitpid(first, 0)
    except BaseException:
        _tell(writer, {"error": traceback.format_exc()})
    finally:
        os._exit(0)


def _be_first(folder: Path, task: Callable[[], Any], setting: Setting, writer: int) -> None:
    """Be the first process of the host: start what runs there, then the task. Never returns."""
    try:
        inside.build(folder, setting)
        inside.start(setting.daemons)
        inside.choose_next_pid(100)
        pid = os.fork()
        if pid == 0:
            _work(task, writer)
        os.close(writer)
        inside.show(pid, {"cgroup": "0::/user.slice/user-0.slice/session-1.scope\n"})
        while os.wait()[0] != pid:
            pass  # As a first process, it has the orphans of all others.
        inside.keep_programs(Path("/mnt"))
    except BaseException:
        _tell(writer, {"error": traceback.format_exc()})
    finally:
        os._exit(0)


def _work(task: Callable[[], Any], writer: int) -> None:
    """Run the task and tell of it. Never returns."""
    me = os.getpid()
    try:
        inside.name_process("python3")
        _prepare()
        time.sleep(0.001)
        _tell(writer, {"value": task()})
    except BaseException:
        if os.getpid() == me:  # And not a child that was ended while it counted lines.
            _tell(writer, {"error": traceback.format_exc()})
    finally:
        os._exit(0)


def _prepare() -> None:
    """Forget what the library learned of the machine, and let coverage follow."""
    os.environ.update(TZ="UTC", LC_ALL="C", PATH="/usr/sbin:/usr/bin:/sbin:/bin")
    time.tzset()
    sys.executable = "/opt/python/bin/python3"  # Of whichever this is; it may be told.
    for cached in _CACHED:
        cached.cache_clear()
    _follow_coverage()


def _tell(writer: int, told: dict[str, Any]) -> None:
    with contextlib.suppress(OSError), os.fdopen(writer, "wb") as file:
        file.write(json.dumps(told).encode())


def _is_counted() -> bool:
    """Tell whether pytest counts lines."""
    return "coverage" in sys.modules and sys.modules["coverage"].Coverage.current() is not None


def _take_coverage(folder: Path) -> None:
    """Move what a run counted to where pytest-cov looks for it."""
    if not _is_counted():
        return
    target = Path(sys.modules["coverage"].Coverage.current().config.data_file).parent
    for path in (folder / _COUNTED.lstrip("/")).glob("*"):
        shutil.move(path, target)


def _follow_coverage() -> None:
    """Count lines in this process and its children too, if pytest counts them."""
    if not _is_counted():
        return
    from coverage import Coverage

    os.makedirs(_COUNTED, exist_ok=True)
    Path(_COUNTED).chmod(0o1777)
    leave = os._exit

    def count() -> None:
        before = Coverage.current()
        assert before
        before.stop()
        branch, source = before.config.branch, before.config.source
        suffix = f"verbs.{os.getpid()}.{time.monotonic_ns()}"
        name = f"{_COUNTED}/{os.path.basename(before.config.data_file)}"
        Coverage(name, data_suffix=suffix, branch=branch, source=source).start()

    def save_and_leave(status: int) -> None:
        try:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # Who waits for it grows impatient.
            current = Coverage.current()
            assert current
            current.stop()
            current.save()
        finally:
            leave(status)

    count()
    os.register_at_fork(after_in_child=count)
    os._exit = save_and_leave  # type: ignore[assignment]
