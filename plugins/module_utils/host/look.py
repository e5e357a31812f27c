# SPDX-License-Identifier: BSD-2-Clause
"""One look at one host: what each place reads of it is read once, and only when somebody asks."""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, TypeVar

from .process import Process, find_processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.rlimit import Rlimit

    Promise = tuple[int, str]
    """A number of descriptors, and where it stands."""

Reader = TypeVar("Reader")


class Look:
    """One look at one host, which hands the same readers to all who ask."""

    def __init__(
        self,
        promise: Callable[[Look], Iterable[Promise]] | None = None,
        processes: Iterable[Process] | None = None,
        limits_by_pid: Mapping[int, Mapping[str, Rlimit]] | None = None,
    ) -> None:
        """Begin with what is known already.

        :param promise: Yields each nofile that somebody's files state.
        :param processes: With ``limits_by_pid``, what was read of them.
        """
        self._made: dict[type[Any], Any] = {}
        self._promise = promise
        self.limits_by_pid = limits_by_pid or {}
        if processes is not None:
            self.processes = tuple(processes)

    def at(self, reader: type[Reader]) -> Reader:
        """Return the reader of a class, which is made when it is first asked for, and kept."""
        if reader not in self._made:
            self._made[reader] = reader()
        made: Reader = self._made[reader]
        return made

    def seen_by(self, reader: type[Reader], made: Reader) -> Look:
        """Return the same look with another reader for those of its class."""
        look = copy.copy(self)
        look._made = {**self._made, reader: made}
        return look

    def list_promises(self) -> list[Promise]:
        """Return each nofile that somebody's files state: fs.nr_open must not fall below it."""
        return list(self._promise(self)) if self._promise else []

    @cached_property
    def processes(self) -> tuple[Process, ...]:
        return tuple(find_processes())

    def find_change(self, path: str) -> str:
        """Return when a file was last changed, as an ISO time, or nothing."""
        try:
            return format_time(os.stat(path).st_mtime)
        except OSError:
            return ""


def format_time(seconds: float) -> str:
    """Return a time as people and programs read it, in the host's own zone."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(seconds))
