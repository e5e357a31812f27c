# SPDX-License-Identifier: BSD-2-Clause
"""Keep standard output and standard error usable, whatever started this program gave it."""

from __future__ import annotations

import os
import sys
from contextlib import suppress


def open_streams() -> None:
    """Give /dev/null to each standard stream that is closed.

    The next file that is opened would have its number, and what is printed would go there.
    """
    null = os.open(os.devnull, os.O_RDWR)
    while null <= 2:
        null = os.dup(null)
    os.close(null)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(1 if name == "stdout" else 2, "w", closefd=False))


def flush_streams() -> OSError | None:
    """Write what is left, and return what kept it from being taken.

    What was not taken is dropped: the interpreter would try once more, and complain.
    """
    problem = None
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError as exc:
            problem = exc
            with suppress(OSError):
                null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
                os.dup2(null, stream.fileno())
                os.close(null)
    return problem
