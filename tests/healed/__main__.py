# SPDX-License-Identifier: GPL-3.0-or-later
"""Raise real DataLoader loops that are at 95 % of a limit, and see that they go on to their end.

Of each kind one runs without help first, and must die. ``python -m tests.healed [KIND ...]``: of
other kinds what was seen before stays.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.host import guest
from tests.host.connection import Host
from tests.host.library import carry

TOP = Path(__file__).parents[2]
FIGURES = TOP / "build" / "healed.json"
RELEASE = "bookworm+torch"
FOLDER = "/var/tmp/loop"
VARIANTS = ("map", "iterable", "persistent", "prefetch")
PATIENCE = 400
POLICY = {
    "sessions": [{"users": ["alice"], "limits": {"nofile": 4096, "nproc": 1000}}],
    "kernel": {"vm.max_map_count": 65530},
    "services": {"units": {"loop.service": {"tasks": 400}}},
    "shared_memory": {"size": "128MiB"},
}
HEAL = "PYTHONPATH=/opt python3 -m mlhost_limits.cli heal --profile none --policy /root/loop.json"
LOW = "sysctl -qw vm.max_map_count={mappings}; mount -o remount,size=24m /dev/shm"
END = (
    "pkill -9 -f [l]oop.py; rm -f /dev/shm/torch_*; systemctl stop loop 2>/dev/null;"
    " systemctl reset-failed loop 2>/dev/null; true"
)


class Kind(NamedTuple):
    """How a loop is started with a limit, and what raises it."""

    start: str
    heal: str


KINDS = {
    "nofile": Kind("ulimit -n 500; {loop}", "--user alice"),
    "mappings": Kind("{loop}", "--user alice"),
    "nproc": Kind("ulimit -u 60; {loop}", "--user alice"),
    "tasks": Kind("systemd-run --quiet --unit loop -p TasksMax=60 --wait {loop}", "--unit loop"),
    "shm": Kind("{loop}", "--user alice"),
}


class Seen(NamedTuple):
    """What became of a loop: how near it was, what was raised, and its end."""

    kind: str
    variant: str
    healed: bool
    near: float
    raised: str
    end: str


def main() -> int:
    """Run all; the status is 0 where every loop died without help and lived with it."""
    with guest.running(RELEASE) as host:
        _prepare(host)
        seen = []
        for kind in sys.argv[1:] or KINDS:
            for variant, heals in [(VARIANTS[0], False), *((one, True) for one in VARIANTS)]:
                seen.append(_run(host, kind, variant, heals))
                print(seen[-1], flush=True)
    return _report(seen)


def _prepare(host: Host) -> None:
    carry(host)
    loop = Path(__file__).with_name("loop.py").read_text()
    policy = shlex.quote(json.dumps(POLICY))
    script = f"install -d -m 1777 {FOLDER}; cat > {FOLDER}/loop.py; echo {policy} > /root/loop.json"
    host.ssh(script, input=loop)


def _run(host: Host, kind: str, variant: str, heals: bool) -> Seen:
    loop = f"env OMP_NUM_THREADS=1 python3 {FOLDER}/loop.py {kind} {variant}"
    host.ssh(f"{END}; rm -f {FOLDER}/{kind}.*; {LOW.format(mappings=3000)}")
    user = "root" if kind == "tasks" else "alice"
    words = [*host.ssh_command(user), KINDS[kind].start.format(loop=loop)]
    child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _pid, taken, limit = _wait(host, f"{kind}.ready").split()
        raised = ""
        if heals:
            raised = host.ssh(f"{HEAL} {KINDS[kind].heal}", check=False).stdout
        host.ssh(f"touch {FOLDER}/{kind}.go")
        end = _wait(host, f"{kind}.end")
    finally:
        child.kill()
        child.wait()
        host.ssh(f"{END}; rm -f /run/mlhost-limits/healed.json")
    return Seen(kind, variant, heals, int(taken) / int(limit), raised, end)


def _wait(host: Host, name: str) -> str:
    """Return what a file holds once it is there; a loop that says nothing is not near, nor ended."""
    loop = f"for i in $(seq {PATIENCE * 2}); do test -s {FOLDER}/{name} && break; sleep 0.5; done"
    return host.ssh(
        f"{loop}; cat {FOLDER}/{name} || echo 0 0 1", timeout=2 * PATIENCE
    ).stdout.strip()


def _report(new: list[Seen]) -> int:
    kinds = {one.kind for one in new}
    kept = json.loads(FIGURES.read_text())["rows"] if FIGURES.exists() else []
    seen = [*(Seen(**row) for row in kept if row["kind"] not in kinds), *new]
    healed = [one for one in seen if one.healed]
    lived = sum(one.end == "whole" and one.near >= 0.95 for one in healed)
    died = sum(one.end != "whole" for one in seen if not one.healed)
    figures = {"loops": len(healed), "lived": lived, "without_help": len(KINDS), "died": died}
    rows = [one._asdict() for one in seen]
    FIGURES.write_text(json.dumps({**figures, "rows": rows}, indent=2) + "\n")
    print(f"healed: {lived} of {len(healed)} loops lived, {died} of {len(KINDS)} died without help")
    return 0 if (lived, died) == (len(healed), len(KINDS)) else 1


if __name__ == "__main__":
    sys.exit(main())
