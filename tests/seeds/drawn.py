# SPDX-License-Identifier: GPL-3.0-or-later
"""Draw runs of real libraries, and run each at what a preflight allows and at less.

``python -m tests.seeds.drawn --runs 200 --seed 7`` writes ``build/runs.json``. A wrong go is a run
that died within a limit that passed; a wrong no-go one that lived within a limit that did not.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import random
import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import tests.conftest  # noqa: F401 - it makes the library importable

from . import cgroup, drawn_deepspeed
from .drawn_figures import WITHIN, is_within, sum_up
from .environments import run_with
from .product import check, describe
from .settings import Words, shared_memory, soft_limit
from .trial import TOP, execute

FILE = TOP / "build" / "runs.json"
MEASURED = Path(__file__).parent / "measured_runs.json"
PATIENCE, LEAST, TIMES = 400, 60, 4
"""Seconds: a slow run on a busy machine is not a dead one. One that hangs is, after so many times
what it took where it had enough.
"""
USER = 23456 + os.getpid()
NAME = f"drawn-{os.getpid()}"
"""A user and cgroups of this process alone, for others may draw at the same time."""
MIB = 2**20
BASE = 4
"""Descriptors of a run before it loads: the first three, and what its processes share."""
LIMITS = ("descriptors", "shared_memory", "memory", "address_space", "nproc", "pids")
CHECKS = {"nproc": "tasks", "pids": "tasks", "address_space": "memory"}
"""What bounds a run here, and the check that looks at it where it has another name.

Mappings are counted and not bounded, for all processes share that sysctl.
"""

LIBRARIES = (
    *("torch",) * 8,
    *("webdataset", "webdataset", "wids", "wids"),
    *("accelerate", "accelerate", "transformers", "transformers", "trl"),
)
FIRST_OF_SAFETENSORS = 200
"""The number from which on workers keep files of safetensors; those before stay as they were."""
FIRST_OF_DEEPSPEED = 212
"""Those from here on are of DeepSpeed."""
ENVIRONMENTS = {
    **{name: name for name in ("webdataset", "wids", "trl")},
    drawn_deepspeed.LIBRARY: "deepspeed",
}
_STATED_LIBRARIES = ("accelerate", "transformers", "trl")
FILES = {"plain": 1, "wids": 2, "webdataset": 1}
"""Descriptors of a worker for each file that it keeps; those mapped whole have none."""
_NAMES = {
    "tensors": "tensors_per_batch",
    "accumulation": "gradient_accumulation",
    "ranks": "ranks_per_node",
    "context": "start_method",
}
_UNSAID = ("samples", "labels", "files", "cached", "stage", "width", "layers", "trained")
"""How a batch is made up, of which a policy says nothing, and what it says as one number."""

KEPT = (
    *("number", "limit", "library", "options", "returns_memory"),
    *("needed", "lives", "less", "dies", "peaks"),
)
"""What is kept of a run that was measured."""


class Drawn(NamedTuple):
    """One run: how it loads, and what bounds it."""

    limit: str
    library: str
    options: dict[str, Any]
    returns_memory: bool = True

    @property
    def run(self) -> dict[str, Any]:
        """Return the run in the words of a policy."""
        told = {name: value for name, value in self.options.items() if name not in _UNSAID}
        stated = {_NAMES.get(name, name): value for name, value in told.items()}
        cached = self.options.get("cached", self.library)
        files = self.options.get("files", 0) * FILES.get(cached, 0)
        library = self.library if self.library in _STATED_LIBRARIES else "torch"
        own = {"library": library, "threads": 1, "base": BASE, "dataset_files": files}
        if self.states:
            own["backend"] = "gloo"
        return {"epochs": 1, **stated, **own}

    @property
    def states(self) -> dict[str, Any]:
        """Return the states of its model in the words of a policy, where DeepSpeed has some."""
        is_offloaded = self.library == drawn_deepspeed.LIBRARY
        return drawn_deepspeed.describe_offload(self.options) if is_offloaded else {}


def draw(seed: int, number: int) -> Drawn:
    """Return a run; the same for the same seed and number."""
    one = random.Random(f"{seed} {number}")
    library = _choose_library(one, number)
    limit = _choose_limit(library, number)
    options: dict[str, Any] = {
        "workers": one.randint(1, 8),
        "prefetch": one.randint(1, 5),
        "tensors": one.choice((1, 2, 3, 4, 8, 16)),
        "batch_size": one.choice((2, 4, 8)) * MIB,
        "samples": one.choice((1, 2, 4)),
        "labels": one.choice((0, 1)),
    }
    if one.random() < 0.3:
        options["worker_memory"] = one.choice((20, 50, 100)) * MIB
    options.update(_draw_for(one, library, limit, number))
    if options.get("context") or options.get("ranks", 1) > 1:
        options["workers"] = min(options["workers"], 3)  # Each begins with an import of torch.
    return Drawn(limit, library, options)


def _choose_library(one: random.Random, number: int) -> str:
    drawn = one.choice(LIBRARIES)
    if number >= FIRST_OF_DEEPSPEED:
        return drawn_deepspeed.LIBRARY
    return "torch" if number >= FIRST_OF_SAFETENSORS else drawn


def _choose_limit(library: str, number: int) -> str:
    limit = LIMITS[number % len(LIMITS)]
    if library == drawn_deepspeed.LIBRARY and limit == "nproc":
        return "pids"  # Another user has another interpreter here, and would compile again.
    return limit


def _draw_for(one: random.Random, library: str, limit: str, number: int) -> dict[str, Any]:
    """Return what only this library has."""
    if library == "torch":
        options = _draw_for_torch(one, limit)
        if number >= FIRST_OF_SAFETENSORS:
            options.update(files=one.choice((1, 10, 60)), cached="safetensors")
        return options
    if library == drawn_deepspeed.LIBRARY:
        return drawn_deepspeed.draw_offload(one)
    if library == "webdataset":
        return {"files": 1}
    if library == "wids":
        return {"files": one.choice((1, 10, 60)), "cached": "wids"}
    return {} if library == "accelerate" else {"accumulation": one.choice((1, 2, 4, 8))}


def _draw_for_torch(one: random.Random, limit: str) -> dict[str, Any]:
    """Return what only a program of its own decides: a loop, ranks, files of a cache."""
    options: dict[str, Any] = {
        "hold": one.choice((0, 0, 1, 3, 9)),
        "loaders": one.choice((1, 1, 2)),
        "epochs": one.choice((1, 1, 2)),
        "sharing": one.choice(("file_descriptor", "file_descriptor", "file_system")),
    }
    if one.random() < 0.2:
        options.update(ranks=one.choice((2, 3)), groups=one.randint(1, 4))
    if one.random() < 0.4:
        options.update(files=one.choice((1, 10, 60)))
        options["cached"] = one.choice(("plain", "pt"))
    if one.random() < (0.4 if limit == "nproc" else 0.1):
        options["context"] = one.choice(("spawn", "forkserver"))
    return options


def count(drawn: Drawn) -> dict[str, int]:
    """Return what the product says that a run takes of each, at most."""
    from mlhost_limits.training.policy import DeepSpeed, Training

    states = DeepSpeed(**drawn.states) if drawn.states else None
    return count_run(Training(**drawn.run, returns_memory=drawn.returns_memory, deepspeed=states))


def count_run(run: Any) -> dict[str, int]:
    """Return the same of a run in the product's own words."""
    from mlhost_limits.training import loader
    from mlhost_limits.training.tasks import count_tasks

    workers = run.workers or 0
    return {
        "descriptors": loader.count_descriptors(run, workers),
        "tasks": count_tasks(run, workers, 1),
        "mappings": loader.count_mappings(run, workers),
        "shared_memory": loader.count_shared_memory(run, workers),
        "memory": loader.count_memory(run, workers),
        "address_space": loader.count_addresses(run, workers),
    }


def find_resource(limit: str) -> str:
    """Return what a limit bounds."""
    return "tasks" if limit in ("nproc", "pids") else limit


def lessen(limit: str, number: int) -> int:
    """Return a limit that a run does not survive, as far below the forecast as that may be off."""
    if find_resource(limit) == "tasks":
        return number - 1 - number // 20
    if limit == "descriptors":
        return number - 3
    part = {"shared_memory": 90, "address_space": 50}.get(limit, 70)
    return number * part // 100 // 4096 * 4096


def bound(limit: str, number: int, own: int = 0) -> Words:
    """Return words that bound a run, or a check, which has something of its own in a cgroup."""
    if limit == "descriptors":
        return soft_limit("n", number)
    if limit == "shared_memory":
        return shared_memory(str(number))
    if limit == "address_space":
        return ("prlimit", f"--as={number}:{number}")
    if limit == "memory":
        return cgroup.limit_memory(number + own * MIB, f"{NAME}-{number}-{own}")
    if limit == "pids":
        return cgroup.limit_tasks(number + own, f"{NAME}-{number}-{own}")
    ids = (f"--reuid={USER}", f"--regid={USER}", "--clear-groups")
    return ("prlimit", f"--nproc={number}:{number}", "setpriv", *ids)


ALONE = (
    *("unshare", "--pid", "--fork", "--kill-child", "--mount-proc"),
    *("sh", "-c", '"$@"; exit $?', "sh", "setsid", "--wait"),
)
"""Nothing of a run outlives it, such as ranks that wait for one that died.

Who becomes another user is not killed with its parent any more; a shell before it is.
"""

OWN = {"memory": 48}
"""The MiB that a check has in the cgroup that it looks at."""


HEAP = {"MALLOC_TRIM_THRESHOLD_": "131072"}
"""As the preflight says; else the heaps of workers grow for long, and by no rule."""
HOME = {"HF_HUB_OFFLINE": "1", "HOME": "/tmp", **HEAP}


class Tried(NamedTuple):
    """What was said of a run within a limit, what came of it, and the most that it took of each."""

    go: bool
    lives: bool
    peaks: dict[str, int]
    printed: str
    seconds: float = LEAST


def attempt(drawn: Drawn, number: int, patience: float = PATIENCE) -> Tried:
    """Judge a run and start it, both within the same limit."""
    name = CHECKS.get(drawn.limit, drawn.limit)
    words = describe({**drawn.run, **drawn_deepspeed.tell_offload(drawn.states)})
    judging = check("none", *words, "--only", name)
    judging = judging._replace(environment={**judging.environment, **HEAP})
    judged = execute(judging.within(*bound(drawn.limit, number, OWN.get(drawn.limit, 0))))
    if judged.status not in (0, 1):
        raise LookupError(f"{drawn}: {judged.output}")
    words = describe({**drawn.options, "library": drawn.library})
    environment = ENVIRONMENTS.get(drawn.library, "transformers-5")
    run = run_with(environment, "load_drawn.py", *words)
    run = run.within(*ALONE, *shared_memory("3g"), *bound(drawn.limit, number))
    more = drawn_deepspeed.prepare_operators() if drawn.states else {}
    start = time.monotonic()
    done = execute(run._replace(environment={**HOME, **more}), int(patience))
    seconds = time.monotonic() - start
    told = re.search(r"^\{\"peaks.*$", done.output, re.MULTILINE)
    peaks = json.loads(told[0])["peaks"] if told else {}
    return Tried(judged.status == 0, done.status == 0, peaks, done.output[-2000:], seconds)


def compare(seed: int, number: int) -> dict[str, Any]:
    """Try one run at what passes and below it; see whether what was said came true."""
    drawn = draw(seed, number)
    forecast = count(drawn)
    needed = forecast[find_resource(drawn.limit)]
    less = lessen(drawn.limit, needed)
    at = attempt(drawn, needed)
    below = attempt(drawn, less, min(max(at.seconds * TIMES, LEAST), PATIENCE))
    tried = (at, below)
    return {
        **drawn._asdict(),
        "number": number,
        "needed": needed,
        "less": less,
        "wrong_go": sum(one.go and not one.lives for one in tried),
        "wrong_no_go": sum(one.lives and not one.go for one in tried),
        "go": at.go,
        "no_go": not below.go,
        "lives": at.lives,
        "dies": not below.lives,
        "peaks": at.peaks,
        "off": find_off(drawn, at.peaks),
        "printed": "" if at.lives else at.printed,
    }


def find_off(
    drawn: Drawn, peaks: Mapping[str, int], forecast: Mapping[str, int] | None = None
) -> dict[str, float]:
    """Return by how much each forecast was off: a number of descriptors, a part of all else."""
    forecast = forecast or count(drawn)
    return {
        name: forecast[name] - peaks[name]
        if name == "descriptors"
        else round((forecast[name] - peaks[name]) / max(peaks[name], 1), 3)
        for name in WITHIN
        if name in peaks
        # Another user has another interpreter here, whose modules are not mapped one by one.
        if not (drawn.limit == "nproc" and name == "mappings")
    }


def main() -> int:
    """Try as many runs as are asked for; the status is 0 where no go was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.seeds.drawn", description=__doc__)
    parser.add_argument("--runs", type=int, default=236)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--into", type=Path, default=FILE)
    parser.add_argument("--only", type=int, nargs="+", help="the numbers of runs, and no others")
    parser.add_argument("--keep", action="store_true", help=f"what is measured in {MEASURED.name}")
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    start = time.monotonic()
    given.into.parent.mkdir(exist_ok=True)
    try:
        for number in given.only or range(given.first, given.first + given.runs):
            row = compare(given.seed, number)
            rows.append(row)
            tell(row)
            given.into.write_text(json.dumps({**sum_up(rows), "rows": rows}, indent=2) + "\n")
            if given.keep:
                keep(row)
    finally:
        cgroup.remove_all(NAME)
    total = sum_up(rows)
    print(json.dumps(total), f"in {time.monotonic() - start:.0f} s")
    return 1 if total["wrong_go"] else 0


def tell(row: Mapping[str, Any]) -> None:
    """Print a line for a run, and what it printed where it died at what it was allowed."""
    flaws = [name for name in ("wrong_go", "wrong_no_go") if row[name]]
    flaws += [f"{name} off" for name in row["off"] if not is_within(name, row["off"][name])]
    told = f"{row['number']} {row['limit']} {row['library']} {row['options']}"
    print(told, f"needs {row['needed']}", row["off"], *flaws, row["printed"][-300:], flush=True)


def keep(row: Mapping[str, Any]) -> None:
    """Write what was measured of a run, one in a line, for the fast tests; others stay."""
    with MEASURED.open("r+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        rows = {one["number"]: one for one in json.load(file)}
        rows[row["number"]] = {name: row[name] for name in KEPT}
        lines = [json.dumps(rows[number]) for number in sorted(rows)]
        file.seek(0)
        file.write("[\n" + ",\n".join(lines) + "\n]\n")
        file.truncate()


if __name__ == "__main__":
    sys.exit(main())
