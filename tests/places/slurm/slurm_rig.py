# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster of one node in namespaces: what Slurm makes of slurm.conf, and what its jobs have.

Must run in mount, process, network and host name namespaces of its own. No job of anybody runs here.
"""

from __future__ import annotations

import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

if find_spec("mlhost_limits") is None:
    from tests.conftest import load_library

    load_library()

from mlhost_limits.core.values import ITEMS, UNLIMITED, Rlimit, parse_proc_limits
from mlhost_limits.slurm.model import JobFacts, predict_job
from mlhost_limits.slurm.slurm_conf import (
    EXCEPT,
    PROPAGATE,
    USE_PAM,
    parse_slurm_conf,
    read_propagation,
    read_use_pam,
)

from tests.oracle.userland import mount, mount_root, run_inside
from tests.places.slurm.slurm_files import make_conf

CONF = "/etc/slurm/slurm.conf"
BASE = """\
ClusterName=Oracle
SlurmctldHost=node1(10.9.9.9)
SlurmUser=root
AuthType=auth/none
CredType=cred/none
StateSaveLocation=/var/ctld
SlurmdSpoolDir=/var/d
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=/var/ctld.log
SlurmdLogFile=/var/d.log
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
NodeName=node1 NodeAddr=10.9.9.9 CPUs=2 RealMemory=1000
PartitionName=debug Nodes=ALL Default=YES State=UP
"""
FILES = {
    "passwd": "root:x:0:0::/root:/bin/sh\n",
    "group": "root:x:0:\n",
    "hosts": "127.0.0.1 localhost\n10.9.9.9 node1\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
SHOWN = (PROPAGATE, EXCEPT, USE_PAM, "MailDomain", "TaskProlog", "TaskEpilog")
"""Limits that Slurm sets itself, or that it does not carry."""

TRIED = {
    "nofile": (512, 1000, 4096, 15000),
    "memlock": (65536, 2**20, 2**23),
    "stack": (2**20, 2**23, 2**26, UNLIMITED),
    "core": (0, 2**20, UNLIMITED),
    "data": (2**31, UNLIMITED),
    "as": (2**33, UNLIMITED),
    "fsize": (2**30, UNLIMITED),
    "nproc": (5000, 20000),
    "cpu": (10000, UNLIMITED),
}
ENOUGH = 10


class Mismatch(NamedTuple):
    """A case that differs: its files, or its limits, and how."""

    case: dict[str, str]
    differences: list[str]


class Rig:
    """The cluster, and what it is asked."""

    def __init__(self, tree: Path, root: Path) -> None:
        self.root = root
        mount_root(tree, root, ())
        mount("--rbind", "/sys", root / "sys")  # slurmd counts processors, and wants cgroups.
        for name in ("ctld", "d"):
            (root / "var" / name).mkdir()
        for name, text in FILES.items():
            (root / "etc" / name).write_text(text)
        for name in ("urandom", "zero"):
            os.mknod(root / "dev" / name, 0o666 | 0o020000, os.stat(f"/dev/{name}").st_rdev)
        subprocess.run(["hostname", "node1"], check=True)
        # A host whose only address is 127.0.0.1 counts as one without a network.
        for words in (["link", "set", "lo", "up"], ["addr", "add", "10.9.9.9/24", "dev", "lo"]):
            subprocess.run(["ip", *words], check=True)
        self.write({CONF: BASE})
        self.run("slurmctld-wlm")
        self.wait(lambda: "UP" in self.run("scontrol", "ping").stdout)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return run_inside(self.root, list(words))

    def wait(self, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 60
        while not done():
            if time.monotonic() > deadline:
                raise TimeoutError((self.root / "var/ctld.log").read_text()[-2000:])
            time.sleep(0.1)

    def write(self, files: dict[str, str]) -> None:
        folder = self.root / "etc/slurm"
        folder.mkdir(exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        for path, text in files.items():
            (self.root / path[1:]).write_bytes(text.encode("latin-1"))

    def compare_conf(self, files: dict[str, str]) -> list[str]:
        """Return where what Slurm reads of files differs from what we read."""
        self.write(files)
        expected = predict_shown(files)
        done = self.run("scontrol", "reconfigure")
        refused = "fatal:" in done.stderr
        if expected is None or refused:
            return [] if refused == (expected is None) else [f"refused: {refused}: {done.stderr}"]
        shown = {
            key.lower(): value
            for key, value in re.findall(
                r"^(\w+) *= (.*)$", self.run("scontrol", "show", "config").stdout, re.MULTILINE
            )
        }
        return [
            f"{key}: predicted {value!r}, got {shown[key.lower()].strip()!r}"
            for key, value in expected.items()
            if shown[key.lower()].strip() != value
        ]

    def restart_slurmd(self, limits: dict[str, Rlimit]) -> dict[str, Rlimit]:
        """Start slurmd anew with these limits; return those that it then has."""
        self.stop_slurmd()

        def enter() -> None:
            os.chroot(self.root)
            os.chdir("/")
            set_limits(limits)

        words = ["/usr/sbin/slurmd-wlm", "-d", "/usr/sbin/slurmstepd-wlm"]
        done = subprocess.run(words, preexec_fn=enter, stdout=subprocess.DEVNULL, check=False)
        if done.returncode:
            raise RuntimeError((self.root / "var/d.log").read_text()[-2000:])
        self.wait(lambda: (self.root / "run/slurmd.pid").exists())
        self.run("scontrol", "update", "nodename=node1", "state=resume")
        self.wait(lambda: self.run("sinfo", "-h", "-o", "%T").stdout.strip() == "idle")
        pid = (self.root / "run/slurmd.pid").read_text().strip()
        return dict(parse_proc_limits((self.root / "proc" / pid / "limits").read_text()))

    def stop_slurmd(self) -> None:
        path = self.root / "run/slurmd.pid"
        if path.exists():
            pid = int(path.read_text())
            os.kill(pid, signal.SIGKILL)
            path.unlink()

    def compare_job(self, slurmd: dict[str, Rlimit], login: dict[str, int], line: str) -> list[str]:
        """Return where a job's limits differ from what we predict."""
        text = f"{BASE}{line}\n"
        self.write({CONF: text})
        self.run("scontrol", "reconfigure")
        mine = {
            name: Rlimit(*resource.getrlimit(ITEMS[name].resource or 0)) for name in ITEMS_TRIED
        }
        pairs = {
            name: Rlimit(min(soft, own(mine[name])), own(mine[name]))
            for name, soft in login.items()
        }

        def enter() -> None:
            os.chroot(self.root)
            os.chdir("/")
            set_limits(pairs)

        words = [
            "/usr/bin/srun",
            "--quiet",
            "--immediate=20",
            "-n1",
            "/bin/cat",
            "/proc/self/limits",
        ]
        done = subprocess.run(words, preexec_fn=enter, capture_output=True, text=True, check=False)
        if "Max" not in done.stdout:
            return [f"no job: {done.stderr}"]
        got = parse_proc_limits(done.stdout)
        propagation = read_propagation(parse_slurm_conf({CONF: text}, CONF))
        facts = JobFacts(slurmd, {**slurmd, **pairs}, "", propagation)
        told = {name: predict_job(name, facts) for name in pairs}
        return [
            f"{name}: slurmd {slurmd[name]}, login {pairs[name]}: predicted {pair}, got {got[name]}"
            for name, pair in told.items()
            if got[name] != pair
        ]


ITEMS_TRIED = tuple(TRIED)


def own(pair: Rlimit) -> int:
    return int(UNLIMITED if pair.hard == resource.RLIM_INFINITY else pair.hard)


def set_limits(limits: dict[str, Rlimit]) -> None:
    for name, pair in limits.items():
        both = [resource.RLIM_INFINITY if value == UNLIMITED else value for value in pair]
        resource.setrlimit(ITEMS[name].resource or 0, (both[0], both[1]))


def predict_shown(files: dict[str, str]) -> dict[str, str] | None:
    """Return what scontrol will show; ``None`` where Slurm refuses the files."""
    conf = parse_slurm_conf(files, CONF)
    try:
        read_propagation(conf)
        pam = read_use_pam(conf)
    except ValueError:
        return None
    if conf.faults:
        return None
    lines = {key: conf.find(key) for key in SHOWN}
    told = {
        key: "(null)" if line is None else str(line.value).strip() for key, line in lines.items()
    }
    told[USE_PAM] = "Yes" if pam else "No"
    if lines[EXCEPT]:
        told[PROPAGATE] = "(null)"
    elif not lines[PROPAGATE]:
        told[PROPAGATE] = "ALL"
    return told


def make_limits(rng: random.Random) -> dict[str, Rlimit]:
    """Return limits for slurmd: some hard ones low, and soft ones below them."""
    chosen = {}
    for name in rng.sample(ITEMS_TRIED, 4):
        hard = min(
            rng.choice(TRIED[name]), own(Rlimit(*resource.getrlimit(ITEMS[name].resource or 0)))
        )
        chosen[name] = Rlimit(min(rng.choice(TRIED[name]), hard), hard)
    return chosen


def make_line(rng: random.Random) -> str:
    """Return a line that says what jobs take over, or none."""
    names = [name.upper() for name in (*TRIED, "rss")]
    some = ",".join(rng.sample(names, rng.randint(1, 4)))
    value = rng.choice((some, some, some, "ALL", "NONE"))
    return rng.choice(("", f"{PROPAGATE}={value}", f"{EXCEPT}={value}"))


def main(tree: str, root: str, confs: str, daemons: str, seed: str) -> None:
    """Print as JSON how much was tried, and the cases that differ."""
    rig, rng = Rig(Path(tree), Path(root)), random.Random(int(seed))
    found: list[Mismatch] = []
    compared = refused = jobs = 0
    for _ in range(int(confs)):
        files = {path: BASE * (path == CONF) + text for path, text in make_conf(rng).items()}
        refused += predict_shown(files) is None
        differences = rig.compare_conf(files)
        compared += 1
        if differences:
            found.append(Mismatch(files, differences))
        if len(found) >= ENOUGH:
            break
    rig.write({CONF: BASE})
    rig.run("scontrol", "reconfigure")
    for _ in range(int(daemons)):
        slurmd = rig.restart_slurmd(make_limits(rng))
        for _ in range(6):
            login = {name: rng.choice(values) for name, values in TRIED.items()}
            line = make_line(rng)
            jobs += 1
            differences = rig.compare_job(slurmd, login, line)
            if differences:
                found.append(Mismatch({CONF: line}, differences))
    cases = {"confs": compared, "refused": refused, "jobs": jobs}
    json.dump({**cases, "mismatches": found[:ENOUGH]}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
