# SPDX-License-Identifier: GPL-3.0-or-later
"""Names that processes made which have ended since."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from mlhost_limits.host.marks import make_mark


def run_in_dead(make: Callable[[], str]) -> str:
    """Return what a process answered that is gone now."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(writer, make().encode())
        os._exit(0)
    os.waitpid(pid, 0)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as file:
        return file.read()


def make_dead_mark() -> str:
    """Return the mark of a process that has ended."""
    return run_in_dead(make_mark)


def use_again(mark: str) -> str:
    """Return a mark as of a dead process whose number a living one has now: this one."""
    return re.sub(r"^[0-9]+-[0-9]+", f"{os.getpid()}-1", mark)


def of_another_boot(mark: str) -> str:
    pid, start, _boot, space, rest = mark.split("-")
    return "-".join((pid, start, "0123abcd", space, rest))


def of_another_space(mark: str) -> str:
    pid, start, boot, _space, rest = mark.split("-")
    return "-".join((pid, start, boot, "0123abcd", rest))
