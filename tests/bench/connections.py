# SPDX-License-Identifier: GPL-3.0-or-later
"""Take what a fleet of real connections costs the controller: ours, the stock way, and a ping."""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from plugins.module_utils.fleet import UNCHECKED

from .network_hosts import HEALTHY, SICK, name_address, network_hosts
from .peers import install_peers
from .playbook import HERE
from .target import Target, native_target

HOSTS = 300
_FORKS = "50"
_CHECK, _DRY = ("ours.yml", "--tags", "check"), ("ours.yml", "--tags", "provision", "--check")
_SIDES = {"ours": _CHECK, "dry": _DRY, "peers": ("peers_facts.yml",), "ping": ("ping.yml",)}
_SICK_SHARE = 20  # One in so many hosts is sick, of each kind.
_PATIENCE = 60  # Seconds that a task of the audit may take on a host.


class _Played(NamedTuple):
    """What a run took: processor seconds, seconds, and the most memory of all its processes."""

    cpu_s: float
    wall_s: float
    peak_mb: float
    output: str


def measure_connections(
    folder: Path,
    collections: str,
    rounds: int,
    hosts: int = HOSTS,
    sides: Sequence[str] = tuple(_SIDES),
) -> dict[str, float]:
    """Return the controller's processor seconds for each host, seconds in all, and memory.

    Must run in a network namespace of its own.
    """
    figures = {"connections": float(hosts), "connections_rounds": float(rounds)}
    with native_target(folder, collections) as target:
        target.controller.run("ours.yml", "--tags", "provision")  # So that a check is green.
        with network_hosts(folder / "tree", [HEALTHY] * hosts):
            figures.update(_measure_healthy(target, collections, rounds, hosts, sides))
        kinds = [_pick_kind(number) for number in range(hosts)]
        with network_hosts(folder / "tree", kinds):
            figures.update(_measure_sick(target, collections, kinds))
    return figures


def _measure_healthy(
    target: Target, collections: str, rounds: int, hosts: int, sides: Sequence[str]
) -> dict[str, float]:
    inventory = _write_inventory(target, hosts)
    runs: dict[str, list[_Played]] = {side: [] for side in sides}
    _play(inventory, collections, _SIDES["ping"])  # Opens the connections.
    for number in range(rounds):
        for side in sides:
            words = _SIDES[side]
            played = _play(inventory, collections, words)
            if played.output.count(" failed=0 ") != hosts:
                raise RuntimeError(f"{words} failed:\n{played.output[-3000:]}")
            runs[side].append(played)
            told = f"{played.cpu_s / hosts:.3f} CPU s a host, {played.peak_mb:.0f} MB"
            print(f"{hosts} hosts, round {number + 1}, {side}: {told}", file=sys.stderr)
    figures = {}
    for side, taken in runs.items():
        figures[f"connections_{side}_cpu_s"] = statistics.median(one.cpu_s for one in taken) / hosts
        figures[f"connections_{side}_s"] = statistics.median(one.wall_s for one in taken)
        figures[f"connections_{side}_peak_mb"] = max(one.peak_mb for one in taken)
    return figures


def _pick_kind(number: int) -> str:
    return dict(enumerate(SICK)).get(number % _SICK_SHARE, HEALTHY)


def _measure_sick(target: Target, collections: str, kinds: Sequence[str]) -> dict[str, float]:
    """Return how the audit fared where some hosts are sick: all must be told, as what they are."""
    inventory = _write_inventory(target, len(kinds))
    policy = json.loads(inventory.read_text())["all"]["vars"]["bench_policy"]
    given = {
        "mlhost_limits_policy": policy,
        "mlhost_limits_profile": "none",
        "mlhost_limits_host_timeout": _PATIENCE,
    }
    words = ("mlhost.limits.audit", "-e", json.dumps(given))
    played = _play(inventory, collections, words)
    written = inventory.parent / "mlhost-limits-audit.json"
    if not written.exists():
        raise RuntimeError(f"the audit wrote nothing:\n{played.output[-3000:]}")
    page = json.loads(written.read_text())
    for number, kind in enumerate(kinds):
        host = page["hosts"][f"node{number:03d}"]
        if (host["status"] != UNCHECKED) != (kind == HEALTHY):
            raise RuntimeError(f"node{number:03d} is {kind}, and told {host['status']}")
    return {
        "connections_sick": float(len(kinds) - list(kinds).count(HEALTHY)),
        "connections_sick_s": played.wall_s,
        "connections_sick_peak_mb": played.peak_mb,
    }


def _write_inventory(target: Target, hosts: int) -> Path:
    """Write an inventory of all hosts, and what ssh must know of them."""
    known = json.loads(target.controller.inventory.read_text())["all"]["hosts"]
    (variables,) = known.values()
    path = target.controller.inventory.with_name("connections.json")
    entries = {f"node{one:03d}": {"ansible_host": name_address(one)} for one in range(hosts)}
    common = "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
    given = {**variables, "ansible_port": 22, "ansible_ssh_common_args": common}
    given.pop("ansible_host")
    path.write_text(json.dumps({"all": {"hosts": entries, "vars": given}}))
    return path


def _play(inventory: Path, collections: str, words: tuple[str, ...]) -> _Played:
    """Run a playbook on all hosts."""
    program = Path(sys.executable).with_name("ansible-playbook")
    playbook, *more = words
    settings = {
        "ANSIBLE_CONFIG": str(HERE / "ansible.cfg"),
        "ANSIBLE_COLLECTIONS_PATH": collections,
        "PWD": str(inventory.parent),  # Where the audit writes.
    }
    path = HERE / playbook if playbook.endswith(".yml") else playbook
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    with tempfile.TemporaryFile("w+") as output, subprocess.Popen(
        [program, "-i", inventory, path, "--forks", _FORKS, *more],
        env={**os.environ, **settings},
        cwd=inventory.parent,
        stdout=output,
        stderr=subprocess.STDOUT,
    ) as process:
        peak = 0.0
        while process.poll() is None:
            peak = max(peak, _read_memory(process.pid))
            time.sleep(1)
        wall = time.monotonic() - start
        output.seek(0)
        told = output.read()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return _Played(spent, wall, peak, told)


def _read_memory(pid: int) -> float:
    """Return the megabytes of a process and all below it; what they share counts once."""
    kibibytes = 0
    with suppress(OSError, IndexError):
        rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        kibibytes = next(int(row.split()[1]) for row in rows if row.startswith("Pss:"))
        for task in Path(f"/proc/{pid}/task").iterdir():
            below = (task / "children").read_text().split()
            kibibytes += int(sum(_read_memory(int(one)) for one in below) * 1e6 / 1024)
    return kibibytes * 1024 / 1e6


def main() -> None:
    """Measure in a network of our own."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.connections", description=__doc__)
    parser.add_argument("--hosts", type=int, default=HOSTS)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--sides", nargs="+", choices=list(_SIDES), default=list(_SIDES))
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    given = parser.parse_args()
    build = Path("build").absolute()
    if given.inside:
        folder = build / "bench" / "connections"
        found = measure_connections(folder, given.inside, given.runs, given.hosts, given.sides)
        print(json.dumps(found, indent=2))
        return
    ours = os.environ.get("ANSIBLE_COLLECTIONS_PATH", str(build / "collections"))
    paths = f"{ours}:{install_peers(build / 'peers')}"
    again = [sys.executable, "-m", "tests.bench.connections", *sys.argv[1:], "--inside", paths]
    script = 'ip link set lo up && exec "$@"'
    os.execvp("unshare", ["unshare", "--net", "sh", "-c", script, "sh", *again])


if __name__ == "__main__":
    main()
