# SPDX-License-Identifier: BSD-2-Clause
"""Watch the open descriptors of this process, and warn before its limit is reached."""

from __future__ import annotations

import os
import re
import resource
import threading
import time
from collections.abc import Callable
from types import TracebackType

from ..shared_memory.model import SHM

_FOLDER = "/proc/self/fd"
_KINDS = 3
_SHARE = 1000
"""A look that takes long is followed by a rest of that many times as much: 0.1 % of a core."""


class DescriptorWatch:
    """A thread that looks once a second, and warns once for each crossing of the threshold."""

    def __init__(
        self,
        threshold: float = 0.8,
        seconds: float = 1.0,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        if not 0 < threshold <= 1 or seconds <= 0:
            raise ValueError(f"threshold {threshold!r}, seconds {seconds!r}: 0 to 1, and above 0")
        self._threshold, self._seconds = threshold, seconds
        self._warn = warn or _log
        self._is_above = False
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> DescriptorWatch:
        """Begin to watch; the thread ends with the process."""
        if self._thread is None:
            self._stopped.clear()
            self._thread = threading.Thread(target=self._watch, name="mlhost-watch", daemon=True)
            self._thread.start()
        return self

    def stop(self) -> None:
        """Cease to watch."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def __enter__(self) -> DescriptorWatch:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _watch(self) -> None:
        rest = 0.0
        while not self._stopped.wait(rest):
            rest = max(self._seconds, self.look() * _SHARE)

    def look(self) -> float:
        """Look once, and warn where the threshold was crossed since the last look.

        :returns: The seconds of a core that counting took.
        """
        start = time.thread_time()
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        try:
            count = count_descriptors()
        except OSError:
            count = limit  # None is left to look with.
        took = time.thread_time() - start
        is_above = limit != resource.RLIM_INFINITY and count >= limit * self._threshold
        if is_above and not self._is_above:
            self._warn(describe(count, limit, find_kinds()))
        self._is_above = is_above
        return took


def count_descriptors(folder: str = _FOLDER) -> int:
    """Return how many are open; since Linux 6.2 the size of the folder tells, which is cheap."""
    return os.stat(folder).st_size or len(os.listdir(folder)) - 1


def find_kinds(folder: str = _FOLDER) -> list[tuple[str, int]]:
    """Return the biggest kinds of what is open, each with its number."""
    kinds: dict[str, int] = {}
    try:
        names = os.listdir(folder)
    except OSError:
        return []  # None is left to look with.
    for name in names:
        try:
            kind = name_kind(os.readlink(f"{folder}/{name}"))
        except OSError:
            continue  # It was closed meanwhile.
        kinds[kind] = kinds.get(kind, 0) + 1
    return sorted(kinds.items(), key=lambda pair: (-pair[1], pair[0]))[:_KINDS]


def name_kind(target: str) -> str:
    """Return what kind of thing a descriptor is open to: a pipe, shared memory, a folder's files.

    >>> name_kind("socket:[4711]"), name_kind("/data/shard-0001.tar")
    ('socket', 'files in /data')
    """
    special = re.match(r"(?:anon_inode:)?\[?([a-z_-]+)\]?:?(?:\[[0-9]+\])?$", target)
    if special:
        return special[1]
    if target.startswith((f"{SHM}/", "/memfd:")):
        return "shared memory"
    return f"files in {os.path.dirname(target) or target}"


def describe(count: int, limit: int, kinds: list[tuple[str, int]]) -> str:
    """Return the sentence of a warning."""
    most = ", ".join(f"{number} {kind}" for kind, number in kinds) or "not known"
    share = count * 100 // max(limit, 1)
    return f"{count} of {limit} descriptors are open ({share} %); most are {most}"


def _log(text: str) -> None:
    import logging

    logging.getLogger("mlhost_limits").warning(text)
