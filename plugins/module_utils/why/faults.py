# SPDX-License-Identifier: BSD-2-Clause
"""Read from the kernel's log where a process touched memory that is not its own.

A stack that has grown to its limit is touched beside the stack pointer; anything else is a bug.
Source: ``show_signal_msg()`` in arch/x86/mm/fault.c.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..core.values import NamedTuple
from .kills import Line

_FAULT = re.compile(
    r".{1,15}\[(\d+)\]: segfault at ([0-9a-f]{1,16}) ip [0-9a-f]+ sp ([0-9a-f]{1,16}) error \d"
)
_BESIDE = 2**17
"""Bytes between the stack pointer and what is touched, at most: a frame of a function."""


class Fault(NamedTuple):
    """A fault that was logged: of which process, how long ago, and where."""

    age: float
    pid: int
    address: int
    stack: int

    @property
    def is_of_stack(self) -> bool:
        """Tell whether it is beside the stack pointer."""
        return abs(self.address - self.stack) <= _BESIDE

    @property
    def text(self) -> str:
        where = "beside its stack pointer" if self.is_of_stack else "far from its stack"
        return f"kernel log: process {self.pid} touched {self.address:#x}, {where}"


def find_faults(lines: Sequence[Line]) -> Iterator[Fault]:
    """Yield the faults that were logged, in their order."""
    for line in lines:
        match = _FAULT.match(line.text)
        if match:
            yield Fault(line.age, int(match[1]), int(match[2], 16), int(match[3], 16))
