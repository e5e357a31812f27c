# SPDX-License-Identifier: GPL-3.0-or-later
"""Draw runs of real libraries, and run each at what a preflight allows and at less.

``python -m tests.seeds.drawn --runs 200 --seed 1`` writes ``build/runs.json``. A wrong go is a run
that died within a limit that passed; a wrong no-go one that lived within a limit that did not.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
from collections import Counter
from typing import Any, NamedTuple

import tests.conftest  # noqa: F401 - it makes the library importable

from .environments import run_with
from .product import check, describe
from .settings import Words, shared_memory, soft_limit
from .trial import TOP, execute

FILE = TOP / "build" / "runs.json"
PATIENCE = 60
USER = 23456
LIMITS = ("descriptors", "tasks", "shared_memory")
"""What bounds a run here; mappings are counted and not bounded, for all share that sysctl."""

WITHIN = {"descriptors": 2.0, "tasks": 0.05, "mappings": 0.05, "shared_memory": 0.05}
"""By how much a forecast may be off: a number of descriptors, a part of anything else."""


class Drawn(NamedTuple):
    """One run: how it loads, and what bounds it."""

    limit: str
    library: str
    options: dict[str, Any]

    @property
    def run(self) -> dict[str, Any]:
        """Return the run in the words of a policy."""
        names = {"tensors": "tensors_per_batch", "accumulation": "gradient_accumulation"}
        names["context"] = "start_method"
        stated = {names.get(name, name): value for name, value in self.options.items()}
        return {**stated, "library": self.library, "threads": 1, "epochs": 1}


def draw(seed: int, number: int) -> Drawn:
    """Return a run; the same for the same seed and number."""
    one = random.Random(f"{seed} {number}")
    limit = one.choice(LIMITS)
    library = one.choice(("torch", "torch", "accelerate", "transformers"))
    options: dict[str, Any] = {
        "workers": one.randint(1, 8),
        "prefetch": one.randint(1, 5),
        "tensors": one.choice((1, 2, 3, 4, 8, 16)),
        "batch_size": one.choice((1, 2, 4)) * 2**20,
    }
    if library == "torch":
        options.update(hold=one.choice((0, 0, 1, 3, 9)), loaders=one.choice((1, 1, 2)))
        options["sharing"] = one.choice(("file_descriptor", "file_descriptor", "file_system"))
        if limit == "tasks":
            options["context"] = one.choice(("fork", "fork", "spawn"))
    if library == "transformers":
        options["accumulation"] = one.choice((1, 2, 4, 8))
    return Drawn(limit, library, options)


def count(drawn: Drawn) -> dict[str, int]:
    """Return what the product says that a run takes of each, at most."""
    from mlhost_limits.training import loader
    from mlhost_limits.training.policy import Training
    from mlhost_limits.training.tasks import count_tasks

    run = Training(**drawn.run)
    workers = run.workers or 0
    return {
        "descriptors": loader.count_descriptors(run, workers),
        "tasks": count_tasks(run, workers, 1),
        "mappings": loader.count_mappings(run, workers),
        "shared_memory": loader.count_shared_memory(run, workers),
    }


def lessen(limit: str, number: int) -> int:
    """Return a limit that a run does not survive, as far below the forecast as that may be off."""
    if limit == "tasks":
        return number - 1 - number // 20
    return number * 9 // 10 - 2 if limit == "descriptors" else number * 8 // 10 // 4096 * 4096


def bound(limit: str, number: int) -> Words:
    """Return words that bound a run."""
    if limit == "descriptors":
        return soft_limit("n", number)
    if limit == "shared_memory":
        return shared_memory(str(number))
    ids = (f"--reuid={USER}", f"--regid={USER}", "--clear-groups")
    return ("prlimit", f"--nproc={number}:{number}", "setpriv", *ids)


class Tried(NamedTuple):
    """What was said of a run within a limit, what came of it, and the most that it took of each."""

    go: bool
    lives: bool
    peaks: dict[str, int]
    printed: str


def attempt(drawn: Drawn, number: int) -> Tried:
    """Judge a run and start it, both within the same limit."""
    within = bound(drawn.limit, number)
    stated = describe(drawn.run)
    judged = execute(check("none", *stated, "--only", drawn.limit).within(*within))
    if judged.status not in (0, 1):
        raise LookupError(f"{drawn}: {judged.output}")
    pace = {"step": 0.03} if drawn.limit == "shared_memory" else {"slow": 0.15}
    is_watched = drawn.limit == "tasks"  # By a thread, which is a task more.
    within = bound(drawn.limit, number + is_watched)
    done = execute(
        run_with(
            "transformers-5",
            "load_drawn.py",
            *describe({**drawn.options, **pace, "library": drawn.library}),
        )
        .within("setsid", "--wait", *shared_memory("2g"), *within)
        ._replace(environment={"HF_HUB_OFFLINE": "1", "HOME": "/tmp"}),
        PATIENCE,
    )
    told = re.search(r"^\{\"peaks.*$", done.output, re.MULTILINE)
    peaks = json.loads(told[0])["peaks"] if told else {}
    return Tried(judged.status == 0, done.status == 0, peaks, done.output[-2000:])


def compare(seed: int, number: int) -> dict[str, Any]:
    """Try one run at what passes and below it; see whether what was said came true."""
    drawn = draw(seed, number)
    forecast = count(drawn)
    needed = forecast[drawn.limit]
    at, below = attempt(drawn, needed), attempt(drawn, lessen(drawn.limit, needed))
    tried = (at, below)
    off = {name: forecast[name] - most for name, most in at.peaks.items()}
    return {
        **drawn._asdict(),
        "needed": needed,
        "wrong_go": sum(one.go and not one.lives for one in tried),
        "wrong_no_go": sum(one.lives and not one.go for one in tried),
        "go": at.go,
        "no_go": not below.go,
        "off": {name: _rate(name, off[name], at.peaks[name]) for name in off},
        "printed": at.printed if not at.lives else "",
    }


def _rate(name: str, off: int, most: int) -> float:
    """Return by how much a forecast was off: a number of descriptors, a part of anything else."""
    return off if name == "descriptors" else round(off / max(most, 1), 3)


def main() -> int:
    """Try as many runs as are asked for; the status is 0 where no go was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.seeds.drawn", description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    rows = []
    start = time.monotonic()
    for number in range(given.first, given.first + given.runs):
        row = compare(given.seed, number)
        rows.append(row)
        flaws = [name for name in ("wrong_go", "wrong_no_go") if row[name]]
        told = f"{number} {row['limit']} {row['library']} {row['options']} needs {row['needed']}"
        print(told, *flaws, row["off"], row["printed"][-300:], flush=True)
        FILE.write_text(json.dumps({**sum_up(rows), "rows": rows}, indent=2) + "\n")
    total = sum_up(rows)
    print(json.dumps(total), f"in {time.monotonic() - start:.0f} s")
    return 1 if total["wrong_go"] else 0


def sum_up(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the figures of all runs; of each resource the least and the most that it was off."""
    off: dict[str, list[float]] = {}
    for row in rows:
        for name, number in row["off"].items():
            off.setdefault(name, []).append(number)
    return {
        "runs": len(rows),
        "tried": 2 * len(rows),
        "wrong_go": sum(row["wrong_go"] for row in rows),
        "wrong_no_go": sum(row["wrong_no_go"] for row in rows),
        "by_limit": dict(Counter(row["limit"] for row in rows)),
        "off": {name: [min(numbers), max(numbers)] for name, numbers in off.items()},
    }


if __name__ == "__main__":
    sys.exit(main())
