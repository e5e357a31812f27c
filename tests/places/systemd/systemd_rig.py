# SPDX-License-Identifier: GPL-3.0-or-later
"""Give generated units and manager files to a real systemd and ask what it made of them.

Runs in a mount namespace of its own (``unshare --mount``) and starts the systemd of a Debian
release as PID 1 of a container made of namespaces alone: the programs are that release's, the
kernel is this machine's.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

if find_spec("mlhost_limits") is None:  # On a guest it is installed.
    from tests.conftest import load_library

    load_library()

from mlhost_limits.core.values import RLIMITS, UNLIMITED, Rlimit, parse_proc_limits
from mlhost_limits.host.files import read_distribution
from mlhost_limits.services.policy import TASKS
from mlhost_limits.services.tasks_causes import predict_default, predict_tasks
from mlhost_limits.systemd.limits import (
    Reading,
    read_manager_limits,
    read_unit_limits,
    resolve_unit_limits,
)
from mlhost_limits.systemd.model import Files as UnitFiles
from mlhost_limits.systemd.unit_file import UNIT_DIRECTORIES
from mlhost_limits.systemd.unit_read import CONF_DIRECTORIES, read_manager_files, read_unit_files

from tests.oracle.userland import mount, mount_root
from tests.places.systemd.systemd_files import (
    BASES,
    MANAGER_BASES,
    Case,
    Files,
    find_smaller,
    make_case,
    make_shared,
)

TASK_SYSCTLS = ("pid_max", "threads-max")
UNITS_PER_ROUND, STARTED_PER_ROUND = 12, 3
ENOUGH = 3  # To find the smallest case takes a minute.
MANAGER = ("--unit=oracle.target", "--log-target=null", "--show-status=0")
ABOVE_NR_OPEN = "[Service]\nLimitNOFILE=500:infinity\n"
TARGET = "[Unit]\nDefaultDependencies=no\n"
NAMESPACES = ("--kill-child", "--mount", "--pid", "--fork", "--net", "--uts", "--ipc", "--cgroup")
BOOT = """
mount -t proc proc "$1/proc" && mount -t tmpfs tmpfs "$1/sys" && mkdir -p "$1/sys/fs/cgroup" &&
mount -t cgroup2 cgroup2 "$1/sys/fs/cgroup" && root=$1 && shift &&
exec env -i container=oracle PATH=/usr/sbin:/usr/bin chroot "$root" /lib/systemd/systemd "$@"
"""
Limits = dict[str, Rlimit]


class Manager:
    """A systemd that runs as PID 1 in namespaces of its own."""

    def __init__(self, tree: Path, root: Path) -> None:
        self.root = root
        mount_root(tree, root, ("usr/lib/systemd/system", "usr/local/lib/systemd"))
        mount("-t", "tmpfs", "tmpfs", root / "usr/lib/systemd/system.conf.d")
        (root / "etc/os-release").write_bytes((tree / "usr/lib/os-release").read_bytes())
        (root / "etc/machine-id").write_text("0123456789abcdef0123456789abcdef\n")
        self.write({"/etc/systemd/system/oracle.target": TARGET})
        self.cgroup = find_cgroup() / f"mlhost-{os.getpid()}"
        self.cgroup.mkdir()
        words = ["unshare", *NAMESPACES, "sh", "-c", BOOT, "sh", str(root), *MANAGER]
        self.outer = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=self.enter_cgroup,
        )
        self.pid = self.wait()

    def enter_cgroup(self) -> None:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: it never outlives us.
        (self.cgroup / "cgroup.procs").write_text(str(os.getpid()))

    def wait(self) -> int:
        """Return the process of the manager once it answers."""
        children = Path(f"/proc/{self.outer.pid}/task/{self.outer.pid}/children")
        for _ in range(300):
            found = children.read_text().split()
            self.pid = int(found[0]) if found else 0
            if self.pid and "NOFILE" in self.ask("show", "-p", "DefaultLimitNOFILE"):
                return self.pid
            time.sleep(0.1)
        raise TimeoutError("this systemd does not answer")

    def run(self, *words: str) -> str:
        """Run a program beside the manager; return what it prints."""
        enter = ["nsenter", "-t", str(self.pid), "-a", "--root", "--wd", *words]
        return subprocess.run(
            enter, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        ).stdout

    def ask(self, *words: str) -> str:
        return self.run("/bin/systemctl", "--no-pager", *words)

    def write(self, files: Files) -> None:
        for path, content in files.items():
            target = self.root / path[1:]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)
            if content.startswith("-> "):
                target.symlink_to(content[3:])
            else:
                target.write_bytes(content.encode("latin-1"))

    def clear(self) -> None:
        """Remove every file that a round may have written."""
        for base in (*BASES, *(f"{base}/system.conf.d" for base in MANAGER_BASES)):
            folder = self.root / base[1:]
            for old in folder.iterdir() if folder.is_dir() else ():
                shutil.rmtree(old) if old.is_dir() and not old.is_symlink() else old.unlink()
        for base in MANAGER_BASES[:3]:
            (self.root / base[1:] / "system.conf").unlink(missing_ok=True)
        self.write({"/etc/systemd/system/oracle.target": TARGET})

    def stop(self) -> None:
        """End PID 1, and with it everything in its namespace."""
        os.kill(self.pid, signal.SIGKILL)
        self.outer.wait()
        for folder, _, _ in os.walk(self.cgroup, topdown=False):
            os.rmdir(folder)


def find_cgroup() -> Path:
    """Return our own place in the unified hierarchy."""
    rows = (line.split() for line in Path("/proc/self/mounts").read_text().splitlines())
    top = next(row[1] for row in rows if row[2] == "cgroup2")
    own = Path("/proc/self/cgroup").read_text().partition("0::")[2].split("\n")[0]
    return Path(top + own)


def read_limits(shown: dict[str, str], prefix: str) -> Limits:
    """Return the limits that ``systemctl show`` prints."""
    keys = {name: prefix + name.upper() for name in RLIMITS}
    tasks = _read(shown[f"{prefix[: -len('Limit')]}TasksMax"])
    return {
        **{
            name: Rlimit(_read(shown[key + "Soft"]), _read(shown[key]))
            for name, key in keys.items()
        },
        TASKS: Rlimit(tasks, tasks),
    }


def _read(text: str) -> int:
    return UNLIMITED if text == "infinity" else int(text)


class Rig:
    """One manager, and what its defaults are when nothing is stated."""

    def __init__(self, manager: Manager) -> None:
        self.manager = manager
        self.started = self.clamped = 0
        names = [f"Limit{name.upper()}" for name in RLIMITS]
        both = [name + end for name in names for end in ("", "Soft")]
        self.properties = ["-p", ",".join(["Id", "LoadState", "MainPID", "TasksMax", *both])]
        self.defaults = ["-p", ",".join(f"Default{name}" for name in ("TasksMax", *both))]
        manager.ask("daemon-reload")
        self.unstated = self.show_manager()
        self.of_pid_1 = parse_proc_limits(manager.run("/bin/cat", "/proc/1/limits"))
        capabilities = manager.run("/bin/cat", "/proc/1/status").partition("CapEff:")[2].split()[0]
        self.privileged = bool(int(capabilities, 16) >> 24 & 1)
        self.nr_open = int(Path("/proc/sys/fs/nr_open").read_text())
        # Since Linux 6.14 each namespace has a pid_max of its own.
        numbers = manager.run("/bin/cat", *(f"/proc/sys/kernel/{name}" for name in TASK_SYSCTLS))
        pids, threads = map(int, numbers.split())
        self.highest = min(pids - 1, threads)
        self.vendor = read_distribution(str(manager.root))
        self.files = UnitFiles(None, vendor=self.vendor)

    def show_manager(self) -> Limits:
        text = self.manager.ask("show", *self.defaults)
        return read_limits(dict(line.split("=", 1) for line in text.splitlines()), "DefaultLimit")

    def show(self, units: list[str]) -> list[dict[str, str]]:
        text = self.manager.ask("show", *self.properties, *units)
        return [
            dict(line.split("=", 1) for line in block.splitlines())
            for block in text.strip().split("\n\n")
        ]

    def reload(self, files: Files) -> None:
        self.manager.clear()
        self.manager.write(files)
        self.manager.ask("daemon-reload")

    def predict_manager(self) -> tuple[Reading, Limits]:
        conf, dropins = read_manager_files(str(self.manager.root), directories=CONF_DIRECTORIES)
        reading = read_manager_limits(conf, dropins)
        self.files = UnitFiles(None, (), conf, tuple(dropins), vendor=self.vendor)
        tasks = predict_default(self.files, self.highest)
        return reading, {**self.fill(reading, Reading([], [])), TASKS: Rlimit(tasks, tasks)}

    def fill(self, manager: Reading, unit: Reading) -> Limits:
        """Return every limit: as stated, or as it is when nothing is stated."""
        pairs = {name: list(limit) for name, limit in self.unstated.items()}
        for item, kind, bound in resolve_unit_limits(manager, unit):
            pairs[item][kind == "hard"] = int(bound.winner.value)
        return {name: Rlimit(*pair) for name, pair in pairs.items()}

    def predict(self, unit: str, manager: Reading) -> tuple[tuple[str, ...], Limits]:
        """Return the states in which the unit may be, and its limits if it is loaded."""
        main, dropins = read_unit_files(unit, str(self.manager.root), UNIT_DIRECTORIES)
        if main is None:
            return ("not-found",), {}
        if not main.text:
            return ("masked",), {}
        reading = read_unit_limits("service", main, dropins)
        if reading.refused:
            return ("error", "bad-setting"), {}
        files = self.files._replace(main=main, dropins=tuple(dropins))
        tasks = predict_tasks("service", files, self.highest)
        return ("loaded",), {**self.fill(manager, reading), TASKS: Rlimit(tasks, tasks)}

    def compare(self, units: list[str]) -> list[list[str]]:
        """Return for the manager and then for each unit what differs."""
        reading, expected = self.predict_manager()
        differences = [find_differences(expected, self.show_manager())]
        for unit, shown in zip(units, self.show(units)):
            states, limits = self.predict(unit, reading)
            if shown["LoadState"] not in states:
                differences.append([f"predicted {states[0]}, got {shown['LoadState']}"])
            elif limits:
                differences.append(find_differences(limits, read_limits(shown, "Limit")))
            else:
                differences.append([])
        return differences

    def compare_process(self, unit: str) -> list[str]:
        """Start a unit and return where its process differs from what it may get."""
        reading, _ = self.predict_manager()
        states, wanted = self.predict(unit, reading)
        if states != ("loaded",):
            return []
        self.manager.ask("start", unit)
        pid = self.show([unit])[0]["MainPID"]
        text = self.manager.run("/bin/cat", f"/proc/{pid}/limits") if pid != "0" else ""
        self.manager.ask("stop", unit)
        if not text:  # Too little of something to start at all.
            return []
        self.started += 1
        expected = {name: self.clamp(name, wanted[name]) for name in RLIMITS}
        self.clamped += expected["nofile"] != wanted["nofile"]
        return find_differences(expected, parse_proc_limits(text))

    def clamp(self, name: str, wanted: Rlimit) -> Rlimit:
        """Return what setrlimit(2) leaves of a limit (``setrlimit_closest()`` of systemd)."""
        highest = self.of_pid_1[name]
        above = name == "nofile" and wanted.hard > self.nr_open
        if not above and (self.privileged or wanted.hard <= highest.hard):
            return wanted
        return Rlimit(min(wanted.soft, highest.hard), min(wanted.hard, highest.hard))

    def shrink(self, case: Case) -> Case:
        """Return the smallest case on the way down that still differs."""
        for smaller in find_smaller(case.files):
            self.reload(smaller)
            if any(self.compare([case.unit])):
                return self.shrink(case._replace(files=smaller))
        return case


def find_differences(expected: Limits, got: Limits) -> list[str]:
    return [
        f"{name}: predicted {limit.soft}:{limit.hard}, got {got[name].soft}:{got[name].hard}"
        for name, limit in expected.items()
        if limit != got[name]
    ]


def run_round(rig: Rig, rng: random.Random, number: int) -> list[tuple[Case, list[str]]]:
    """Write one set of files for the manager and for some units; return what differs."""
    shared = make_shared(rng)
    first = number * UNITS_PER_ROUND
    cases = [make_case(rng, first + index) for index in range(UNITS_PER_ROUND)]
    cases[0].files[f"/etc/systemd/system/u{first}-.service.d/zz.conf"] = ABOVE_NR_OPEN
    rig.reload(
        {
            path: text
            for one in (shared, *(case.files for case in cases))
            for path, text in one.items()
        }
    )
    found = rig.compare([case.unit for case in cases])
    started = [rig.compare_process(case.unit) for case in cases[:STARTED_PER_ROUND]]
    whole = [Case(case.unit, {**shared, **case.files}) for case in cases]
    rows = [(Case(cases[0].unit, shared), found[0]), *zip(whole, found[1:])]
    return [row for row in [*rows, *zip(whole, started)] if row[1]]


def main(tree: str, root: str, rounds: str, seed: str) -> None:
    """Print as JSON how many files were tried, and the smallest cases that differ."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    manager = Manager(Path(tree), Path(root))
    try:
        rig = Rig(manager)
        rng = random.Random(int(seed))
        mismatches = []
        for number in range(int(rounds)):
            for case, differences in run_round(rig, rng, number)[:ENOUGH]:
                least = rig.shrink(case)
                mismatches.append([least.unit, least.files, differences])
            if len(mismatches) >= ENOUGH:
                break
    finally:
        manager.stop()
    done = number + 1
    processes = done * STARTED_PER_ROUND
    cases = {"managers": done, "units": done * UNITS_PER_ROUND, "processes": processes}
    cases["not_started"] = processes - rig.started
    json.dump({**cases, "clamped": rig.clamped, "mismatches": mismatches}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
