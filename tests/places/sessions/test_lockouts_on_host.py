# SPDX-License-Identifier: GPL-3.0-or-later
"""What locks a host is shown on one, with plain files, and refused by our run before it writes."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import pytest

from tests.host import guest, upstream_pam
from tests.host.connection import Host
from tests.host.control import Control
from tests.host.library import carry
from tests.places.sessions.lockouts import CONF, LOCKOUTS, OF_HOSTS, OF_KERNELS, OF_LIMITS, Lockout
from tests.verbs.test_faults_on_host import Run, run_module

pytestmark = pytest.mark.host

EVERYTHING = bool(os.environ.get("MLHOST_ALL"))
SHOWN = [one for one in LOCKOUTS if (one.share or EVERYTHING) and not one.own_guest]
FATAL = [one for one in LOCKOUTS if one.own_guest and EVERYTHING]
HOSTS = [one for one in OF_HOSTS if one in SHOWN]
PATIENCE = 20.0
ORDINARY: dict[str, Any] = {"sessions": [{"users": ["*", "root"], "limits": {"core": "unlimited"}}]}

# What a run may write, with what even a write that is taken back leaves: inode and time of change.
FINGERPRINT = r"""
find /etc -xdev -printf '%p %i %C@\n'
sysctl fs kernel.pid_max kernel.threads-max kernel.pty vm 2>/dev/null |
    grep -Ev 'dentry-state|file-nr|inode-|pty.nr|aio-nr'
"""
PREPARE = r"""
cat > /opt/refuse.py <<'END'
import json, sys
sys.path.insert(0, "/opt")
from mlhost_limits.core.reader import PolicyError
from mlhost_limits.schema import load_policy
from mlhost_limits.provision import provision
from mlhost_limits.core.policy import ProvisionOptions
options = ProvisionOptions(check_mode="--check" in sys.argv)
try:
    print(json.dumps(provision(load_policy(json.loads(sys.argv[1]), "none"), options).notes))
except PolicyError as error:
    print(json.dumps(error.problems))
END
tar -C /bin -c busybox | docker import - tiny >/dev/null
"""
CHECK = (
    "env -C /opt python3 -c 'import sys; from mlhost_limits.cli import main; main(sys.argv[1:])'"
    " check --profile none --policy -"
)
WAYS = {
    "ssh": "echo in-$((40 + 2))",
    "sudo": "sudo -n echo in-$((40 + 2))",
    "docker": "docker run --rm tiny /busybox echo in-42",
    "memory": "awk '/^MemT/ {all = $2} /^MemA/ {left = $2} END"
    """ {print (left > all / 2) ? "in-42" : "starved " left}' /proc/meminfo""",
    "tty": "",  # A login shell at a terminal, which is told what to do.
}
TYPED = "echo in-$((40 + 2)); exit\n"


class Attempt(NamedTuple):
    """Whether a login worked, and what it said."""

    opened: bool
    said: str


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with guest.running() as running:
        carry(running, {upstream_pam.CARRIED: upstream_pam.build()})
        running.ssh(PREPARE)
        yield running


@pytest.fixture(scope="module")
def control(host: Host) -> Iterator[Control]:
    shell = Control(host)
    yield shell
    shell.close()


def log_in(host: Host, control: Control | None, attempt: str) -> Attempt:
    """Try a real login, ``way user``, and do one thing inside."""
    way, user = attempt.split()
    if way == "su":
        assert control
        said = control.run(f"su - {user} -c '{WAYS['ssh']}' 2>&1 || true")
        return Attempt("in-42" in said, said)
    words = host.ssh_command(user)
    terminal = way == "tty"
    words[1:1] = ["-tt"] if terminal else []
    try:
        done = subprocess.run(
            [*words, *([] if terminal else [WAYS[way]])],
            input=TYPED if terminal else "",
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Attempt(False, f"no answer in {PATIENCE:.0f} s")
    said = f"exit status {done.returncode}: {done.stdout}{done.stderr}"
    return Attempt("in-42" in done.stdout and not done.returncode, said)


def log_in_all(
    host: Host, control: Control | None, attempts: tuple[str, ...]
) -> dict[str, Attempt]:
    """Try logins, those through ssh all at once."""
    remote = [attempt for attempt in attempts if not attempt.startswith("su ")]
    with ThreadPoolExecutor(len(remote)) as pool:
        seen = dict(zip(remote, pool.map(lambda attempt: log_in(host, control, attempt), remote)))
    return {one: seen.get(one) or log_in(host, control, one) for one in attempts}


def run_library(control: Control, policy: dict[str, Any], *words: str) -> list[str]:
    """Return why our library refuses a policy on the host, or what it notes."""
    given = shlex.join([json.dumps(policy), *words])
    said: list[str] = json.loads(control.run(f"python3 -B /opt/refuse.py {given}"))
    return said


def take_fingerprint(control: Control) -> set[str]:
    return set(control.run(FINGERPRINT).splitlines())


def assert_lost(lockout: Lockout, seen: dict[str, Attempt]) -> None:
    print(f"\n{lockout.name}:", *(f"{way}: {one.said[-90:]!r}" for way, one in seen.items()))
    for way, attempt in seen.items():
        assert not attempt.opened, (way, attempt)
        assert re.search(lockout.shows, attempt.said), (way, attempt)


@pytest.mark.parametrize("lockout", SHOWN, ids=lambda lockout: lockout.name)
def test_plain_files_lock_the_host(lockout: Lockout, host: Host, control: Control) -> None:
    """Without our guard: real logins fail, in the way the documents say."""
    control.run(lockout.make, lockout.bare)
    try:
        seen = log_in_all(host, control, lockout.lost)
    finally:
        control.run(lockout.unmake, lockout.bare)
    assert_lost(lockout, seen)


@pytest.mark.parametrize("lockout", FATAL, ids=lambda lockout: lockout.name)
def test_plain_values_end_the_host(lockout: Lockout) -> None:
    """Without our guard: what the host does not survive, each on a host of its own."""
    with guest.running() as host:
        host.ssh(f"(sleep 1; {lockout.make}) >/dev/null 2>&1 &")
        time.sleep(3)
        seen = log_in_all(host, None, lockout.lost)
    assert_lost(lockout, seen)


@pytest.mark.parametrize("lockout", HOSTS, ids=lambda lockout: lockout.name)
def test_a_host_that_is_locked_already_is_told(
    lockout: Lockout, host: Host, control: Control
) -> None:
    """An ordinary policy is refused with the file, and nothing is written."""
    control.run(lockout.make)
    try:
        before = take_fingerprint(control)
        problems = run_library(control, ORDINARY)
        after = take_fingerprint(control)
    finally:
        control.run(lockout.unmake)
    assert [bool(re.fullmatch(lockout.says, problem)) for problem in problems] == [True], problems
    assert before ^ after == set()


def ask_for(host: Host, policy: dict[str, Any]) -> Run:
    """Run the module as alice, through sudo: she manages this host."""
    words = ("-e", "ansible_user=alice", "--become", "--timeout", "120")
    return run_module(host, "provision", {"profile": "none", "policy": policy}, *words)


# States of the host that some of the limits are too small for.
MAKE_STATES = """
cp -a /var/log/wtmp /root/ && truncate -s 4M /var/log/wtmp
{ for i in $(seq 45); do setpriv --reuid alice sleep 300 & done; } >/dev/null 2>&1
"""
UNMAKE_STATES = "pkill -u alice -x sleep; mv /root/wtmp /var/log/wtmp"


def test_our_run_refuses_all_of_them_at_once(host: Host, control: Control) -> None:
    """With our guard: one sentence each, nothing written, and everyone still gets in."""
    lockouts = [*OF_LIMITS, *OF_KERNELS]
    kernel = {key: value for one in OF_KERNELS for key, value in (one.kernel or {}).items()}
    policy = {"sessions": [one.rule for one in OF_LIMITS], "kernel": kernel}
    control.run(MAKE_STATES)
    try:
        before = take_fingerprint(control)
        run = ask_for(host, policy)
        after = take_fingerprint(control)
    finally:
        control.run(UNMAKE_STATES)
    problems = run.result.get("problems", [])
    refused = [one for one in lockouts if any(re.fullmatch(one.says, said) for said in problems)]
    assert run.failed, run.said
    assert [one.name for one in lockouts if one not in refused] == [], problems
    assert before ^ after == set()
    assert all(one.opened for one in log_in_all(host, control, ("ssh root", "tty alice")).values())
    print(
        f"\nlockouts: {len(LOCKOUTS)} entries, {len(SHOWN + FATAL)} shown without guard,"
        f" {len(refused) + len(HOSTS)} refused with it"
    )


def test_upstreams_pam_lets_in_under_an_ordinary_limit(host: Host, control: Control) -> None:
    """So it is the limit that locks, not this build; and there ``*`` is root, too."""
    control.run(f"{upstream_pam.INSTALL} && echo '* - nofile 4242' > {CONF}")
    try:
        seen = [host.ssh("ulimit -Hn", user).stdout for user in ("root", "alice")]
    finally:
        control.run(f"rm {CONF}; {upstream_pam.UNINSTALL}")
    assert seen == ["4242\n", "4242\n"]


def test_who_is_locked_out_by_a_line_is_told_so(host: Host, control: Control) -> None:
    """Another limit is asked for, which no session has either."""
    asked = {"sessions": [{"users": ["alice"], "limits": {"memlock": "unlimited"}}]}
    line = "alice - nofile 2000000"
    control.run(f"{upstream_pam.INSTALL} && echo '{line}' > {CONF}")
    try:
        shown = control.run(f"echo {shlex.quote(json.dumps(asked))} | {CHECK}")
    finally:
        control.run(f"rm {CONF}; {upstream_pam.UNINSTALL}")
    told = " ".join(shown.split())
    assert "alice, at every login: memlock no session, required unlimited" in told
    assert f'{CONF}:1 "{line}" asks for more than fs.nr_open, 1048576' in told
    assert "the kernel refuses it, and PAM then refuses the login" in told


def test_on_debian_a_nofile_above_nr_open_is_silently_ignored(host: Host, control: Control) -> None:
    """Nobody is locked out, but nobody has the limit either: refused all the same."""
    control.run(f"printf '%s - nofile 2000000\\n' root alice > {CONF}")
    try:
        seen = host.ssh("ulimit -Hn", user="alice").stdout
    finally:
        control.run(f"rm {CONF}")
    assert seen == "524288\n"


def test_lines_of_others_that_pam_reads_as_0_or_1(host: Host, control: Control) -> None:
    """They lock the user, and a run that is about somebody else names them all the same."""
    theirs = ["alice - nofile 1e6", "bob - nofile 0x10000"]
    control.run(f"printf '%s\\n' {shlex.join(theirs)} > {CONF}")
    try:
        seen = log_in(host, control, "ssh alice")
        rule = {"users": ["root"], "limits": {"core": "unlimited"}}
        notes = run_library(control, {"sessions": [rule]}, "--check")
    finally:
        control.run(f"rm {CONF}")
    assert not seen.opened
    assert notes == [
        f'{CONF}:{line} "{text}" means {value} to PAM: sshd ends a login that has fewer than 14'
        for line, text, value in ((1, theirs[0], 1), (2, theirs[1], 0))
    ]


def test_a_session_that_did_not_open_before_is_told(host: Host, control: Control) -> None:
    """The run goes on and says so; it is not blamed."""
    control.run("chage -E 1 alice")
    try:
        notes = run_library(control, ORDINARY)
    finally:
        control.run("chage -E -1 alice; rm /etc/security/limits.d/90-mlhost.conf")
    closed = "before this run, a session of alice through sshd did not open (account refused: "
    assert [note for note in notes if note.startswith(closed)], notes


# Every floor at once: were one too low, somebody would not get in.
FLOORS = ["nofile 64", "nproc 40", "as 131072", "data 65536", "stack 1024", "fsize 1024", "cpu 1"]
NOT_NEEDED = [f"{item} 0" for item in ("core", "memlock", "sigpending", "locks", "msgqueue", "rss")]


def test_with_the_least_that_is_accepted_everyone_gets_in(host: Host, control: Control) -> None:
    """Logins, sudo and Ansible work under all floors and without the rest, for root and alice."""
    lines = [f"{user} - {item}" for user in ("root", "alice") for item in FLOORS + NOT_NEEDED]
    control.run(f"printf '%s\\n' {shlex.join(lines)} > {CONF}")
    try:
        ways = ("ssh root", "tty root", "ssh alice", "tty alice", "sudo alice")
        seen = log_in_all(host, control, ways)
        run = ask_for(host, {"kernel": {"vm.max_map_count": 4096}})
    finally:
        control.run(f"rm {CONF}")
    assert {way: one for way, one in seen.items() if not one.opened} == {}
    assert not run.failed, run.said
