# SPDX-License-Identifier: GPL-3.0-or-later
"""The descriptors of process groups, compared with what gloo's ranks have open on this host."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import tests.conftest  # noqa: F401 - it makes the library importable

from .environments import install
from .trial import RUNS

RANKS = range(2, 9)
GROUPS = 4
STORES = ("tcp", "file")


def try_rule() -> dict[str, Any]:
    """Join up to four groups of up to eight ranks; what the first has open must be foretold."""
    cases = list(list_cases())
    differ = [case for case in cases if case["open"] != case["foretold"]]
    above = [case for case in cases if case["threads"] != case["threads_foretold"]]
    return {
        "holds": not differ and not above,
        "cases": len(cases),
        "differ": len(differ) + len(above),
        "differences": [*differ, *above],
    }


def list_cases() -> Iterator[dict[str, Any]]:
    """Yield what each rank has for its groups, and what the product says of it."""
    for store in STORES:
        for ranks in RANKS:
            for rank, rows in enumerate(join(store, ranks)):
                for groups, (opened, threads) in enumerate(rows, start=1):
                    yield {
                        "store": store,
                        "ranks": ranks,
                        "rank": rank,
                        "groups": groups,
                        "open": opened,
                        "threads": threads,
                        **foretell(store == "tcp", ranks, rank, groups),
                    }


def foretell(has_server: bool, ranks: int, rank: int, groups: int) -> dict[str, int]:
    """Return the product's numbers, of which the store's part falls to the first rank alone."""
    from mlhost_limits.training.collectives import (
        OF_CLIENT,
        OF_STORE,
        count_of_groups,
        count_threads_of_rank,
    )
    from mlhost_limits.training.policy import Training

    run = Training(ranks_per_node=ranks, groups=groups)
    serves = has_server and not rank
    less = 0 if serves else OF_STORE + ranks - OF_CLIENT * has_server
    return {
        "foretold": count_of_groups(run) - less,
        "threads_foretold": count_threads_of_rank(run) - (not serves),
    }


def join(store: str, ranks: int) -> Any:
    """Return for each rank what it has open, and its threads, with each group more."""
    words = ("--store", store, "--ranks", str(ranks), "--groups", str(GROUPS))
    done = subprocess.run(
        [install("torch"), RUNS / "join_groups.py", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"},
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])
