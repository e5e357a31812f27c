# SPDX-License-Identifier: GPL-3.0-or-later
"""Cut the power of a booted host between the writes of a run, and boot what its disk held."""

from __future__ import annotations

import base64
import json
import shlex
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.host import guest
from tests.host.connection import Host
from tests.host.library import carry
from tests.host.machine import monitor

from .faults import FIGURES
from .world import FOREIGN, TEMPORARY, State

HERE = Path(__file__).parent
PROGRAMS = {name: HERE / name for name in ("one_run.py", "paused_run.py")}
RUN = "cd /opt && PYTHONPATH=/opt PYTHONDONTWRITEBYTECODE=1 python3 {} present"

READ = r"""
import base64, json, os
found = {}
for folder in ("/etc/security", "/etc/sysctl.d", "/etc/docker", "/var/lib/mlhost-limits"):
    for place, dirs, files in os.walk(folder):
        for name in files:
            path = os.path.join(place, name)
            if not os.path.islink(path):
                with open(path, "rb") as file:
                    found[os.path.relpath(path, "/etc")] = base64.b64encode(file.read()).decode()
print(json.dumps(found))
"""


def prepare(host: Host) -> None:
    """Put our library and the files of others on a guest."""
    carry(host, PROGRAMS)
    for name, content in FOREIGN.items():
        target = shlex.quote(f"/etc/{name}")
        encoded = base64.b64encode(content).decode()
        host.ssh(f"mkdir -p $(dirname {target}) && base64 -d > {target}", input=encoded)
    host.ssh("sysctl -q -w vm.max_map_count=65530; sync")


def read_files(host: Host) -> State:
    """Return every file below the folders that a run may write to."""
    text = host.ssh(f"python3 -c {shlex.quote(READ)}").stdout
    return {name: base64.b64decode(content) for name, content in json.loads(text).items()}


def cut(host: Host, folder: Path, every: int) -> Iterator[tuple[str, Path]]:
    """Provision on a guest that is frozen at its steps; yield the disk as it is at each.

    What the guest had not yet sent to its disk is lost, as it is when the power goes.
    """
    words = [*host.ssh_command(), RUN.format("paused_run.py")]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as run:
        assert run.stdin
        assert run.stdout
        points = 0
        for line in run.stdout:
            if not line.startswith("point "):
                assert json.loads(line)["changed"] is True, line
                continue
            points += 1
            if points % every == 0:
                disk = folder / f"{points}.qcow2"
                copy_frozen(host, disk)
                yield f"point {points}, {line[6:].strip()}", disk
            run.stdin.write("\n")
    print(f"power: {points} steps of a run")


def copy_frozen(host: Host, target: Path) -> None:
    """Copy a guest's disk while it stands still; QEMU writes its own caches out before."""
    with monitor(host.folder) as ask:
        ask("stop")
        subprocess.run(["cp", "--sparse=always", host.folder / "disk.qcow2", target], check=True)
        ask("cont")


def judge(host: Host, old: State, new: State) -> Iterator[tuple[str, str]]:
    """Say what is wrong with a host that booted after a power cut, and with the run after that."""
    for name, text in read_files(host).items():
        if TEMPORARY not in name and text not in (old.get(name), new.get(name)):
            yield "files_lost", f"{name} is {text!r}"
    if host.ssh("true", user="alice", check=False).returncode:
        yield "hosts_locked", "alice cannot log in"
    again = host.ssh(RUN.format("one_run.py"), check=False)
    left = read_files(host)
    if again.returncode or {n: t for n, t in left.items() if TEMPORARY not in n} != new:
        yield "runs_not_converged", f"{again.stdout}{again.stderr} {left}"
    yield from (("leftovers", name) for name in left if TEMPORARY in name)


def cut_power(every: int) -> Counter[str]:
    """Boot the disk of a host whose power was cut at every n-th step; return the figures."""
    figures = Counter(dict.fromkeys(FIGURES, 0))
    with tempfile.TemporaryDirectory(prefix="mlhost-power-", dir="/var/tmp") as folder:
        with guest.running() as host:
            prepare(host)
            old = read_files(host)
            disks = list(cut(host, Path(folder), every))
            new = read_files(host)
        for point, disk in disks:
            with guest.running(disk=disk) as host:
                wrong = list(judge(host, old, new))
            print(f"power cut at {point}: {len(wrong)} wrong", flush=True)
            for figure, text in wrong:
                figures[figure] += 1
                print(f"{figure}: power cut at {point}: {text}", flush=True)
    figures["fault_points"] = len(disks)
    return figures
