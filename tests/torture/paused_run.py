# SPDX-License-Identifier: GPL-3.0-or-later
"""Provision once on a guest, and wait before and after every step that writes.

Each wait prints a line and ends when one is read, so that whoever reads can look at the disk.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import one_run  # type: ignore[import-not-found] # It lies beside this file on the guest.
from mlhost_limits.write import replace

STEPS = ("_write_temporary", "swap", "place", "take_away", "_sync_folder", "_discard")


def wait(text: str) -> None:
    print(f"point {text}", flush=True)
    sys.stdin.readline()


def with_waits(name: str, real: Callable[..., object]) -> Callable[..., object]:
    def step(*given: object) -> object:
        result = real(*given)
        wait(f"after {name}")
        return result

    return step


for step_name in STEPS:
    setattr(replace, step_name, with_waits(step_name, getattr(replace, step_name)))
sys.exit(one_run.main(sys.argv[1]))
