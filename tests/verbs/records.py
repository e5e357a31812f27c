# SPDX-License-Identifier: GPL-3.0-or-later
"""What is kept of each run: its whole result, by the name of its file."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from . import library
from .cases import CASES, LOGINS, SLURM_TOOLS, WHOLE
from .files import HOST, USR
from .inside import Setting
from .node import Node, write_tree
from .refusals import REFUSALS
from .walk import Walk, settle, walk
from .worlds import WORLDS, World
from .worlds_jobs import WORLDS_OF_JOBS
from .worlds_logins import WORLDS_OF_LOGINS
from .worlds_rootless import WORLDS_OF_ROOTLESS
from .worlds_units import WORLDS_OF_UNITS
from .worlds_users import WORLDS_OF_USERS

Record = Callable[[Path], Any]


def record_walk(told: Walk) -> dict[str, Any]:
    """Return what all runs of a section told, and what the stand-ins were told."""
    steps = {name: step for name, step in told._asdict().items() if name != "before"}
    return {name: {"told": step.told, "calls": step.calls} for name, step in steps.items()}


def _record_section(name: str, folder: Path) -> Any:
    return record_walk(walk(name, folder))


_POLICIES = {
    "/etc/whole.json": json.dumps(WHOLE),
    "/etc/kernel.json": json.dumps(CASES["kernel"].policy),
    "/etc/nothing.json": "{}",
    "/etc/broken.json": '{"kernel": {"vm.max_map_count": "many"}, "sesions": []}',
}


def record_trees(folder: Path) -> Any:
    """Return what is told of a tree that nobody runs: what it gives, and its policy."""
    node = Node(folder, _POLICIES)
    write_tree(folder / "srv/tree", {**HOST, **{f"usr/{path}": USR[path] for path in USR}})
    write_tree(folder / "srv/tree", {"usr/bin/dockerd": "", "usr/bin/podman": ""})
    tree, lines = "/srv/tree", [line.split() for line in _OF_TREES]
    return {
        " ".join(words): settle(node.run(partial(library.command, *words, "--root", tree)))
        for words in lines
    }


_OF_TREES = (
    "resolve",
    "resolve --json",
    "resolve --user alice --service sshd --unit jobs.service",
    "resolve --user nobody --service none",
    "resolve --user who",
    "resolve --unit containerd.service --json",
    "adopt",
    "check --json",
    "check --strict --user alice --service cron",
    "check --policy /etc/whole.json",
    "check --policy /etc/nothing.json",
)


def record_commands(folder: Path) -> Any:
    """Return what the command tells on a host that runs."""
    node = Node(folder, _POLICIES)
    return {
        words: settle(node.run(partial(library.command, *words.split()), LOGINS))
        for words in _OF_HOST
    }


_OF_HOST = (
    "resolve --user alice",
    "adopt",
    "adopt --root /nowhere",
    "explain kernel vm.max_map_count",
    "explain kernel vm.max_map_count --json",
    "explain nowhere nofile",
    "cause pam-user-beats-wildcard",
    "cause nothing-of-ours",
    "check --policy /etc/kernel.json",
    "check --policy /etc/kernel.json --strict --json",
    "check --policy /etc/broken.json",
    "check --user alice --service su --canary never",
)


def record_image(folder: Path) -> Any:
    """Return what provisioning gives in an image that is being built, and its check."""
    node, setting = Node(folder), Setting(programs=("dockerd", "podman"), booted=False)
    words: dict[str, Any] = {"policy": WHOLE, "override": True, "slurm_conf": True}
    steps: dict[str, Callable[[], Any]] = {
        "asked": partial(library.provision, True, **words),
        "present": partial(library.provision, **words),
        "again": partial(library.provision, **words),
        "check": partial(library.check, policy=WHOLE),
        "absent": partial(library.provision, state="absent", **words),
    }
    return {name: settle(node.run(task, setting)) for name, task in steps.items()}


def record_monitor(folder: Path) -> Any:
    """Return what it takes to let a host check itself, what it finds, and the way back."""
    node = Node(folder)
    words: dict[str, Any] = {"policy": CASES["kernel"].policy, "first_boot": True}
    fewer: dict[str, Any] = {
        "policy": CASES["kernel"].policy,
        "textfile_directory": "",
        "drain_on_error": True,
    }
    steps: dict[str, Callable[[], Any]] = {
        "asked": partial(library.monitor, True, **words),
        "present": partial(library.monitor, **words),
        "again": partial(library.monitor, **words),
        "look": look_at_node,
        "fewer": partial(library.monitor, **fewer),
        "absent": partial(library.monitor, state="absent", **words),
        "absent again": partial(library.monitor, state="absent", **words),
        "no folder": partial(library.monitor, **{**words, "textfile_directory": "/nowhere"}),
        "refused": partial(library.monitor, **{**words, "interval": "soon"}),
        "without systemd": partial(library.monitor, policy=words["policy"]),
    }
    told = {}
    for name, task in steps.items():
        setting = Setting(LOGINS.daemons, SLURM_TOOLS, booted=name != "without systemd")
        result = node.run(task, setting)
        for diff in result.get("diff", []):
            if diff["after_header"].endswith(".prom"):
                diff["before"] = ""  # It tells times.
        told[name] = {"told": settle(result), "calls": node.read_calls()}
    return told


def look_at_node() -> Any:
    """Return what the timer's command tells, and the metrics that do not vary."""
    metrics = "/var/lib/prometheus/node-exporter/mlhost-limits.prom"
    first = library.command("monitor", "--metrics", metrics)
    health = [library.tell_slurm(known) for known in ({}, {"SLURM_JOB_ID": "7"})]
    refused = library.command("monitor", "--policy", "/etc/nothing.json", "--exit-zero")
    lines = Path(metrics).read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if line.startswith("mlhost_limits_requirement")]
    return {"monitor": first, "node-health": health, "refused": refused, "metrics": kept}


def record_processes(folder: Path) -> Any:
    """Return what is found of processes by their name, their unit and their user."""
    limits = {"nofile": {"soft": 3000, "max": 4000}, "memlock": "1MiB"}
    chosen = ({"unit": "jobs.service"}, {"user": "alice"}, {"name": "sshd"}, {"name": "none"})
    policy = {"processes": [{**one, "limits": limits} for one in chosen]}
    case, node = CASES["services"], Node(folder)
    told = node.run(partial(library.check, policy=policy), case.before)
    places = ("process:40", "process:50", "process:30", "process:99", "service:ssh.service")
    chains = node.run(lambda: {one: library.explain(one, "nofile") for one in places}, case.before)
    return settle({"check": told, "explain": chains})


def record_worlds(worlds: dict[str, World], folder: Path) -> Any:
    """Return what is told of each host on which something is amiss."""
    told = {}
    for number, (name, world) in enumerate(worlds.items()):
        node = Node(folder / str(number), world.files)
        told[name] = settle(node.run(world.ask, world.setting))
    return told


def record_refusals(folder: Path) -> Any:
    """Return why each run fails that must; ``test_refusals`` looks at them one by one."""
    told = {}
    for number, (name, one) in enumerate(REFUSALS.items()):
        node = Node(folder / str(number), one.files)
        words = {"policy": one.policy, **one.given}
        result = node.run(partial(library.provision, **words), one.setting)
        told[name] = settle(result.get("problems", result))
    return told


RECORDS: dict[str, Record] = {
    "refusals": record_refusals,
    "worlds": partial(record_worlds, WORLDS),
    "jobs": partial(record_worlds, WORLDS_OF_JOBS),
    "logins": partial(record_worlds, WORLDS_OF_LOGINS),
    "rootless": partial(record_worlds, WORLDS_OF_ROOTLESS),
    "units": partial(record_worlds, WORLDS_OF_UNITS),
    "users": partial(record_worlds, WORLDS_OF_USERS),
    "monitor": record_monitor,
    "processes": record_processes,
    **{name: partial(_record_section, name) for name in CASES},
    "trees": record_trees,
    "commands": record_commands,
    "image": record_image,
}
