# SPDX-License-Identifier: GPL-3.0-or-later
"""Try changes in children of one process that has collected all tests already.

A child gives the function its other code and runs the tests: that takes a hundredth of what a new
process would. What is not code of a function, such as a table, is left to a new process.
"""

from __future__ import annotations

import ast
import contextlib
import ctypes
import gc
import importlib
import os
import pwd
import re
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import NamedTuple

import pytest
from _pytest.runner import runtestprotocol

from .points import Point, change

KILLED, SURVIVED, OUTSIDE = "killed", "survived", "outside"
_SECONDS = 60.0
_STEP = 0.002
_MOST = 500  # Tests for one change.
_LONGEST = 4096  # Bytes of the name of a test.
_PACKAGE = "mlhost_limits"
_HEIR = 36  # PR_SET_CHILD_SUBREAPER of sys/prctl.h.


class Trial(NamedTuple):
    """A change of a file of the library, and the tests that may see it."""

    file: str
    point: Point
    tests: Sequence[str]


def try_inside(
    library: Path, trials: Sequence[Trial], lanes: int, options: Sequence[str]
) -> list[str]:
    """Return the fate of each change: ``killed``, ``survived``, or ``outside`` of what this can.

    :param options: Of pytest: what it collects.
    """
    breaker = _Breaker(library, trials, lanes)
    status = pytest.main([*options, "-qq", "--capture=sys"], plugins=[breaker])
    if status:
        raise RuntimeError(f"pytest ended with {status}")
    return [breaker.fates[number] for number in range(len(trials))]


class _Breaker:
    """A plugin of pytest that tries changes where pytest would run the tests."""

    def __init__(self, library: Path, trials: Sequence[Trial], lanes: int) -> None:
        self.library, self.trials, self.lanes = library, trials, lanes
        self.fates: dict[int, str] = {}
        self._running: dict[_Child, int] = {}
        self._fit: dict[str, bool] = {}
        self._items: dict[str, list[pytest.Item]] = {}

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Try every change, some at a time, and run no test besides."""
        for item in session.items:
            # A file has all its tests, and so has a folder.
            file = item.nodeid.partition("::")[0]
            for name in (item.nodeid, file, *map(str, Path(file).parents)):
                self._items.setdefault(name, []).append(item)
        session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # One for all.
        gc.freeze()
        ctypes.CDLL(None).prctl(_HEIR, 1)
        waiting = list(enumerate(self.trials))
        while waiting or self._running:
            if waiting and len(self._running) < self.lanes:
                number, trial = waiting.pop()
                self._running[_start(partial(self._try, trial))] = number
            else:
                waiting += [(number, self.trials[number]) for number in self._reap()]
        return True

    def _reap(self) -> Iterator[int]:
        """Note the children that have ended; yield what shall be tried again."""
        time.sleep(_STEP)
        for child in list(self._running):
            said = child.read()
            if said is None:
                continue
            number = self._running.pop(child)
            _end_strays({child.pid for child in self._running})
            if said in self._items and self._is_unfit(said):
                yield number
            else:
                self.fates[number] = said if said in (SURVIVED, OUTSIDE) else KILLED

    def _is_unfit(self, test: str) -> bool:
        """Tell whether a test fails in a child without any change, where it is left out then."""
        if test not in self._fit:
            child = _start(partial(_run, self._items[test]))
            said = child.read()
            while said is None:
                time.sleep(_STEP)
                said = child.read()
            self._fit[test] = said == SURVIVED
            if not self._fit[test]:
                del self._items[test]
        return not self._fit[test]

    def _try(self, trial: Trial) -> str:
        """Return the first test that fails; ``survived`` where none does, or ``outside``."""
        items = [
            item
            for test in trial.tests
            for item in self._items.get(test, ())
            if item.nodeid in self._items
        ]
        changed = change((self.library / trial.file).read_text(), trial.point)
        with contextlib.suppress(Exception):
            if items and replace(trial.file, changed, trial.point.line):
                clear_caches()
                return _run(items[:_MOST])
        return OUTSIDE


class _Child(NamedTuple):
    """A child, where it tells how it ends, and when it is to have ended (time.monotonic())."""

    pid: int
    pipe: int
    until: float

    def read(self) -> str | None:
        """Return what a child told that has ended; ``outside`` where it was late, else ``None``."""
        ended, _status = os.waitpid(self.pid, os.WNOHANG)
        if not ended:
            if time.monotonic() < self.until:
                return None
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            os.close(self.pipe)
            return OUTSIDE
        os.set_blocking(self.pipe, False)
        try:
            return os.read(self.pipe, _LONGEST).decode()
        except BlockingIOError:
            return ""
        finally:
            os.close(self.pipe)


def _start(task: Callable[[], str]) -> _Child:
    """Start a child that tells what a task returns, and of which nothing else is seen."""
    reads, writes = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writes)
        return _Child(pid, reads, time.monotonic() + _SECONDS)
    try:
        os.setpgid(0, 0)
        null = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(null, stream)
        os.write(writes, task().encode()[:_LONGEST])
    finally:
        os._exit(0)


def _end_strays(ours: Collection[int]) -> None:
    """End what children have left behind, which comes to this process as their heir.

    A changed ``fork`` may never stop: one that is ended has started the next. Where no user of this
    machine has its uid, that uid ends all of its own at once.
    """
    for folder in Path("/proc").glob("[1-9]*"):
        with contextlib.suppress(OSError):
            text = (folder / "status").read_text(errors="replace")
            status = dict(re.findall(r"(?m)^(\w+):\s+(\d+)", text))
            pid = int(folder.name)
            if int(status["PPid"]) == os.getpid() and pid not in ours:
                _end_all_of(int(status["Uid"]))
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def _end_all_of(uid: int) -> None:
    with contextlib.suppress(KeyError):
        pwd.getpwuid(uid)
        return  # Somebody's, and perhaps ours.
    if uid == os.getuid():
        return
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        return
    try:
        os.setuid(uid)
        os.kill(-1, signal.SIGKILL)
    finally:
        os._exit(0)


def _run(items: Sequence[pytest.Item]) -> str:
    """Return the name of the first test that fails, or that none did."""
    for item, following in zip(items, [*items[1:], None]):
        reports = runtestprotocol(item, log=False, nextitem=following)
        if any(report.failed for report in reports):
            return item.nodeid
    return SURVIVED


def replace(file: str, changed: str, line: int) -> bool:
    """Give what is at a line of a file the code, the defaults or the value of a changed source."""
    name = ".".join([_PACKAGE, *Path(file).with_suffix("").parts]).removesuffix(".__init__")
    module = importlib.import_module(name)
    if _replace_code(module, changed):
        return True
    body = ast.parse(changed).body
    part = next(one for one in body if one.lineno <= line <= (one.end_lineno or 0))
    names = {
        node.id
        for node in ast.walk(part)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    space = dict(vars(module))
    exec(compile(ast.Module([part], []), name, "exec", dont_inherit=True), space)
    if isinstance(part, ast.FunctionDef):
        return _replace_defaults(module, space[part.name])
    if not isinstance(part, (ast.Assign, ast.AnnAssign)):
        return False
    for other in [one for key, one in sys.modules.items() if key.startswith(_PACKAGE)]:
        for target in names:
            if vars(other).get(target) is vars(module)[target]:
                setattr(other, target, space[target])
    return True


def _replace_code(module: ModuleType, changed: str) -> bool:
    """Give the one function that differs its other code; a constant of several lines has one."""
    new = compile(changed, module.__file__ or "", "exec", dont_inherit=True)
    codes = {(path, code.co_firstlineno): code for path, code in _find_codes(new)}
    done = False
    for function in _find_functions(vars(module).values(), module.__name__):
        old = function.__code__
        code = codes.get((function.__qualname__, old.co_firstlineno), old)
        if old != code:
            function.__code__ = code
            done = True
    return done


def _replace_defaults(module: ModuleType, new: object) -> bool:
    (changed,) = _find_functions([new], module.__name__)
    for function in _find_functions(vars(module).values(), module.__name__):
        if function.__qualname__ == changed.__qualname__:
            function.__defaults__ = changed.__defaults__
            function.__kwdefaults__ = changed.__kwdefaults__
            return True
    return False


def _find_codes(code: CodeType, path: str = "") -> Iterator[tuple[str, CodeType]]:
    """Yield the functions of a module and of its classes, with their qualified names."""
    for one in code.co_consts:
        if isinstance(one, CodeType):
            name = f"{path}{one.co_name}"
            yield name, one
            yield from _find_codes(one, f"{name}.")


def _find_functions(values: Iterable[object], module: str) -> Iterator[FunctionType]:
    """Yield the functions among values, in classes and below their wrappers too."""
    for value in values:
        if isinstance(value, type):
            if value.__module__ == module:
                yield from _find_functions(list(vars(value).values()), module)
            continue
        if isinstance(value, property):
            yield from _find_functions([value.fget, value.fset], module)
            continue
        inner = getattr(value, "__func__", getattr(value, "func", value))
        while hasattr(inner, "__wrapped__"):
            inner = inner.__wrapped__
        if isinstance(inner, FunctionType) and inner.__module__ == module:
            yield inner


def clear_caches() -> None:
    """Forget what the library has computed: a change may be about that."""
    for name, module in list(sys.modules.items()):
        if name.startswith(_PACKAGE):
            for value in list(vars(module).values()):
                clear = getattr(value, "cache_clear", None)
                if callable(clear):
                    clear()
