# SPDX-License-Identifier: GPL-3.0-or-later
"""Bad input and broken hosts, through the real modules: one sentence says it, nothing is written."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.host import guest
from tests.host.connection import Host

pytestmark = pytest.mark.host

REPOSITORY = Path(__file__).parents[2]
INSTALLED = REPOSITORY / "build" / "collections"
_RESULT = re.compile(r"^\S+ \| (?:SUCCESS|CHANGED|FAILED!) => ", re.MULTILINE)

# Everything in /etc, what is kept of it, and every running value that a run may write.
FINGERPRINT = r"""
mkdir -p /var/lib/mlhost-limits
find /etc /var/lib/mlhost-limits -xdev -printf '%p %M %u:%g %l\n'
find /etc /var/lib/mlhost-limits -xdev -type f -printf '%p is file %i of %T@\n' -exec sha256sum {} +
sysctl fs.file-max fs.nr_open vm.max_map_count
systemctl show -p ActiveState docker
"""

SEED = {
    "runtimes": {"nvidia": {"path": "/usr/bin/runc"}},
    "labels": ["proxy=http://fleet:s3cret-seed@proxy.example:3128", "api_token=t0ken-seed"],
}
PREPARE = f"""
cat > /etc/docker/daemon.json <<'END'
{json.dumps(SEED, indent=4)}
END
useradd --shell /usr/sbin/nologin robot
useradd --shell /bin/bash --expiredate 1 gone
systemctl restart docker
"""


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with guest.running() as fresh:
        fresh.run(PREPARE)
        yield fresh


class Run(NamedTuple):
    """What a module returned, and all that Ansible printed."""

    result: dict[str, Any]
    failed: bool
    said: str


def run_module(host: Host, module: str, options: dict[str, object], *words: str) -> Run:
    """Run a module of the installed collection on the host, as a person would by hand."""
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("ansible")),
            *(host.name, "-i", str(host.inventory)),
            *("-m", f"mlhost.limits.{module}"),
            *("-a", json.dumps({**options, "display": "never"}), *words),
        ],
        env={"ANSIBLE_COLLECTIONS_PATH": str(INSTALLED), "ANSIBLE_PIPELINING": "1", **os.environ},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    said = done.stdout + done.stderr
    start = _RESULT.search(done.stdout)
    assert start, said
    result = json.JSONDecoder().raw_decode(done.stdout, start.end())[0]
    return Run(result, bool(done.returncode), said)


def take_fingerprint(host: Host, first: str = "true", then: str = "true") -> set[str]:
    """Return the state of all that may be written, in one login with what is done around it."""
    return set(host.run(f"{first} || exit\n{FINGERPRINT}\n{then}").stdout.splitlines())


class Fault(NamedTuple):
    """A reason to refuse: how the host gets into that state and out of it.

    ``says`` is a pattern of the whole message.
    """

    name: str
    says: str
    options: dict[str, object] = {}
    make: str = "true"
    unmake: str = "true"
    words: tuple[str, ...] = ()


AS_ALICE = ("-e", "ansible_user=alice")
DOCKER_UNIT = "/etc/systemd/system/docker.service.d"


def docker_unit(*lines: str) -> dict[str, Any]:
    """Return how a drop-in of docker.service is made and unmade."""
    words = " ".join(shlex.quote(line) for line in ("[Service]", *lines))
    write = f"mkdir {DOCKER_UNIT} && printf '%s\\n' {words} > {DOCKER_UNIT}/site.conf"
    return {
        "make": f"{write} && systemctl daemon-reload",
        "unmake": f"rm -r {DOCKER_UNIT} && systemctl daemon-reload",
    }


# utmp(5) says that alice is at a terminal.
LOGGED_IN = (
    'import struct; open("/run/utmp", "ab").write(struct.pack("<h2xi32s4s32s308x",'
    ' 7, 1, b"pts/9", b"9", b"alice"))'
)

FAULTS = [
    Fault(
        "an empty policy",
        "policy: is empty, so nothing would be required; leave it out",
        {"policy": {}},
    ),
    Fault(
        "a list for a policy",
        "argument 'policy' is of type list and we were unable to convert to dict:"
        " <class 'list'> cannot be converted to a dict",
        {"policy": ["nofile"]},
    ),
    Fault(
        "every wrong key and value at once",
        r"sessions\[0\]\.limits\.nofile\.sfot: is unknown; accepted are soft, hard, max;"
        r" sessions\[0\]\.limits\.nofile: soft 9 is above hard 5;"
        " containers.docker.limits.memlock: 'lots' is not a limit: accepted are a whole number"
        r" \(with B, KiB, MiB, GiB, TiB\) or 'unlimited'",
        {
            "policy": {
                "sessions": [
                    {"users": ["*"], "limits": {"nofile": {"sfot": 3, "soft": 9, "hard": 5}}}
                ],
                "containers": {"docker": {"limits": {"memlock": "lots"}}},
            }
        },
    ),
    Fault(
        "nofile above fs.nr_open",
        r"sessions\[0\]\.limits\.nofile: hard 2000000 is above fs.nr_open 1048576, so logins would be"
        " refused or keep their old limit; lower it or raise kernel.fs.nr_open",
        {
            "profile": "none",
            "policy": {
                "sessions": [
                    {"users": ["alice"], "limits": {"nofile": {"soft": 65536, "hard": 2000000}}}
                ]
            },
        },
    ),
    Fault(
        "a daemon.json that is not JSON",
        "/etc/docker/daemon.json:3:1: Expecting a property name in double quotes",
        make="cp -a /etc/docker/daemon.json /root"
        " && printf '{\\n  \"debug\": true,\\n}\\n' > /etc/docker/daemon.json",
        unmake="cp -a /root/daemon.json /etc/docker/daemon.json",
    ),
    Fault(
        "a default that is also a flag of the unit",
        f"{DOCKER_UNIT}/site.conf:3: --default-ulimit and default-ulimits in"
        " /etc/docker/daemon.json exclude each other, dockerd does not start with both",
        **docker_unit(
            "ExecStart=", "ExecStart=/usr/sbin/dockerd -H fd:// --default-ulimit nofile=1024:4096"
        ),
    ),
    Fault(
        "a daemon that does not start with the new configuration",
        r"docker\.service did not restart: .*journalctl -u docker\.service; every file was put back",
        **docker_unit("ExecStartPre=/bin/sh -c '! grep default-ulimits /etc/docker/daemon.json'"),
    ),
    Fault(
        "a limit that locks out whoever is logged in already",
        "a session of alice through sshd would not open any more"
        r" \(.*There were too many logins for 'alice'.*\); nothing was written",
        {
            "profile": "none",
            "policy": {"sessions": [{"users": ["alice"], "limits": {"maxlogins": 1}}]},
        },
        make=f"python3 -c '{LOGGED_IN}'",
        unmake="truncate -s -384 /run/utmp",
    ),
    Fault(
        "a drop-in that links out of etc",
        "/etc/security/limits.d/90-mlhost.conf: is a symbolic link to /root/limits, outside of /etc",
        make="echo '# Managed by mlhost.limits: changes made here are overwritten.' > /root/limits"
        " && ln -s /root/limits /etc/security/limits.d/90-mlhost.conf",
        unmake="rm /etc/security/limits.d/90-mlhost.conf",
    ),
    Fault(
        "a drop-in that somebody else wrote",
        "/etc/security/limits.d/90-mlhost.conf: was not written by mlhost.limits;"
        " name another sessions_file",
        make="echo '* - core 0' > /etc/security/limits.d/90-mlhost.conf",
        unmake="rm /etc/security/limits.d/90-mlhost.conf",
    ),
    Fault(
        "an etc that is read-only",
        r".*\bRead-only file system\b.*",
        make="mount --bind /etc /etc && mount -o remount,bind,ro /etc",
        unmake="umount /etc",
    ),
    Fault("a user who is not root", r".*\b(root|Permission denied)\b.*", words=AS_ALICE),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_is_named_and_nothing_is_written(host: Host, fault: Fault) -> None:
    """The task fails with one sentence that holds the key path or the file and line."""
    before = take_fingerprint(host, first=fault.make)
    try:
        run = run_module(host, "provision", {"docker_restart": True, **fault.options}, *fault.words)
    finally:
        after = take_fingerprint(host, then=fault.unmake)
    assert run.failed, run.said
    assert re.fullmatch(fault.says, run.result["msg"]), run.said
    assert before ^ after == set()
    assert "seed" not in run.said


# What every login and container of a stock Debian has.
STOCK: dict[str, object] = {
    "profile": "none",
    "fail_on": "unknown",
    "policy": {
        "kernel": {"fs.nr_open": 1048576},
        "sessions": [
            {"users": ["*", "root"], "limits": {"nofile": {"soft": 1024, "hard": 1048576}}}
        ],
        "containers": {"docker": {"limits": {"nofile": {"soft": 1024, "hard": 1048576}}}},
    },
}


def collect_places(run: Run) -> dict[str, tuple[str, str]]:
    """Return the status and the reason of each place; all bounds of a place are alike here."""
    return {
        finding["place"]: (finding["status"], finding["reason"])
        for finding in run.result["findings"]
    }


def test_check_goes_on_where_users_cannot_log_in(host: Host) -> None:
    """A missing, a shell-less and an expired user are unknown with the reason; the rest is judged."""
    options = {**STOCK, "users": ["alice", "nobody-here", "robot", "gone"], "services": ["sshd"]}
    run = run_module(host, "check", {**options, "canary": "never"})
    assert run.failed
    assert collect_places(run) == {
        "kernel": ("pass", ""),
        "session:alice@sshd": ("pass", ""),
        "session:nobody-here@sshd": ("unknown", "no user 'nobody-here' on this host"),
        "session:robot@sshd": (
            "unknown",
            "robot has the shell /usr/sbin/nologin, which opens no session",
        ),
        "session:gone@sshd": (
            "unknown",
            "account refused: Authentication failure (Your account has expired;"
            " please contact your system administrator.)",
        ),
        "new-container:docker": ("unknown", "no container was started (canary: never)"),
    }


def test_check_goes_on_for_a_user_who_is_not_root(host: Host) -> None:
    """What needs root is unknown and says so; the kernel is still judged."""
    run = run_module(host, "check", {**STOCK, "users": ["alice"], "services": ["sshd"]}, *AS_ALICE)
    assert run.failed
    assert collect_places(run) == {
        "kernel": ("pass", ""),
        "session:alice@sshd": ("unknown", "opening a session of a user needs root"),
        "new-container:docker": (
            "unknown",
            "/var/run/docker.sock: permission denied, Docker answers root only",
        ),
    }


def test_without_docker_the_rest_goes_on(host: Host) -> None:
    """Containers are unknown where Docker was removed, and a plan for it says what is missing."""
    host.run("systemctl stop docker.socket docker; mv /usr/sbin/dockerd /usr/sbin/dockerd.away")
    try:
        run = run_module(host, "check", {**STOCK, "users": ["root"], "services": ["sshd"]})
        plan = run_module(host, "provision", {"docker_restart": True}, "--check")
    finally:
        host.run("mv /usr/sbin/dockerd.away /usr/sbin/dockerd; systemctl start docker")
    assert run.failed
    assert collect_places(run) == {
        "kernel": ("pass", ""),
        "session:root@sshd": ("pass", ""),
        "new-container:docker": (
            "unknown",
            "no dockerd is running on this host until Docker is installed",
        ),
    }
    assert not plan.failed, plan.said
    assert plan.result["notes"] == [
        "/etc/docker/daemon.json: takes effect once Docker is installed"
    ]
    assert (plan.result["restarted"], plan.result["restart_required"]) == ([], [])


def test_check_mode_tells_what_the_run_then_does(host: Host) -> None:
    """Check mode on a bare host changes nothing and says the same; a second run changes nothing.

    What is printed never shows the secrets of daemon.json.
    """
    options: dict[str, object] = {"docker_restart": True}
    bare = take_fingerprint(host)
    plan = run_module(host, "provision", options, "--check", "--diff")
    untouched = take_fingerprint(host)
    first = run_module(host, "provision", options, "--diff")
    done = take_fingerprint(host)
    second = run_module(host, "provision", options, "--diff")
    assert bare ^ untouched == set()
    assert (
        plan.result["msg"].replace("would change", "changed").replace("would restart", "restarted")
        == (first.result["msg"])
    )
    # The sessions of these very connections are among the old limits, each with its own number.
    other = {"msg": "", "brief": [], "old_limits": []}
    assert {**plan.result, **other} == {**first.result, **other}
    assert first.result["changed"]
    assert first.result["restarted"] == ["docker.service"]
    assert collect_paths(bare ^ done) == set(first.result["files"])
    assert (second.result["changed"], second.result["files"]) == (False, [])
    assert take_fingerprint(host) == done
    said = plan.said + first.said + second.said
    assert "default-ulimits" in said
    assert "seed" not in said


def collect_paths(lines: set[str]) -> set[str]:
    """Return the files among the lines; a folder that was made on the way is none."""
    paths = {word for line in lines for word in line.split() if word.startswith(("/etc/", "/var/"))}
    return {path for path in paths if not any(other.startswith(f"{path}/") for other in paths)}


def test_who_else_writes_a_file_is_named(host: Host) -> None:
    """Before it is written, and with each cause: what is changed by hand there comes back."""
    path, said = "/etc/security/limits.d/99-site.conf", 'line 1 says "# Ansible managed"'
    host.run(f"printf '# Ansible managed\n* soft nofile 512\n' > {path}")
    try:
        run = run_module(host, "provision", {"sections": ["sessions"]}, "--check")
        assert f"{path}: {said}; what is changed there may be undone" in run.result["notes"]
        options: dict[str, object] = {
            "sections": ["sessions"],
            "users": ["alice"],
            "services": ["sshd"],
        }
        found = run_module(host, "check", options).result["findings"]
        causes = [cause for finding in found for cause in finding["causes"]]
        assert said in [
            cause["writer"] for cause in causes if (cause["at"] or {}).get("file") == path
        ]
    finally:
        host.run(f"rm {path}")
