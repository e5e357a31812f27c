# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line of the library as root runs it, less the guards that the file names."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, "/opt")
sys.path.insert(0, "/root/hostile")

from guards import GUARDS  # type: ignore[import-not-found]

OUT = "/root/hostile/guard-out"


def take_out() -> None:
    """Take the guards out that the judge wants to see needed."""
    if os.path.exists(OUT):
        with open(OUT, encoding="ascii") as file:
            names = file.read().split()
        for name in names:
            GUARDS[name]()


if __name__ == "__main__":
    take_out()
    from mlhost_limits.cli import main

    raise SystemExit(main())
