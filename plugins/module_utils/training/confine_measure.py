# SPDX-License-Identifier: BSD-2-Clause
"""Run a script that is tried: where nothing that it writes stays, until its loaders were seen.

The source of this file is a program of its own, started with one text of JSON and the words of the
command. It prints one line of JSON. Nothing of the library is imported here, as the user who runs
it may not read that.

Sources: user_namespaces(7), mount_namespaces(7), mount(2), Documentation/filesystems/overlayfs.rst
of the kernel, PR_SET_NO_NEW_PRIVS in prctl(2).
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_NEW_MOUNTS, _NEW_IPC, _NEW_USERS = 0x20000, 0x8000000, 0x10000000
_READ_ONLY, _REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 1, 0x20, 0x1000, 0x4000, 0x40000
_NO_NEW_PRIVS = 38
_SEE = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_FLAGS = {
    "nosuid": 2,
    "nodev": 4,
    "noexec": 8,
    "noatime": 0x400,
    "nodiratime": 0x800,
    "relatime": 0x200000,
}
"""What a mount has may not be taken from it in a user namespace."""

_OF_THE_KERNEL = {
    *("proc", "sysfs", "cgroup", "cgroup2", "devpts", "devtmpfs", "mqueue", "debugfs", "tracefs"),
    *("securityfs", "pstore", "bpf", "configfs", "fusectl", "binfmt_misc", "hugetlbfs", "autofs"),
    *("nsfs", "rpc_pipefs", "efivarfs", "selinuxfs"),
}
_SYSTEM = ("/usr", "/etc", "/boot", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Where no run writes: this stays as it is, and cannot be written."""

_SHM = "/dev/shm"  # noqa: S108 - it is a new one, which nobody else sees
_ELSEWHERE = (
    "docker",
    "podman",
    "nerdctl",
    "kubectl",
    "srun",
    "sbatch",
    "ssh",
    "pdsh",
    "machinectl",
)
"""Programs that start something out of our sight, where it would write."""

_OFFLINE = {"WANDB_MODE": "offline", "NEPTUNE_MODE": "offline", "CLEARML_OFFLINE_MODE": "1"}
_STEP = 0.05
_SETTLES, _LEAST_WAIT, _MOST_WAIT = 1.0, 3.0, 15.0
"""Seconds for a loader that comes after others: a moment, or as long as those before it took."""
_TAIL = 8192
_LARGEST = 2**20
"""Bytes of what one process may tell of its loaders."""


def confine(named: list[str]) -> str:
    """Leave the files of this host for copies of them in memory, and return a folder in there.

    All that is mounted becomes read-only, and each folder is covered by a layer that keeps what is
    written there until the last process of this namespace has ended.

    :param named: Paths where the command may write, such as its words.
    :raises OSError: If the kernel, or who set this host up, does not let us.
    """
    _leave_mounts()
    _mount("none", "/", "", _RECURSIVE | _PRIVATE)
    mounts = list(_read_mounts())
    points = {path for path, _kind, _flags in mounts}
    of_others = list(_open_shared(named, points))  # Before nothing can be written any more.
    shared = os.open(_SHM, _SEE)
    _mount("tmpfs", _SHM, "tmpfs", 2 | 4, f"mode=1777,size={_find_size()}")
    top = f"{_SHM}/.mlhost-tried"
    os.mkdir(top, 0o700)
    _keep_shared(shared, top)
    for path, kind, flags in mounts:
        if kind not in _OF_THE_KERNEL and not _is_device(path) and not flags & _READ_ONLY:
            _mount("none", path, "", _REMOUNT | _BIND | _READ_ONLY | flags)
    for path, kind, _flags in mounts:
        if kind not in _OF_THE_KERNEL and not _is_device(path) and not _may_hang(kind):
            for folder in _find_whole(path, points):
                handle = os.open(folder, _SEE)  # Both by one handle: a path is its owner's to turn.
                _cover(f"/proc/self/fd/{handle}", handle, top)
    for folder, handle in of_others:
        _cover(folder, handle, top)
    _hide_programs()
    return top


def _leave_mounts() -> None:
    """Get namespaces of our own, of mounts and of System V's memory and semaphores.

    Who is not root gets them in a user namespace.
    """
    library = ctypes.CDLL(None, use_errno=True)
    uid, gid = os.geteuid(), os.getegid()
    kinds = _NEW_MOUNTS | _NEW_IPC | (_NEW_USERS if uid else 0)
    if library.unshare(kinds):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "unshare")
    if uid:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{uid} {uid} 1")
        _write("/proc/self/gid_map", f"{gid} {gid} 1")


def _mount(source: str, path: str, kind: str, flags: int, data: str = "") -> None:
    library = ctypes.CDLL(None, use_errno=True)
    texts = [os.fsencode(one) if one else None for one in (source, path, kind)]
    options = data.encode() if data else None
    if library.mount(*texts, ctypes.c_ulong(flags), options):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), f"mount on {path}")


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.read()


def _read_mounts() -> Iterator[tuple[str, str, int]]:
    """Yield the path of each mount, its kind and its flags, the outermost first."""
    for line in _read("/proc/self/mountinfo").splitlines():
        before, _dash, after = line.partition(" - ")
        fields, kind = before.split(" "), after.split(" ")[0]
        path = fields[4]
        for escaped, plain in ((r"\040", " "), (r"\011", "\t"), (r"\012", "\n"), (r"\134", "\\")):
            path = path.replace(escaped, plain)
        words = fields[5].split(",")
        flags = sum(_FLAGS[word] for word in words if word in _FLAGS)
        yield path, kind, flags | (_READ_ONLY if "ro" in words else 0)


def _is_device(path: str) -> bool:
    return path == "/dev" or path.startswith("/dev/")


def _may_hang(kind: str) -> bool:
    """Tell whether a user has mounted it, who may never answer root."""
    return kind.startswith("fuse") and not os.geteuid()


def _read_memory() -> dict[str, int]:
    """Return the bytes of /proc/meminfo by name."""
    rows = (line.split() for line in _read("/proc/meminfo").splitlines())
    return {row[0].rstrip(":"): int(row[1]) * 1024 for row in rows}


def _find_size() -> int:
    """Return how many bytes all that is written may take: it is memory."""
    return _read_memory()["MemAvailable"] // 2


def _keep_shared(shared: int, top: str) -> None:
    """Let what others have put into /dev/shm be read under its name."""
    os.mkdir(f"{top}/shared")
    _mount(f"/proc/self/fd/{shared}", f"{top}/shared", "", _BIND)
    flags = [flags for path, _kind, flags in _read_mounts() if path == f"{top}/shared"][-1]
    _mount("none", f"{top}/shared", "", _REMOUNT | _BIND | _READ_ONLY | flags)
    os.close(shared)
    for name in os.listdir(f"{top}/shared"):
        os.symlink(f"{top}/shared/{name}", f"{_SHM}/{name}")


def _find_whole(folder: str, points: set[str]) -> Iterator[str]:
    """Yield a folder, or those in it, that nothing else is mounted below."""
    if folder in _SYSTEM or os.path.islink(folder) or not os.path.isdir(folder):
        return
    start = folder.rstrip("/") + "/"
    if folder != "/" and not any(point.startswith(start) for point in points):
        yield folder
        return
    try:
        with os.scandir(folder) as entries:
            names = [one.name for one in entries if one.is_dir(follow_symlinks=False)]
    except OSError:
        return  # Nobody reads there, or writes.
    for name in names:
        if start + name not in points:
            yield from _find_whole(start + name, points)


def _open_shared(named: list[str], points: set[str]) -> Iterator[tuple[str, int]]:
    """Yield folders where this user may write, each with a handle, the outermost first.

    Those of others need a layer of their own: into the one above, the kernel copies no folder of a
    user whom the namespace does not know (EOVERFLOW).
    """
    folders = {one for one in map(_find_folder, named) if one} if os.geteuid() else set()
    for folder in sorted(folders):
        is_whole = not any(point.startswith(f"{folder}/") for point in points)
        is_file_system = not folder.startswith(("/dev/", "/proc/", "/sys/"))
        if is_whole and is_file_system and os.access(folder, os.W_OK):
            yield folder, os.open(folder, _SEE)


def _find_folder(path: str) -> str:
    """Return the folder that a path is or would be made in; nothing where it is the whole tree."""
    path = os.path.realpath(path)
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return "" if path == "/" else path


def _list_named(given: dict[str, Any], words: list[str]) -> list[str]:
    """Return paths where a command may write: those of its words and of its environment."""
    values = [one.rpartition("=")[2] for one in words]
    values += [one for one in os.environ.values() if one.startswith("/") and ":" not in one]
    own = ["/tmp", "/var/tmp", given["folder"], *given["paths"]]  # noqa: S108 - they are covered
    return own + [os.path.join(given["folder"], one) for one in values if "\0" not in one]


def _cover(folder: str, lower: int, top: str) -> None:
    """Lay a layer over an open folder; where that cannot be, it stays and cannot be written."""
    number = len(os.listdir(top))
    upper, work = f"{top}/{number}/upper", f"{top}/{number}/work"
    try:
        if not os.access(folder, os.R_OK | os.X_OK):
            return
        os.makedirs(work)
        os.mkdir(upper)
        found = os.fstat(lower)
        with suppress(OSError):  # Of a user whom this namespace does not know.
            os.chown(upper, found.st_uid, found.st_gid)
        os.chmod(upper, stat.S_IMODE(found.st_mode))
        options = f"lowerdir=/proc/self/fd/{lower},upperdir={upper},workdir={work}"
        for more in (",userxattr", "") if os.geteuid() else ("",):
            with suppress(OSError):
                _mount("overlay", folder, "overlay", 0, options + more)
                return
    finally:
        os.close(lower)


def _hide_programs() -> None:
    for name in _ELSEWHERE:
        path = shutil.which(name)
        if path:
            _mount(os.devnull, os.path.realpath(path), "", _BIND)


class Trial:
    """A script that runs, and what its loaders have shown so far."""

    def __init__(self, given: dict[str, Any], folder: str, words: list[str]) -> None:
        self.given, self.into = given, f"{folder}/reports"
        hook = f"{folder}/hook"
        os.mkdir(self.into, 0o700)
        os.mkdir(hook, 0o700)
        _write(f"{hook}/sitecustomize.py", given["hook"])
        path = os.pathsep.join(filter(None, (hook, os.environ.get("PYTHONPATH"))))
        told = {given["into"]: self.into, given["number"]: str(given["batches"])}
        environment = {**_OFFLINE, **os.environ, "PYTHONPATH": path, **told}
        self.tail = b""
        self.begin = time.monotonic()
        self.began_to_wait = 0.0
        self.least = min(_read_memory()["MemTotal"] // 20, _read_memory()["MemAvailable"] // 2)
        self.reader, writer = os.pipe()
        self.process = subprocess.Popen(  # noqa: S603 - the command is the user's own
            words,
            stdin=subprocess.DEVNULL,
            stdout=writer,
            stderr=writer,
            env=environment,
            preexec_fn=_be_first_to_go,
        )
        os.close(writer)

    def run(self) -> dict[str, Any]:
        """Wait until enough was seen, or nothing more will be; return all that is known."""
        why = ""
        while not why and self.process.poll() is None:
            self._hear()
            why = self._find_end(self.read_reports())
        self._hear()
        with suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)
        tail = self.tail.decode("utf-8", "replace")
        told = {"why": why, "status": self.process.returncode, "tail": tail}
        return {**told, "reports": self.read_reports()}

    def _hear(self) -> None:
        """Take what the script says for a moment, and keep the end of it."""
        until = time.monotonic() + _STEP
        while select.select([self.reader], [], [], max(until - time.monotonic(), 0))[0]:
            part = os.read(self.reader, 65536)
            self.tail = (self.tail + part)[-_TAIL:]
            if not part or time.monotonic() > until:
                break
        time.sleep(max(until - time.monotonic(), 0))

    def read_reports(self) -> list[dict[str, Any]]:
        """Return what each process has written of its loaders."""
        names = [one for one in os.listdir(self.into) if one.endswith(".json")]
        return [_read_report(f"{self.into}/{name}") for name in sorted(names)]

    def _find_end(self, reports: list[dict[str, Any]]) -> str:
        """Return why the script is ended now, if it is."""
        now = time.monotonic()
        if now - self.begin > self.given["seconds"] or not _is_alive(self.given["asker"]):
            return "late"
        if _read_memory()["MemAvailable"] < self.least:
            return "memory"
        loaders = [one for report in reports for one in report["loaders"]]
        number = self.given["batches"]
        if not loaders or not all(one["batches"] >= number or one["ended"] for one in loaders):
            self.began_to_wait = 0.0
            return ""
        self.began_to_wait = self.began_to_wait or now
        may_more = any(one["ended"] for one in loaders) or any(one["unused"] for one in reports)
        so_far = min(max(self.began_to_wait - self.begin, _LEAST_WAIT), _MOST_WAIT)
        waits = so_far if may_more else _SETTLES
        return "seen" if now - self.began_to_wait >= waits else ""


def _read_report(path: str) -> dict[str, Any]:
    """Return what a process has written of its loaders; the script may put anything there.

    :raises OSError: If it is not a report.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(handle, "rb") as file:
        is_file = stat.S_ISREG(os.fstat(handle).st_mode)
        content = file.read(_LARGEST) if is_file else b""
    try:
        report: dict[str, Any] = json.loads(content)
        report["loaders"], report["unused"]
    except (ValueError, LookupError, TypeError, RecursionError):
        raise OSError(0, "is not a report of its loaders", path) from None
    return report


def _is_alive(pid: int) -> bool:
    """Tell whether a process is there, whose ever it is: who asked may have been killed."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _be_first_to_go() -> None:
    """Be what the kernel ends where memory is short, and gain no rights."""
    os.setpgid(0, 0)
    with suppress(OSError):
        _write("/proc/self/oom_score_adj", "1000")


def try_command(given: dict[str, Any], words: list[str]) -> dict[str, Any]:
    """Run a command as far as is asked, and return what was seen; or ``trouble``."""
    ctypes.CDLL(None, use_errno=True).prctl(_NO_NEW_PRIVS, *map(ctypes.c_ulong, (1, 0, 0, 0)))
    folder = ""
    try:
        if given["confines"]:
            try:
                folder = confine(_list_named(given, words))
            except OSError as error:
                return {"open": f"{error.filename or 'a mount'}: {error.strerror}"}
        else:
            folder = tempfile.mkdtemp(prefix="mlhost-tried-")
        os.chdir(given["folder"])
        return Trial(given, folder, words).run()
    except OSError as error:
        return {"trouble": f"{error.filename or words[0]}: {error.strerror}"}
    finally:
        if not given["confines"]:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(try_command(json.loads(sys.argv[1]), sys.argv[2:])) + "\n")
