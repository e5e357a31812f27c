"""Before a run on a real host: what it gets in each place, put right by a role, and the run itself."""

# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.host import guest
from tests.host.connection import Host
from tests.host.library import carry

pytestmark = pytest.mark.host

TOP = Path(__file__).parents[3]
FILES = {
    "run.py": TOP / "tests" / "seeds" / "runs" / "pass_descriptors.py",
    "test_cgroup_read.py": TOP / "tests" / "places" / "training" / "test_cgroup_read.py",
}
CHECK = "PYTHONPATH=/opt PYTHONDONTWRITEBYTECODE=1 python3 -m mlhost_limits.cli preflight"
BUSYBOX = "tar -C /bin -c busybox | docker import - tiny"
LIBRARIES = "-v /usr:/usr:ro -v /lib:/lib:ro -v /lib64:/lib64:ro -v /opt:/opt:ro"


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with guest.running("bookworm+slurm") as fresh:
        carry(fresh, FILES)
        fresh.run(BUSYBOX)
        yield fresh


class Judged(NamedTuple):
    """How a check of a run ended: what falls short by its item, and how many workers fit."""

    status: int
    short: Mapping[str, str]
    printed: str


def check(host: Host, *words: object) -> Judged:
    done = host.run(f"{CHECK} {' '.join(map(str, words))} --json", check=False, timeout=300)
    findings = json.loads(done.stdout)["findings"]
    short = {one["item"]: one["observed"] for one in findings if one["status"] == "fail"}
    return Judged(done.returncode, short, done.stdout)


# 2 workers, 4 batches ahead, 32 tensors each: 211 descriptors, 11.25 MiB of /dev/shm, 140 MiB.
RUN = "--profile none --workers 2 --prefetch 4 --tensors-per-batch 32 --batch-size 1MiB"
HERE = "--only descriptors --only shared_memory --only memory"
ONLY = f"{HERE} --only cpus"  # The guest has one processor, and the run has two workers.
TRAIN = "python3 /opt/run.py 2 4 32 11796480"


class Place(NamedTuple):
    """Where a run is to start, made too small for it.

    ``train`` runs it there, and dies; nothing where only the check can tell.
    """

    name: str
    place: str
    make: str
    unmake: str
    short: frozenset[str]
    train: str = ""


def name_limits(unit: str) -> str:
    return (
        f"mkdir -p /run/systemd/system/{unit}.d && printf '[Service]\\nLimitNOFILE=128\\n'"
        f" > /run/systemd/system/{unit}.d/low.conf && systemctl daemon-reload"
    )


PLACES = (
    Place(
        "a session of alice",
        "session:alice@sshd",
        "echo 'alice - nofile 128' > /etc/security/limits.d/low.conf"
        " && systemctl set-property --runtime user-1000.slice MemoryMax=100M CPUQuota=50%",
        "rm /etc/security/limits.d/low.conf; systemctl revert user-1000.slice",
        frozenset({"nofile", "memory", "cpus", "workers"}),
        f"su -l alice -c '{TRAIN}'",
    ),
    Place(
        "a unit",
        "service:train.service",
        "systemd-run --unit=train -p LimitNOFILE=128 -p MemoryMax=100M -p CPUQuota=50%"
        " -p AllowedCPUs=0 sleep infinity",
        "systemctl stop train",
        frozenset({"nofile", "memory", "cpus", "workers"}),
        f"systemd-run -q --pipe --wait -p LimitNOFILE=128 {TRAIN}",
    ),
    Place(
        "a container",
        "container:docker/train",
        "docker run -d --name train --network none --ulimit nofile=128:128 --memory 100m"
        " --cpus 0.5 --shm-size 8m tiny /busybox sleep 3600",
        "docker rm -f train",
        frozenset({"nofile", "memory", "cpus", "free", "workers"}),
        f"docker run --rm --network none --ulimit nofile=128:128 {LIBRARIES} tiny /usr/bin/{TRAIN}",
    ),
    Place(
        "a job of Slurm",
        "job:slurm",
        f"{name_limits('slurmd.service')} && systemctl restart slurmd && sleep 2",
        "rm -r /run/systemd/system/slurmd.service.d; systemctl daemon-reload;"
        " systemctl restart slurmd; sleep 2",
        frozenset({"nofile", "workers"}),
        f"su -l alice -c 'cd /tmp && srun --immediate=60 --time=1 --mem=64M {TRAIN}'",
    ),
)


@pytest.mark.parametrize("asked", PLACES, ids=[one.name for one in PLACES])
def test_what_is_short_in_a_place_is_found_there_and_nowhere_else(host: Host, asked: Place) -> None:
    host.run(asked.make, timeout=300)
    try:
        there = check(host, RUN, ONLY, f"--place {asked.place}")
        here = check(host, RUN, HERE)
        died = host.run(f"cd /tmp; {asked.train} 2>&1", check=False, timeout=300)
    finally:
        host.run(asked.unmake, check=False, timeout=300)
    assert (there.status, frozenset(there.short)) == (1, asked.short), there.printed
    assert there.short["nofile"] == "128"
    assert (here.status, here.short) == (0, {}), here.printed
    assert "[Errno 24] Too many open files" in died.stdout
    assert "trained" in host.run(TRAIN).stdout


def test_a_container_that_is_not_there_yet_has_dockers_shared_memory(host: Host) -> None:
    run = f"{RUN} --only shared_memory".replace("1MiB", "8MiB")
    judged = check(host, run, "--place new-container:docker")
    assert judged.status == 1, judged.printed
    assert judged.short["shm_size"] == "64MiB"
    assert check(host, run).status == 0


def include(host: Host, role: str, **variables: object) -> None:
    """Run a role of the installed collection, as a play would."""
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("ansible")),
            *(host.name, "-i", str(host.inventory), "-m", "include_role"),
            *("-a", f"name=mlhost.limits.{role}", "-e", json.dumps(variables)),
        ],
        env={
            "ANSIBLE_COLLECTIONS_PATH": str(TOP / "build" / "collections"),
            "ANSIBLE_PIPELINING": "1",
            **os.environ,
        },
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_descriptors_of_a_login_are_put_right_by_the_role_sessions(host: Host) -> None:
    asked = "--profile dataloader --workers 4 --prefetch 16 --tensors-per-batch 24 --as-user alice"
    train = "python3 /opt/run.py 4 16 24"
    before = check(host, asked)
    died = host.ssh(train, user="alice", check=False)
    include(host, "sessions", mlhost_limits_profile="dataloader")
    after = check(host, asked)
    trained = host.ssh(train, user="alice", check=False)
    assert (before.status, before.short["nofile"]) == (1, "1024"), before.printed
    assert died.returncode == 1
    assert "[Errno 24] Too many open files" in died.stderr
    assert after.status == 0, after.printed
    assert (trained.returncode, trained.stdout[:7]) == (0, "trained"), trained.stderr


LONE = {"mlhost_limits_profile": "none", "mlhost_limits_override": True}


def test_shared_memory_is_put_right_by_the_role_host(host: Host) -> None:
    """A line of somebody in fstab keeps it small, and is set aside when that is allowed."""
    small = "tmpfs /dev/shm tmpfs size=64m 0 0"
    host.run(f"echo '{small}' >> /etc/fstab && mount -o remount,size=64m /dev/shm")
    asked = "--profile none --workers 2 --prefetch 4 --tensors-per-batch 8 --batch-size 9MiB"
    only, train = "--only shared_memory", f"python3 /opt/run.py 2 4 8 {90 * 2**20}"
    before, died = check(host, asked, only), host.run(train, check=False)
    policy = {"shared_memory": {"size": "128MiB"}}
    include(host, "host", **{**LONE, "mlhost_limits_policy": policy})
    after, trained = check(host, asked, only), host.run(train, check=False)
    assert (before.status, set(before.short)) == (1, {"free", "workers"}), before.printed
    assert "/etc/fstab" in before.printed
    assert "[Errno 28] No space left on device" in died.stderr
    assert after.status == 0, after.printed
    assert trained.returncode == 0, trained.stderr


def find_library(name: str) -> Path:
    """Return a module that runs these tests: its folder, or its one file."""
    spec = find_spec(name)
    path = Path((spec and spec.origin) or "")
    return path.parent if path.name == "__init__.py" else path


def test_bounds_of_cgroups_of_version_2_are_read_up_to_the_root(host: Host) -> None:
    """The tests of the reader run again on the guest, whose kernel has nothing but version 2."""
    names = ("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments")
    paths = [find_library(name) for name in names]
    carry(host, {path.name: path for path in paths})
    done = host.run(
        "cd /opt && PYTHONPATH=/opt PYTHONDONTWRITEBYTECODE=1 python3 -m pytest -q --noconftest"
        " -p no:cacheprovider -rs test_cgroup_read.py",
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "skipped" not in done.stdout
