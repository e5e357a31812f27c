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
import time
from pathlib import Path

from .peers import install_peers
from .playbook import HERE
from .target import Target, native_target

HOSTS = 200
_FORKS = "20"
_SIDES = {
    "ours": ("ours.yml", "--tags", "check"),
    "peers": ("peers_facts.yml",),
    "ping": ("ping.yml",),
}


def measure_connections(
    folder: Path, collections: str, rounds: int, hosts: int = HOSTS
) -> dict[str, float]:
    """Return processor seconds of the controller for each host, and seconds from start to end.

    Every host is an address of one sshd, with a connection of its own. Must run where there is no
    network but the loopback device, because that sshd listens to all of its addresses.
    """
    addresses = [f"127.0.{1 + number // 200}.{1 + number % 200}" for number in range(hosts)]
    runs: dict[str, list[tuple[float, float]]] = {side: [] for side in _SIDES}
    with native_target(folder, collections, ["0.0.0.0"]) as target:
        target.controller.run("ours.yml", "--tags", "provision")  # So that a check is green.
        inventory = _write_inventory(target, addresses)
        _play(inventory, collections, _SIDES["ping"], hosts)  # Opens the connections.
        for number in range(rounds):
            for side, words in _SIDES.items():
                runs[side].append(_play(inventory, collections, words, hosts))
                told = f"{side}: {runs[side][-1][0]:.3f} CPU s a host"
                print(f"{hosts} connections, round {number + 1}, {told}", file=sys.stderr)
    figures = {"connections": float(hosts), "connections_rounds": float(rounds)}
    for side, taken in runs.items():
        figures[f"connections_{side}_cpu_s"] = statistics.median(cpu for cpu, _wall in taken)
        figures[f"connections_{side}_s"] = statistics.median(wall for _cpu, wall in taken)
    return figures


def _write_inventory(target: Target, addresses: list[str]) -> Path:
    """Write an inventory of all addresses, and what ssh must know of them."""
    hosts = json.loads(target.controller.inventory.read_text())["all"]["hosts"]
    (variables,) = hosts.values()
    path = target.controller.inventory.with_name("connections.json")
    entries = {
        f"node{number:03d}": {"ansible_host": address} for number, address in enumerate(addresses)
    }
    common = "-o HostKeyAlias=native -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
    given = {**variables, "ansible_ssh_common_args": common}
    given.pop("ansible_host")
    path.write_text(json.dumps({"all": {"hosts": entries, "vars": given}}))
    return path


def _play(
    inventory: Path, collections: str, words: tuple[str, ...], hosts: int
) -> tuple[float, float]:
    """Run a playbook on all hosts; return its processor seconds for each, and how long it took."""
    program = Path(sys.executable).with_name("ansible-playbook")
    playbook, *more = words
    settings = {
        "ANSIBLE_CONFIG": str(HERE / "ansible.cfg"),
        "ANSIBLE_COLLECTIONS_PATH": collections,
    }
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(
        [program, "-i", inventory, HERE / playbook, "--forks", _FORKS, *more],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode or done.stdout.count(" failed=0 ") != hosts:
        raise RuntimeError(f"{playbook} failed:\n{done.stdout[-3000:]}{done.stderr[-1000:]}")
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent / hosts, time.monotonic() - start


def main() -> None:
    """Measure in a network of our own."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.connections", description=__doc__)
    parser.add_argument("--hosts", type=int, default=HOSTS)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    given = parser.parse_args()
    build = Path("build").absolute()
    if given.inside:
        folder = build / "bench" / "connections"
        found = measure_connections(folder, given.inside, given.runs, given.hosts)
        print(json.dumps(found, indent=2))
        return
    ours = os.environ.get("ANSIBLE_COLLECTIONS_PATH", str(build / "collections"))
    paths = f"{ours}:{install_peers(build / 'peers')}"
    again = [sys.executable, "-m", "tests.bench.connections", *sys.argv[1:], "--inside", paths]
    script = 'ip link set lo up && exec "$@"'
    os.execvp("unshare", ["unshare", "--net", "sh", "-c", script, "sh", *again])


if __name__ == "__main__":
    main()
