# SPDX-License-Identifier: GPL-3.0-or-later
"""How many cases to try, and where each comparison with the real thing leaves its figures."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path

import pytest

FIGURES = Path(__file__).parents[2] / "build" / "oracle.json"
EVERYTHING = bool(os.environ.get("MLHOST_ALL"))
needs_root = pytest.mark.skipif(os.geteuid() != 0 and not EVERYTHING, reason="needs root")
"""In ``make oracle`` nothing is left out: what could not be compared fails."""
takes_long = pytest.mark.skipif(not EVERYTHING, reason="takes long; make oracle does it")
SEED = int(os.environ.get("MLHOST_ORACLE_SEED", "1"))


def choose(share: int, everything: int) -> int:
    """Return how many cases to try: a share of them in ``make test``, all in ``make oracle``."""
    return everything if EVERYTHING else share


def record(
    kind: str,
    release: str,
    cases: int,
    mismatches: int,
    unknown: int = 0,
    *,
    of: int,
    most_unknown: float = 0.25,
) -> None:
    """Leave the figures of one comparison in ``build/oracle.json`` and print them.

    :param kind: What was predicted: pam, sysctl, systemd, docker, podman, sessions or slurm.
    :param release: The Debian it ran on, by its code name.
    :param unknown: Cases that we do not predict and say so.
    :param of: How many cases were to be compared, at least.
    :param most_unknown: The share of them that may be unknown.
    :raises AssertionError: If fewer were compared, or too many were not.
    """
    assert cases >= of > 0, f"{kind} {release}: {cases} cases were compared, not {of}"
    assert unknown <= cases * most_unknown, f"{kind} {release}: {unknown} of {cases} are unknown"
    figures = {"cases": cases, "mismatches": mismatches, "unknown": unknown}
    FIGURES.parent.mkdir(exist_ok=True)
    with FIGURES.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        known = json.loads(file.read() or "{}")
        known.setdefault(kind, {})[release] = figures
        file.truncate(0)
        file.write(json.dumps(known, indent=2, sort_keys=True) + "\n")
    print(f"{kind} {release}: {cases} cases, {mismatches} mismatches, {unknown} unknown")
