# SPDX-License-Identifier: GPL-3.0-or-later
"""What we read in containers.conf and its drop-ins is what a real podman gives a container."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from mlhost_limits.core.values import UNLIMITED
from mlhost_limits.podman.containers_conf import (
    MAIN,
    ConfError,
    find_tasks,
    order_files,
    read_conf,
    resolve,
)

from tests.host import image
from tests.oracle.record import SEED, choose, needs_root, record
from tests.places.podman.podman_rig import FOLDER

PATHS = (
    MAIN,
    f"{FOLDER}/10-a.conf",
    f"{FOLDER}/90-mlhost.conf",
    f"{FOLDER}/B.conf",
    f"{FOLDER}/x.bak",
)
ENTRIES = (
    "nofile=1024:4096", "nofile=65536", "memlock=-1:-1", "memlock=-1", "core=0:0", "nofile=5:-1",
    "nproc=+10:020", "stack=8388608", "as=1", "NOFILE=1", "memlock=unlimited", "nofile=6:5",
    "nofile = 1", "nofile=1:2:3", "nofile", "core=9223372036854775808", "cpu=-1:5", "locks=0x1",
)  # fmt: skip
GOOD = 8
SIZES = ("8g", "65536k", "1GiB", "8589934592", "1.5g", "8 g", "0", "", "1x", "-1", "64 MB")
TASKS = ("9", "4096", "-1", "0", "4_096", "+7", "0x10", '"9"', "1.5", "true", "9223372036854775808")
SUBNET = 'default_subnet = "10.88.0.0/16"'
HEADS = ("[containers]", "[ containers ]", '["containers"]', "[Containers]", "[engine]", "")


def make_file(rng: random.Random) -> str:
    """Return a file, right for the most part."""
    pool = ENTRIES[:GOOD] if rng.random() < 0.75 else ENTRIES
    entries = [f'"{rng.choice(pool)}"' for _ in range(rng.randrange(4))]
    if rng.random() < 0.2:
        entries = [entry.replace('"', "'") for entry in entries]
    gap = rng.choice([", ", ",\n  ", ", # why\n", " ,"])
    key = rng.choice(
        ["default_ulimits"] * 8 + ["Default_Ulimits", "default_ulimit", '"default_ulimits"']
    )
    tail = rng.choice(["", "", ",", "\n", " # end\n"]) if entries else ""
    lines = [
        rng.choice(HEADS if rng.random() < 0.3 else HEADS[:1]),
        f"{key} = [{gap.join(entries)}{tail}]",
    ]
    if rng.random() < 0.5:
        size = rng.choice(SIZES[:6] if rng.random() < 0.8 else SIZES)
        lines.append(
            rng.choice([f'shm_size = "{size}"', f"shm_size='{size}'", "shm_size = 65536"][:2])
        )
    lines += rng.choice(
        [[], [], [f"pids_limit = {rng.choice(TASKS)}"], ["[network]", SUBNET], ["x ="]][:4]
    )
    text = "\n".join(lines) + rng.choice(["\n", ""])
    if rng.random() < 0.06:
        at = rng.randrange(len(text) + 1)
        text = text[:at] + rng.choice("]\"'=,[#\x01") + text[at:]
    return text.replace("\n", "\r\n") if rng.random() < 0.05 else text


ADDED = [2**20, 2**20]
"""What Podman adds for each of two limits that a list of limits leaves out (``addRlimits()`` in
pkg/specgen/generate, ``RLimitDefaultValue``); to an empty list it adds nothing."""


def predict(files: dict[str, str]) -> dict[str, Any]:
    try:
        given = resolve(read_conf(path, files[path]) for path in order_files(files))
    except ConfError as error:
        return {"error": str(error)}
    return {
        "limits": {item: list(one.limit) for item, one in given.ulimits.items()},
        "shm": int(given.shm.value) if given.shm else 65536000,
        "tasks": find_tasks(given.tasks),
        "states": given.block is not None,
    }


def compare(files: dict[str, str], seen: dict[str, Any], bare: dict[str, list[int]]) -> str:
    """Return what differs. What we cannot read, podman may: then we say that it is not known.

    :param bare: What it gives where no file states a list of limits.
    """
    told = predict(files)
    if "error" in told or "error" in seen:
        return "" if "error" in told else f"read as {told}, but: {seen['error']}"
    if not told.pop("states"):
        told["limits"] = bare
    elif told["limits"]:
        told["limits"] = {**dict.fromkeys(("nofile", "nproc"), ADDED), **told["limits"]}
    tasks = UNLIMITED if seen["tasks"] < 0 else seen["tasks"] or None
    theirs = {"limits": read_seen(seen), "shm": seen["shm"], "tasks": tasks}
    return "" if told == theirs else f"read as {told}, but {theirs}"


def read_seen(seen: dict[str, Any]) -> dict[str, list[int]]:
    """Return the limits that a container was created with."""
    return {
        one["Name"].lower().replace("rlimit_", ""): [
            bound % 2**64 if bound >= 0 else UNLIMITED for bound in (one["Soft"], one["Hard"])
        ]
        for one in seen["limits"]
    }


def ask(rig: subprocess.Popen[str], files: dict[str, str]) -> dict[str, Any]:
    """Return what podman makes of files."""
    assert rig.stdin
    assert rig.stdout
    rig.stdin.write(json.dumps(files) + "\n")
    rig.stdin.flush()
    return dict(json.loads(rig.stdout.readline()))


@needs_root
def test_prediction_is_what_podman_makes_of_its_files() -> None:
    rng = random.Random(SEED)
    disk = image.build("bookworm+podman").disk
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "tests.places.podman.podman_rig", str(disk), folder]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
        rig = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        mismatches, unknown, compared, count = [], 0, 0, choose(60, 600)
        bare = read_seen(ask(rig, {}))
        for _ in range(count):
            chosen = rng.sample(PATHS, rng.randrange(1, 4))
            files = {path: make_file(rng) for path in chosen}
            seen = ask(rig, files)
            differs = compare(files, seen, bare)
            compared += 1
            unknown += "error" in predict(files) and "error" not in seen
            mismatches += [f"{files}\n    {differs}"] if differs else []
        assert rig.stdin
        assert rig.stdout
        rig.stdin.close()
        rig.stdout.close()
        rig.wait()
    print()
    record("podman", "bookworm", compared, len(mismatches), unknown, of=count)
    assert not mismatches, "\n" + "\n".join(mismatches)
