# SPDX-License-Identifier: GPL-3.0-or-later
"""What is not an attack and happens all the same: kills, full disks, clocks that jump, 300 checks.

Each strain has a fresh guest and returns figures; what is in ``problems`` should not have happened.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.bench.crowd import CROWD
from tests.faults.lanes import in_lanes
from tests.host import guest
from tests.host.cache import HostError
from tests.host.connection import Host
from tests.host.snapshot import Snapshot

from .base import RELEASE, make_base, saved_host, send
from .verbs import VERBS

FILE = Path(__file__).parents[2] / "build" / "hostile.json"
CHECKS, KILLS = 300, 60
_CHECK = " ".join(VERBS["check"])
_PROVISION = " ".join(VERBS["provision"])
_SECONDS = 600
_SSH_FAILED = 255
_SEEN = "/root/traced"
_OWN = re.compile(r"/(run|tmp|var/tmp)/mlhost-|/dev/(null|tty)|/proc/|^pipe|/run/mlhost-limits")
_WRITES = (
    "openat,open,creat,unlink,unlinkat,rename,renameat,renameat2,mkdir,mkdirat,rmdir,link,linkat,"
    "symlink,symlinkat,chmod,fchmodat,chown,lchown,fchownat,truncate,mount,umount2,setxattr,mknodat"
)
_OPEN = re.compile(r'open(?:at)?\((?:[^,"]+, )?"([^"]*)", ([A-Z_|]+)')
_CHANGE = re.compile(r'^(?:\[pid +\d+\] |\d+ +)?(\w+)\([^"]*"([^"]*)"')
_COUNTS = """
echo processes $(ps -e --no-headers | grep -cv kworker)
echo mounts $(wc -l < /proc/self/mountinfo)
echo keys $(wc -l < /proc/keys)
echo cgroups $(find /sys/fs/cgroup -type d | wc -l)
echo sessions $(loginctl list-sessions --no-legend | wc -l)
echo utmp $(stat -c %s /run/utmp)
echo wtmp $(stat -c %s /var/log/wtmp)
echo lastlog $(sha256sum < /var/log/lastlog | cut -c1-8)
echo journal $(journalctl --quiet --no-pager | wc -l)
echo containers $(docker ps -aq | wc -l)
echo files $(find / -xdev \\( -path /proc -o -path /sys -o -path /var/log/journal \\
    -o -path /var/lib/docker -o -path /var/lib/containerd -o -path /var/spool/slurmctld \\) -prune -o -print | wc -l)
echo volatile $(find /run /dev/shm -not -path '/run/log/*' -not -path '/run/systemd/journal/*' | wc -l)
"""

_FILES = """find / -xdev \\( -path /proc -o -path /sys -o -path /var/log/journal \\
    -o -path /var/lib/docker -o -path /var/lib/containerd -o -path /var/spool/slurmctld \\) -prune -o -print | sort"""
_NEW_FILES = f"{_FILES} | comm -13 /root/files -"

Figures = dict[str, Any]
Strain = Callable[[Host], Figures]


def do(host: Host, script: str, seconds: float = _SECONDS) -> tuple[int, str]:
    """Run a script of root and return its status and all that it said.

    :raises HostError: If the guest cannot be reached: nothing was tried then.
    """
    done = host.ssh(f"export PYTHONPATH=/opt; cd /opt; {script}", check=False, timeout=seconds)
    if done.returncode == _SSH_FAILED:
        raise HostError(f"{host.name} cannot be reached: {done.stderr[-300:]}")
    return done.returncode, done.stdout + done.stderr


def judge_end(status: int, text: str, ends: tuple[int, ...] = (0, 1, 2)) -> list[str]:
    """Return what is wrong with how a command ended."""
    problems = []
    if "Traceback (most recent call last)" in text:
        problems.append("traceback: " + text.strip().splitlines()[-1][:200])
    if status not in ends:
        problems.append(f"ended with {status}: {text.strip()[-200:]}")
    return problems


def read_places(text: str) -> list[str]:
    """Return the findings of a check, as far as they do not differ from run to run."""
    try:
        found = json.loads(text[text.index("{") :])["findings"]
    except (ValueError, KeyError):
        return ["no findings"]
    return sorted(f"{one['place']} {one['item']} {one['bound']} {one['status']}" for one in found)


def compare_checks(before: tuple[int, str], after: tuple[int, str]) -> Figures:
    """Return what a strain changed of a check."""
    old, new = read_places(before[1]), read_places(after[1])
    problems = judge_end(*after)
    if old != new:
        problems.append(f"{len(set(old) ^ set(new))} findings differ")
    return {"findings": len(new), "problems": problems}


def count_traces(host: Host) -> dict[str, str]:
    """Return what there is of everything that a check may leave.

    :raises ValueError: If something could not be counted.
    """
    rows = (line.split() for line in do(host, _COUNTS)[1].splitlines())
    found = {row[0]: row[1] for row in rows if len(row) == 2}
    if set(found) != set(re.findall(r"^echo (\w+)", _COUNTS, re.M)):
        raise ValueError(f"only {', '.join(found)} could be counted")
    return found


def leave_nothing(host: Host, count: int) -> Figures:
    """Check many times and say what is more than before; one ssh login is in it."""
    first = judge_end(*do(host, _CHECK))
    before = count_traces(host)
    do(host, f"{_CHECK} > /dev/null; {_FILES} > /root/files.new; mv /root/files.new /root/files")
    once = count_traces(host)
    loop = f"for n in $(seq 25); do {_CHECK} > /dev/null; done; true"
    for _number in range(count // 25):
        do(host, loop, 1800)
    after = count_traces(host)
    # Each count is a login of its own, which writes what every login does.
    one, all_ = _subtract(before, once), _subtract(once, after)
    grown = (
        "processes",
        "mounts",
        "keys",
        "cgroups",
        "sessions",
        "containers",
        "files",
        "volatile",
    )
    more = [f"{name}: {all_[name]} more" for name in grown if int(all_.get(name, 0)) > 5]
    new = do(host, _NEW_FILES)[1].split()
    problems = first + (more + new if more else [])
    return {"checks": count, "left_by_one": one, "left_by_all": all_, "problems": problems}


def _subtract(before: dict[str, str], after: dict[str, str]) -> dict[str, str]:
    """Return what changed, as a difference where both are numbers."""
    return {
        name: str(int(after[name]) - int(value)) if value.isdigit() else f"{value} -> {after[name]}"
        for name, value in before.items()
        if after.get(name) != value
    }


def trace_check_mode(host: Host) -> Figures:
    """Trace root's check mode and list what it writes outside of its own temporary folder."""
    do(host, "rm -f /etc/security/limits.d/*mlhost*; sysctl -q -w vm.max_map_count=65530")
    # One write of our own shows that writes are seen.
    words = f"sh -c 'echo > {_SEEN}; exec {' '.join(VERBS['provision check mode'])}'"
    status, text = do(host, f"strace -f -qq -o /root/trace -e trace={_WRITES} {words}", 900)
    trace = do(host, "cat /root/trace")[1]
    writes = sorted(set(find_writes(trace)))
    outside = [one for one in writes if not _OWN.search(one.split(" ", 1)[1])]
    problems = judge_end(status, text) + [f"wrote {one}" for one in outside if _SEEN not in one]
    if not any(_SEEN in one for one in outside):
        problems.append(f"the trace of {len(trace.splitlines())} calls does not tell of writes")
    if '"changed": true' not in text:
        problems.append("check mode tells of no change")
    return {"calls": len(trace.splitlines()), "writes": writes[:40], "problems": problems}


def find_writes(trace: str) -> Iterator[str]:
    """Yield each successful call of a trace that writes, with its path."""
    for line in trace.splitlines():
        if " = -1 " in line or "= ?" in line:
            continue
        opened = _OPEN.search(line)
        if opened:
            if re.search(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC", opened[2]):
                yield f"open {opened[1]}"
            continue
        changed = _CHANGE.search(line)
        if changed:
            yield f"{changed[1]} {changed[2]}"


def beside_a_check(host: Host, script: str) -> Figures:
    """Check once in peace and once while a script of root's does something."""
    before = do(host, _CHECK)
    after = do(host, f"({script}) > /dev/null 2>&1 & {_CHECK}; status=$?; wait; exit $status")
    return compare_checks(before, after)


def confine(host: Host, options: str, ends: tuple[int, ...] = (0, 1, 2)) -> Figures:
    """Check and provision in a scope that has little of something."""
    problems = []
    for words in (_CHECK, f"{_PROVISION}"):
        run = f"systemd-run --quiet --scope {options} --setenv=PYTHONPATH=/opt {words} > /root/said 2>&1"
        status, text = do(host, f"{run}; status=$?; tail -c 3000 /root/said; exit $status")
        problems += judge_end(status, text, ends)
    status, text = do(host, _PROVISION)
    problems += judge_end(status, text, (0,))
    return {"problems": problems}


def provision_under(host: Host, before: str, after: str, words: str = _PROVISION) -> Figures:
    """Provision a host on which something cannot be written; then mend it and provision again."""
    do(host, "rm -f /etc/security/limits.d/*mlhost* /etc/sysctl.d/*mlhost*")
    made = do(host, before)
    status, text = do(host, words)
    problems = judge_end(status, text, (0, 1, 2))
    hurt = do(host, "ls -a /etc/security/limits.d /etc/sysctl.d /etc/docker | grep '^.mlhost-'")[1]
    problems += [f"left {name}" for name in hurt.split()]
    do(host, after)
    again, told = do(host, _PROVISION)
    problems += judge_end(again, told, (0,))
    return {
        "made": made[0] == 0,
        "first": status,
        "said": text.strip()[-160:],
        "problems": problems,
    }


def run_two(host: Host) -> Figures:
    """Let two controllers provision and check at once, five times."""
    problems = []
    for _number in range(5):
        remove = "rm -f /etc/security/limits.d/*mlhost*"
        script = (
            f"{remove}; {_PROVISION} > /root/a & {_PROVISION} > /root/b; one=$?; wait $!; exit $one"
        )
        problems += judge_end(*do(host, script), (0,))
    return {"pairs": 5, "problems": problems}


def upgrade_meanwhile(host: Host) -> Figures:
    """Provision and check while a package that owns a file of limits.d is installed over and over."""
    build = """
mkdir -p /root/deb/DEBIAN /root/deb/etc/security/limits.d
printf 'Package: site\\nVersion: 1\\nArchitecture: all\\nMaintainer: x <x@x>\\nDescription: x\\n' > /root/deb/DEBIAN/control
echo '* soft core 0' > /root/deb/etc/security/limits.d/20-site.conf
dpkg-deb -b /root/deb /root/site.deb
"""
    install = "for n in 1 2 3 4 5 6; do dpkg -i /root/site.deb; dpkg -P site; done"
    problems = judge_end(*do(host, build), (0,))
    for words in (_CHECK, f"rm -f /etc/security/limits.d/*mlhost*; {_PROVISION}"):
        script = f"({install}) > /dev/null 2>&1 & {words}; status=$?; wait; exit $status"
        problems += judge_end(*do(host, script))
    return {"installs": 12, "problems": problems}


def kill_at_random(host: Host, count: int) -> Figures:
    """Kill provisioning at many times, Docker and Slurm in the policy; then it must succeed."""
    program = f"""
import glob, hashlib, os, random, signal, subprocess, time
random.seed(7)
def provision(*more): return subprocess.Popen("{_PROVISION}".split() + list(more), stdout=-3, stderr=-3, start_new_session=True)
def look(): return {{p: hashlib.sha256(open(p, "rb").read()).hexdigest() for d in ("/etc/security/limits.d", "/etc/sysctl.d", "/etc/docker", "/etc/slurm", "/etc/systemd/system.conf.d") for p in sorted(glob.glob(d + "/*") + glob.glob(d + "/.*")) if os.path.isfile(p)}}
subprocess.run(["systemctl", "reset-failed"]); start = time.time(); provision().wait(); whole = time.time() - start
wanted = look(); killed = 0; stuck = 0
for number in range({count}):
    for path in glob.glob("/etc/security/limits.d/*mlhost*") + (["/etc/docker/daemon.json"] if number % 3 == 0 else []):
        os.path.exists(path) and os.unlink(path)
    child = provision(); time.sleep(random.uniform(0, whole * 1.5))
    if child.poll() is None: os.killpg(child.pid, signal.SIGKILL); killed += 1
    child.wait()
subprocess.run(["systemctl", "reset-failed", "docker"])
code = provision().wait()
print(killed, code, sorted(set(look().items()) ^ set(wanted.items())), subprocess.run(["su", "alice", "-c", "true"]).returncode, subprocess.run(["docker", "info"], stdout=-3).returncode)
"""
    host.ssh("cat > /root/kills.py", input=program)
    status, text = do(host, "python3 /root/kills.py", 3000)
    found = re.search(r"^([0-9]+) ([0-9]+) (\[.*\]) ([0-9]+) ([0-9]+)$", text, re.M)
    problems = judge_end(status, text, (0,))
    if found and (found[2], found[3], found[4], found[5]) != ("0", "[]", "0", "0"):
        problems.append(f"not whole afterwards: {found[0][-300:]}")
    killed = int(found[1]) if found else 0
    return {"runs": count, "killed": killed, "problems": problems}


def with_many(host: Host, make: str, least: int, count: str, words: str = _CHECK) -> Figures:
    """Check a host that has very many of something."""
    before = time.monotonic()
    do(host, words)
    calm = time.monotonic() - before
    do(host, make, 1800)
    there = int(do(host, count)[1].split()[-1])
    before = time.monotonic()
    status, text = do(host, words)
    seconds = time.monotonic() - before
    problems = judge_end(status, text)
    if there < least:
        problems.append(f"only {there} of {least} could be made")
    return {
        "there": there,
        "seconds": round(seconds, 1),
        "before": round(calm, 1),
        "problems": problems,
    }


def with_many_containers(host: Host) -> Figures:
    """Check a host whose dockerd has 1,000 containers; each must have a finding."""
    program = Path(__file__).parent / "on_guest" / "many_containers.py"
    host.ssh("cat > /root/many.py", input=program.read_text())
    count = "ls -d /sys/fs/cgroup/system.slice/docker-0*.scope | wc -l"
    figures = with_many(host, _MANY_CONTAINERS, 1000, count)
    text = do(host, _CHECK)[1]
    places = {one.split()[0] for one in read_places(text) if one.startswith("container:")}
    if len(places) < 1000:
        reasons = sorted(set(re.findall('"reason": "([^"]*docker[^"]*)"', text)))
        figures["problems"].append(f"only {len(places)} containers are judged: {reasons}")
    return {**figures, "judged": len(places)}


def with_many_processes(host: Host) -> Figures:
    """Check a host on which 10,000 processes do nothing."""
    with TemporaryDirectory(prefix="mlhost-crowd-") as name:
        subprocess.run(["gcc", "-O2", "-static", "-o", f"{name}/crowd", CROWD], check=True)
        send(host, Path(name), "/root")
    return with_many(host, _PROCESSES, 10_000, "pgrep -c crowd")


def podman_from_end_to_end(host: Host) -> Figures:
    """Compare what the check says of a user's new container with a container that the user starts."""
    status, text = do(host, " ".join(VERBS["check podman"]), 300)
    problems = judge_end(status, text)
    script = (
        "export XDG_RUNTIME_DIR=/run/user/1001; tar -C /bin -c busybox | podman import - tiny >&2;"
        " podman run --rm tiny /busybox cat /proc/self/limits"
    )
    done = host.ssh(script, user="mallory", check=False, timeout=600)
    real = re.search(r"^Max open files +(\d+) +(\d+)", done.stdout, re.M)
    if not real:
        return {
            "problems": [*problems, f"no container of the user's started: {done.stderr[-300:]}"]
        }
    found = json.loads(text[text.index("{") :])["findings"]
    seen = {
        one["bound"]: str(one["value"] if "value" in one else one.get("observed"))
        for one in found
        if one["place"].endswith("podman/mallory") and one["item"] == "nofile"
    }
    for bound, value in zip(("soft", "hard"), real.groups()):
        if seen.get(bound) not in (value, None):
            problems.append(f"{bound}: the check says {seen[bound]}, the container has {value}")
    return {"real": list(real.groups()), "seen": seen, "problems": problems}


def check_beside_a_full_quota(host: Host) -> Figures:
    """Check where a user's home takes no further byte: findings of others must not change."""
    words = " ".join(VERBS["check podman"])
    before = do(host, words, 300)
    status, said = do(host, _FULL_QUOTA)
    refused = host.ssh("echo more > ~/more", user="mallory", check=False).returncode != 0
    after = do(host, words, 300)
    problems = judge_end(*after)
    if status or not refused:
        problems.append(f"no quota could be set: {said[-300:]}")
    old, new = (
        [one for one in read_places(text) if "mallory" not in one]
        for _status, text in (before, after)
    )
    if old != new:
        problems.append(f"{len(set(old) ^ set(new))} findings of others differ")
    return {"findings": len(new), "problems": problems}


_FULL_QUOTA = r"""
set -e
truncate -s 64M /root/home.img; mkfs.ext4 -q -O quota /root/home.img
mkdir -p /mnt/home; mount -o loop,usrquota /root/home.img /mnt/home
cp -a /home/mallory /mnt/home
mount --bind /mnt/home/mallory /home/mallory
python3 - $(findmnt -no SOURCE /mnt/home) <<'END'
import ctypes, os, struct, sys
# quotactl(2): Q_SETQUOTA for users; struct dqblk with one block and one inode at most.
block = struct.pack("=8QI4x", 1, 1, 0, 1, 1, 0, 0, 0, 5)
libc = ctypes.CDLL(None, use_errno=True)
if libc.quotactl(0x80000800, sys.argv[1].encode(), 1001, block):
    sys.exit("quotactl: " + os.strerror(ctypes.get_errno()))
END
"""
_CHECKS_ONLY = "'^python3 /root/hostile/command.py'"  # And not the shells that name it.
_STOP = (
    f"sleep 1; for n in 1 2 3 4; do pkill -STOP -f {_CHECKS_ONLY}; sleep 2;"
    f" pkill -CONT -f {_CHECKS_ONLY}; sleep 0.5; done"
)
_CLOCK = "sleep 1; date -s '+1 day'; sleep 1; date -s '-2 days'; sleep 1; date -s '+1 day'"
_NO_INODES = "for d in /tmp /var/tmp; do mount -t tmpfs -o nr_inodes=1 x $d; done"
_PROFILE = (
    "printf 'profile hostile flags=(unconfined) {\\n deny /etc/security/limits.d/** w,\\n}\\n' > /root/profile;"
    " sed -i 's/ flags=(unconfined)//; 1a\\  /** rwlkmix,\\n / r,\\n capability,\\n network,\\n ptrace,\\n"
    " signal,\\n mount,\\n umount,\\n unix,\\n dbus,' /root/profile; apparmor_parser -r /root/profile"
)
_UNITS = """
mkdir -p /run/systemd/system
for n in $(seq 5000); do printf '[Service]\\nExecStart=/bin/true\\nLimitNOFILE=100\\n' \\
    > /run/systemd/system/many-$n.service; done
systemctl daemon-reload
"""
_CONTAINERS = "for n in $(seq 40); do docker run -d --network none tiny /busybox sleep 9999; done"
# Its program is called dockerd and is root's, as the check asks of a daemon.
_MANY_CONTAINERS = r"""
docker run -d --name first --network none tiny /busybox sleep 9999
python3 - <<'END' > /root/kept.json
import json, sys
sys.path.insert(0, "/opt")
from mlhost_limits.docker.api_read import ask
row = ask("GET", "/containers/json")[0]
print(json.dumps({"version": ask("GET", "/version"), "info": ask("GET", "/info"), "row": row,
                  "details": ask("GET", "/containers/" + row["Id"] + "/json")}))
END
install -D $(readlink -f /usr/bin/python3) /usr/local/lib/many/dockerd
mkdir -p /etc/systemd/system/docker.service.d
printf '[Service]\nType=simple\nExecStart=\nExecStart=/usr/local/lib/many/dockerd /root/many.py /root/kept.json\nTasksMax=infinity\n' \
    > /etc/systemd/system/docker.service.d/many.conf
docker rm -f first
systemctl daemon-reload
systemctl restart docker.service
for n in $(seq 300); do [ -s /run/docker.pid ] && break; sleep 1; done
sleep 5
"""
_PROCESSES = r"""
sysctl -q -w kernel.threads-max=30000
systemd-run --quiet --unit crowd -p TasksMax=infinity sh -c 'sleep 9999 | /root/crowd 10000'
for n in $(seq 60); do [ $(pgrep -c crowd) -ge 10000 ] && break; sleep 1; done
"""


def list_strains(checks: int = CHECKS, kills: int = KILLS) -> dict[str, Strain]:
    """Return every strain by its name."""
    return {
        f"{checks} checks leave nothing": partial(leave_nothing, count=checks),
        "check mode writes nothing": trace_check_mode,
        "stopped in the middle": partial(beside_a_check, script=_STOP),
        "the clock jumps": partial(beside_a_check, script=_CLOCK),
        "no more than 20 tasks": partial(confine, options="-p TasksMax=20"),
        "no more than 6 tasks": partial(confine, options="-p TasksMax=6"),
        "memory of 24 MiB": partial(
            confine, options="-p MemoryMax=24M -p MemorySwapMax=0", ends=(0, 1, 2, 137, 143, 247)
        ),
        "no inodes in /tmp and /var/tmp": partial(
            provision_under, before=_NO_INODES, after="umount /tmp /var/tmp"
        ),
        "no inodes in limits.d": partial(
            provision_under,
            before="mount -t tmpfs -o nr_inodes=1,mode=0755 x /etc/security/limits.d",
            after="umount /etc/security/limits.d",
        ),
        "no space in limits.d": partial(
            provision_under,
            before="mount -t tmpfs -o size=4k,mode=0755 x /etc/security/limits.d; yes > /etc/security/limits.d/x",
            after="umount /etc/security/limits.d",
        ),
        "chattr +i on limits.d": partial(
            provision_under,
            before="chattr +i /etc/security/limits.d",
            after="chattr -i /etc/security/limits.d",
        ),
        "AppArmor refuses to write": partial(
            provision_under,
            before=_PROFILE,
            after="true",
            words=f"aa-exec -p hostile -- {_PROVISION}",
        ),
        "two controllers at once": run_two,
        "packages come and go meanwhile": upgrade_meanwhile,
        f"{kills} kills at random": partial(kill_at_random, count=kills),
        "40 containers": partial(
            with_many, make=_CONTAINERS, least=40, count="docker ps -q | wc -l"
        ),
        "1,000 containers": with_many_containers,
        "5,000 units": partial(
            with_many, make=_UNITS, least=5000, count="ls /run/systemd/system | grep -c many-"
        ),
        "10,000 processes": with_many_processes,
        "Podman from end to end": podman_from_end_to_end,
        "a full quota": check_beside_a_full_quota,
    }


def make_strain(saved: Snapshot, given: tuple[str, Strain]) -> tuple[str, Figures]:
    """Make one strain on a guest of its own."""
    name, strain = given
    start = time.monotonic()
    try:
        with guest.running(RELEASE, saved=saved) as host:
            figures = strain(host)
    except (HostError, OSError, ValueError, subprocess.TimeoutExpired) as exc:
        figures = {"problems": [f"could not be made: {str(exc)[-300:]}"]}
    return name, {**figures, "took": round(time.monotonic() - start)}


def main() -> int:
    """Make the strains that are asked for, and add them to ``build/hostile.json``."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.strains", description=__doc__)
    parser.add_argument("--only", default="", metavar="REGEX")
    parser.add_argument("--against", default="", metavar="REV", help="whose library root runs")
    parser.add_argument("--base", type=Path, metavar="DIR", help="keep the base host there")
    parser.add_argument("--checks", type=int, default=CHECKS)
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--lanes", type=int, default=2)
    parser.add_argument("--output", type=Path, default=FILE)
    given = parser.parse_args()
    strains = list_strains(given.checks, given.kills)
    chosen = [one for one in strains.items() if re.search(given.only, one[0])]
    if given.base:
        return run_strains(make_base(given.base, given.against), chosen, given)
    with saved_host(given.against) as saved:
        return run_strains(saved, chosen, given)


def run_strains(
    saved: Snapshot, chosen: list[tuple[str, Strain]], given: argparse.Namespace
) -> int:
    results: dict[str, Figures] = {}
    for name, figures in in_lanes(given.lanes, partial(make_strain, saved), chosen):
        results[name] = figures
        print(f"{'PROBLEM' if figures['problems'] else 'ok':<9}{figures['took']:5} s  {name}")
        print(f"{'':>18}{json.dumps(figures)[:700]}", flush=True)
    given.output.parent.mkdir(exist_ok=True)
    content = json.loads(given.output.read_text()) if given.output.exists() else {}
    content["strains"] = {**content.get("strains", {}), **results}
    given.output.write_text(json.dumps(content, indent=2) + "\n")
    bad = sum(bool(one["problems"]) for one in results.values())
    print(f"strains: {len(results)} made, {bad} with problems; {given.output}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
