# SPDX-License-Identifier: GPL-3.0-or-later
"""Make this process, and what it starts, see a made-up host: namespaces, mounts, processes.

All of it is this process tree's own and goes with it. A process on that host is one that sleeps;
what /proc says of it (its cgroup, its age, its parent, its words) is a file mounted over.
"""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

STAND_INS = Path(__file__).with_name("stand_ins")
INSTALLED = "local/lib/mlhost-limits"
SLEEP = "/usr/bin/sleep"
_NEWNS, _NEWCGROUP, _NEWUTS, _NEWIPC, _NEWPID = 0x20000, 0x2000000, 0x4000000, 0x8000000, 0x20000000
_BIND, _REC, _PRIVATE = 0x1000, 0x4000, 0x40000
_OPAQUE = ("lib/systemd", "lib/sysctl.d", "lib/tuned", "lib/modules-load.d", "share/containers")
_HIDDEN = (
    *(
        "docker",
        "dockerd",
        "containerd",
        "ctr",
        "crio",
        "podman",
        "sshd",
        "cron",
        "sudo",
        "su",
        "agetty",
    ),
    *("slurmd", "slurmctld", "scontrol", "sinfo", "srun", "scancel", "systemctl", "systemd-run"),
    *("runc", "crun", "tuned", "tuned-adm", "nvidia-smi", "dockerd-rootless.sh"),
)
LIMITS = {
    "cpu": (-1, -1),
    "fsize": (-1, -1),
    "data": (-1, -1),
    "stack": (8 * 2**20, -1),
    "core": (0, -1),
    "rss": (-1, -1),
    "nproc": (4096, 4096),
    "nofile": (1024, 4096),
    "memlock": (8 * 2**20, 8 * 2**20),
    "as": (-1, -1),
    "sigpending": (4096, 4096),
    "msgqueue": (819200, 819200),
    "nice": (0, 0),
    "rtprio": (0, 0),
}
"""What the first process of the host has, and all that nobody gave anything else.

Root may lower these and, in a container, not raise them: no run needs more.
"""

_SYS_RESOURCE = 24
_NUMBERS = {"sigpending": 11, "msgqueue": 12, "nice": 13, "rtprio": 14}
_libc = ctypes.CDLL(None, use_errno=True)


class Daemon(NamedTuple):
    """A process of the host; ``name`` is its program's.

    :param words: Its command line, where something reads it.
    :param old: Whether it started before every file of the host was written.
    :param parent: The process that /proc names as its parent.
    :param socket: Where it listens, if it does.
    """

    name: str
    pid: int
    cgroup: str = "/"
    words: tuple[str, ...] = ()
    limits: dict[str, tuple[int, int]] = {}
    uid: int = 0
    old: bool = False
    parent: int = 1
    socket: str = ""


def unshare() -> None:
    """Leave the namespaces of the machine; the next child is the first process of the new ones."""
    _check(_libc.unshare(_NEWNS | _NEWCGROUP | _NEWUTS | _NEWIPC | _NEWPID), "unshare")


def mount(source: str, target: str, kind: str = "", flags: int = _BIND, told: str = "") -> None:
    """Mount a file or folder over another, or a file system."""
    done = _libc.mount(
        source.encode(), target.encode(), kind.encode() or None, flags, told.encode() or None
    )
    _check(done, f"mount {source} {target}")


def _check(done: int, what: str) -> None:
    if done:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


class Setting(NamedTuple):
    """How a host is: what runs, which programs it has, whether systemd does, its /dev/shm."""

    daemons: tuple[Daemon, ...] = ()
    programs: tuple[str, ...] = ()
    booted: bool = True
    shm: str = "64m"


def build(folder: Path, setting: Setting) -> None:
    """Mount the host: its folders are those of *folder*, its programs are stand-ins."""
    name_process("systemd" if setting.booted else "sh")
    _check(_libc.sethostname(b"node1", 5), "sethostname")
    mount("none", "/", flags=_REC | _PRIVATE)
    mount(str(folder), "/mnt")  # It may lie below a folder that is mounted over.
    folder = Path("/mnt")
    mount("proc", "/proc", "proc", 0)
    mount("tmpfs", "/dev/shm", "tmpfs", 0, f"size={setting.shm}")
    _mount_programs(folder, setting.programs)
    for name in ("etc", "run", "var/lib", "var/tmp", "home", "srv"):
        mount(str(folder / name), f"/{name}")
    mount(str(folder / "cgroup"), "/sys/fs/cgroup")
    for path in sorted((folder / "proc").rglob("*")):
        target = f"/proc/{path.relative_to(folder / 'proc')}"
        if path.is_file() and os.path.exists(target):
            mount(str(path), target)
    for name in ("calls", "show", "enabled", "active", "pids"):
        path = Path("/run/stand-ins", name)
        path.touch() if name == "calls" else path.mkdir(exist_ok=True)
        path.chmod(0o777 if name != "calls" else 0o666)
    if setting.booted:
        os.makedirs("/run/systemd/system", exist_ok=True)
    else:
        shutil.rmtree("/run/systemd", ignore_errors=True)
    for name, pair in LIMITS.items():
        _limit(name, pair)
    _forgo_raising()


def keep_programs(folder: Path) -> None:
    """Keep what a run has installed: the host's /usr goes with the run."""
    kept = folder / "files_of_usr" / INSTALLED
    shutil.rmtree(kept, ignore_errors=True)
    if os.path.isdir(f"/usr/{INSTALLED}"):
        shutil.copytree(f"/usr/{INSTALLED}", kept)


def name_process(name: str) -> None:
    """Give this process a name, which may be told."""
    Path("/proc/self/comm").write_text(name)


def _forgo_raising() -> None:
    """Give up the right to raise hard limits, which root has on some machines and not on others.

    Source: capset(2), version 3; a program that is started gets it no more (PR_CAPBSET_DROP).
    """
    _check(_libc.prctl(24, _SYS_RESOURCE, 0, 0, 0), "prctl")
    status = Path("/proc/self/status").read_text()
    has = int(status.partition("CapEff:")[2].split()[0], 16) & ~(1 << _SYS_RESOURCE)
    low, high = has & 0xFFFFFFFF, has >> 32
    told = struct.pack("6I", low, low, 0, high, high, 0)
    _check(_libc.capset(struct.pack("Ii", 0x20080522, 0), told), "capset")


def _mount_programs(folder: Path, extra: tuple[str, ...]) -> None:
    """Lay the stand-ins over /usr, and hide what this machine has that the host has not."""
    mount("tmpfs", str(folder / "usr"), "tmpfs", 0)
    upper = folder / "usr" / "upper"
    for name in ("bin", "sbin", "local/bin", "local/sbin", *_OPAQUE, "../work"):
        os.makedirs(upper / name)
    for name in _OPAQUE:
        os.setxattr(upper / name, "trusted.overlay.opaque", b"y")
    for name in _HIDDEN:
        for place in ("bin", "sbin", "local/bin", "local/sbin"):
            os.mknod(upper / place / name, 0o020000, 0)
    for name in ("systemctl", "systemd-run", "su", *extra):
        (upper / "bin" / name).unlink(missing_ok=True)
        (upper / "bin" / name).write_bytes((STAND_INS / name).read_bytes())
        (upper / "bin" / name).chmod(0o755)
    told = f"lowerdir=/usr,upperdir={upper},workdir={folder}/usr/work"
    source = folder / "files_of_usr"
    subprocess.run(["cp", "-rT", str(source), str(upper)], check=True)
    mount("overlay", "/usr", "overlay", 0, told)


def _limit(name: str, pair: tuple[int, int]) -> None:
    number = _NUMBERS.get(name, getattr(resource, f"RLIMIT_{name.upper()}", None))
    assert number is not None
    resource.setrlimit(number, pair)


def choose_next_pid(pid: int) -> None:
    """Let the next process that starts have this number, so that nothing told of it varies."""
    Path("/proc/sys/kernel/ns_last_pid").write_text(str(pid - 1))


def start(daemons: tuple[Daemon, ...]) -> None:
    """Start the processes of the host, and say of each what /proc shall say."""
    for one in daemons:
        if one.socket:
            Path(one.socket).unlink(missing_ok=True)  # An earlier run left it.
        _copy_program(one)
        choose_next_pid(one.pid)
        pid = os.fork()
        if pid == 0:
            _become(one)
    for one in daemons:
        _wait_for(one)
        _disguise(one)


def _copy_program(one: Daemon) -> str:
    program = os.path.realpath(sys.executable) if one.socket else SLEEP
    path = f"/usr/sbin/{one.name}"
    if not os.path.exists(path):
        Path(path).write_bytes(Path(program).read_bytes())
        Path(path).chmod(0o755)
    return path


def _become(one: Daemon) -> None:
    """Be the daemon. Never returns."""
    try:
        for name, pair in one.limits.items():
            _limit(name, pair)
        if one.uid and not one.socket:
            os.setgroups([])
            os.setgid(one.uid)
            os.setuid(one.uid)
        os.closerange(3, 64)
        path, home = f"/usr/sbin/{one.name}", {"PYTHONHOME": sys.base_prefix}
        if one.socket:  # It becomes its user once it has loaded what that one may not read.
            words = [path, "-S", str(STAND_INS / "engine.py"), one.socket, str(one.uid)]
            libraries = {"LD_LIBRARY_PATH": f"{sys.base_prefix}/lib"}
            os.execve(path, words, {**home, **libraries, "PATH": "/usr/bin"})
        os.execve(path, [one.words[0] if one.words else path, "600"], {})
    finally:
        os._exit(127)


def _wait_for(one: Daemon) -> None:
    """Wait until a process is the program that it shall be, and listens if it shall."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        is_it = os.readlink(f"/proc/{one.pid}/exe") == f"/usr/sbin/{one.name}"
        if is_it and (not one.socket or os.path.exists(one.socket)):
            return
        time.sleep(0.001)
    raise TimeoutError(f"{one.name} does not come up")


def _disguise(one: Daemon) -> None:
    """Mount over what /proc says of a process."""
    place = f"/proc/{one.pid}"
    before, after = Path(f"{place}/stat").read_text().rpartition(")")[::2]
    fields = after.split()
    fields[1], fields[19] = str(one.parent), "1" if one.old else str(10**9)
    told = {"stat": f"{before}) {' '.join(fields)}\n", "cgroup": f"0::{one.cgroup}\n"}
    if one.words:
        told["cmdline"] = "".join(f"{word}\0" for word in one.words)
    show(one.pid, told)
    os.chown(f"/run/stand-ins/{one.pid}-cgroup", one.uid, one.uid)  # The user's own may move it.
    procs = Path(f"/sys/fs/cgroup{one.cgroup}")
    if one.cgroup != "/":
        procs.mkdir(parents=True, exist_ok=True)
        with (procs / "cgroup.procs").open("a") as file:
            file.write(f"{one.pid}\n")


def show(pid: int, told: dict[str, str]) -> None:
    """Let /proc say this of a process."""
    for name, text in told.items():
        path = Path(f"/run/stand-ins/{pid}-{name}")
        path.write_text(text)
        mount(str(path), f"/proc/{pid}/{name}")
