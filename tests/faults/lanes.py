# SPDX-License-Identifier: GPL-3.0-or-later
"""Do many things some at a time, and hand out what came of them in the order they were given."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import TypeVar

Given = TypeVar("Given")
Made = TypeVar("Made")


def in_lanes(lanes: int, make: Callable[[Given], Made], given: Iterable[Given]) -> Iterator[Made]:
    """Yield what is made of each; where the caller stops, what has not begun never does."""
    with ThreadPoolExecutor(lanes) as pool:
        futures = [pool.submit(make, one) for one in given]
        try:
            for future in futures:
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def leave(number: int, _frame: FrameType | None) -> None:
    """Unwind when told to end, so that the guests of all lanes go."""
    sys.exit(128 + number)
