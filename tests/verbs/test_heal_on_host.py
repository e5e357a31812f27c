# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs at 95 % of a limit are raised while they run, and go on to their end; then it is put back."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.host import guest
from tests.host.connection import Host
from tests.host.library import carry

pytestmark = pytest.mark.host

HEAL = "PYTHONPATH=/opt python3 -m mlhost_limits.cli heal"
POLICY = {
    "sessions": [{"users": ["alice"], "limits": {"nofile": 4096, "memlock": "unlimited"}}],
    "kernel": {"vm.max_map_count": 65530},
    "services": {"units": {"climb.service": {"nofile": 4096, "tasks": 400}}},
    "containers": {"docker": {"limits": {"nofile": 4096}, "shm_size": "128MiB", "tasks": 300}},
    "shared_memory": {"size": "64MiB"},
}
FOLDER = "/var/tmp/climb"
CLIMB = f"python3 {FOLDER}/climb.py"


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with guest.running() as running:
        climb = Path(__file__).with_name("on_guest") / "climb.py"
        carry(running)
        running.run(
            f"install -d -m 1777 {FOLDER}; cat > {FOLDER}/climb.py; "
            f"echo {shlex.quote(json.dumps(POLICY))} > /root/policy.json",
            input=climb.read_text(),
        )
        yield running


def heal(host: Host, words: str, status: int = 0) -> str:
    profile = "" if "--undo" in words else "--profile none --policy /root/policy.json"
    done = host.run(f"{HEAL} {profile} {words}", check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return str(done.stdout + done.stderr)


def flatten(told: str) -> list[str]:
    """Return what was raised, or would be, without how it was broken into lines."""
    return [word for word in told.split() if word not in ("would", "raise", "raised")]


@contextmanager
def climbing(host: Host, kind: str, start: str) -> Iterator[int]:
    """Start a run of alice's or of a unit, and yield its process once it is near its limit."""
    host.run(f"rm -f {FOLDER}/{kind}.*")
    user = "root" if start.startswith("systemd-run") else "alice"
    child = subprocess.Popen([*host.ssh_command(user), start], stdin=subprocess.DEVNULL)
    try:
        wait = f"for i in $(seq 100); do test -s {FOLDER}/{kind}.ready && break; sleep 0.1; done"
        yield int(host.run(f"{wait}; cat {FOLDER}/{kind}.ready").stdout)
    finally:
        child.kill()
        child.wait()


def go_on(host: Host, kind: str) -> str:
    script = f"touch {FOLDER}/{kind}.go; for i in $(seq 200); do test -s {FOLDER}/{kind}.end"
    return host.run(f"{script} && break; sleep 0.1; done; cat {FOLDER}/{kind}.end").stdout


RUNS = {
    "nofile": (f"ulimit -n 200; {CLIMB} nofile 185 2000", "--user alice"),
    "memlock": (f"ulimit -l 2048; {CLIMB} memlock 30 600", "--pid {pid}"),
    "mappings": (f"{CLIMB} mappings 500 5000", "--pid {pid}"),
    "tasks": (
        f"systemd-run --quiet --unit climb -p TasksMax=40 --wait {CLIMB} tasks 36 300",
        "--unit climb",
    ),
    "shm": (f"{CLIMB} shm 19 50", "--user alice"),
}
LOW = "sysctl -qw vm.max_map_count=700; mount -o remount,size=20m /dev/shm"
END = (
    "rm -f /dev/shm/climb-*; systemctl stop climb 2>/dev/null; systemctl reset-failed climb || true"
)


@pytest.mark.parametrize("kind", RUNS)
def test_a_run_without_help_dies(host: Host, kind: str) -> None:
    host.run(LOW)
    with climbing(host, kind, RUNS[kind][0]):
        assert go_on(host, kind) != "whole"
    host.run(END)


@pytest.mark.parametrize("kind", RUNS)
def test_a_run_near_its_limit_goes_on_and_all_is_put_back(host: Host, kind: str) -> None:
    host.run(LOW)
    start, who = RUNS[kind]
    with climbing(host, kind, start) as pid:
        would = heal(host, f"--check {who.format(pid=pid)}")
        raised = heal(host, who.format(pid=pid))
        assert flatten(would) == flatten(raised)
        print(raised)
        assert go_on(host, kind) == "whole"
    host.run(END)
    print(heal(host, "--undo"))
    now = host.run("sysctl -n vm.max_map_count; df --output=size -m /dev/shm | tail -1").stdout
    assert now.split() == ["700", "20"]


def test_a_container_is_raised_from_outside(host: Host) -> None:
    host.run(
        "tar -C /bin -c busybox | docker import - tiny >/dev/null; docker run -d --name run"
        " --ulimit nofile=100:100 --pids-limit 50 tiny /busybox sleep 600 >/dev/null"
    )
    try:
        print(heal(host, "--container run --diff"))
        pid = host.run("docker inspect -f '{{.State.Pid}}' run").stdout.strip()
        seen = host.run(
            f"grep files /proc/{pid}/limits; docker inspect -f '{{{{.HostConfig.PidsLimit}}}}' run;"
            " docker exec run /busybox df -m /dev/shm"
        ).stdout.split()
        assert seen[3:5] == ["4096", "4096"]
        assert seen[6] == "300"
        assert "128" in seen[-6:]
        print(heal(host, "--undo"))
        seen = host.run(
            f"grep files /proc/{pid}/limits; docker exec run /busybox df -m /dev/shm"
        ).stdout.split()
        assert seen[3:5] == ["100", "100"]
        assert "64" in seen[-6:]
    finally:
        host.run("docker rm -f run")


def test_a_cgroup_of_a_container_s_name_gains_a_user_nothing(host: Host) -> None:
    """A user may call a cgroup like a container of Docker, whose policy asks for more."""
    host.run("loginctl enable-linger alice")
    script = f"""
        g=/sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup)/docker-$(printf %064d 7).scope
        mkdir $g; echo $$ > $g/cgroup.procs; ulimit -n 90; echo $$ > {FOLDER}/forged; sleep 600
    """
    host.run(f"cat > {FOLDER}/forge.sh", input=script)
    host.ssh(
        "export XDG_RUNTIME_DIR=/run/user/1000; systemd-run --user --quiet --unit forge"
        f" -p Delegate=yes sh {FOLDER}/forge.sh; sleep 2",
        user="alice",
    )
    pid = int(host.run(f"cat {FOLDER}/forged").stdout)
    assert "docker-" in host.run(f"cat /proc/{pid}/cgroup").stdout
    heal(host, "--all", status=0)
    assert host.run(f"grep files /proc/{pid}/limits").stdout.split()[3] == "90"
    told = heal(host, f"--pid {pid}", status=2)
    assert "place that can be proved" in told
    heal(host, "--undo")


def test_nobody_raises_what_is_another_s(host: Host) -> None:
    host.run("cp /root/policy.json /tmp; chmod 644 /tmp/policy.json")
    done = host.ssh(
        f"{HEAL} --pid 1; {HEAL} --unit ssh; {HEAL} --user root; {HEAL} --undo",
        user="alice",
        check=False,
    )
    told = done.stderr.splitlines()
    assert [line for line in told if "only root" in line] == told
    assert len(told) == 4


def test_the_answer_is_data_for_programs(host: Host) -> None:
    told: dict[str, Any] = json.loads(heal(host, "--all --check --json"))
    assert told["format"] == "mlhost.limits/heal"
    assert told["processes"] > 10
    assert all(one["after"] >= one["before"] for one in told["changes"])
