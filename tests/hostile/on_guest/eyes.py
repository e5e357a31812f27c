# SPDX-License-Identifier: GPL-3.0-or-later
"""Root's eyes on the guest: what files there are, who runs where, and what a user could read."""

from __future__ import annotations

import ctypes
import glob
import hashlib
import os
import re
import stat
import struct
from collections.abc import Iterator
from contextlib import suppress

UID = 1001
SLICE = f"/user.slice/user-{UID}.slice"
LOOT = "/home/mallory/loot"
HASHED = ("/etc/", "/root/", "/srv/", "/home/alice/", "/home/bob/")
TOPS = ("/etc", "/root", "/home", "/srv", "/tmp", "/var", "/run", "/dev/shm")
PASSING = (
    *(
        "/run/systemd",
        "/run/udev",
        "/run/user",
        "/run/docker",
        "/run/containerd",
        "/run/credentials",
    ),
    *("/run/mlhost-limits", "/run/dbus", "/run/log", "/run/lock", "/run/sudo", "/run/libpod"),
    *("/run/crun", "/run/netns", "/run/containers", "/run/utmp", "/run/motd", "/run/sshd"),
    *("/run/mount", "/run/blkid", "/run/munge", "/run/tmpfiles.d", "/run/podman", "/run/lvm"),
    *("/run/log", "/var/log", "/var/cache", "/var/lib/systemd", "/var/lib/docker"),
    *("/var/lib/containerd", "/var/lib/containers", "/var/lib/dpkg", "/var/lib/apt"),
    *("/var/spool/slurmctld", "/var/spool/slurmd", "/var/lib/munge", "/var/lib/mlhost-limits"),
    *(
        "/etc/.pwd.lock",
        "/tmp/root-has-read",
        "/tmp/systemd-private-",
        "/var/tmp/systemd-private-",
        "/root/hostile",
        "/root/.cache",
        "/home/alice/.cache",
        "/home/bob/.cache",
    ),
)
"""What goes on by itself on a host, and what root's command keeps on purpose."""
READABLE = ("/tmp", "/var/tmp", "/dev/shm", "/home", "/run", "/var/crash")
_LARGEST = 4 * 2**20
_OPENAT2, _AT_FDCWD, _NO_SYMLINKS = 437, -100, 4
_libc = ctypes.CDLL(None, use_errno=True)

Entry = tuple[int, int, int, str, int, str]
"""Owner, group, mode, kind, size, digest."""
_DIGEST = 5  # It is known of files in some places alone.
Files = dict[str, tuple[int, Entry]]
"""What is on the host: by path its inode, and what is known of it."""


def walk(tops: tuple[str, ...]) -> Iterator[tuple[str, os.stat_result]]:
    """Yield every path below some folders, following nothing, and not into what passes.

    A file system of a user's is asked nothing, for it may never answer.
    """
    users = list_users_mounts()
    waiting = [(path, os.lstat(path)) for path in tops if os.path.lexists(path)]
    while waiting:
        path, seen = waiting.pop()
        if path.startswith(PASSING):
            continue
        yield path, seen
        if stat.S_ISDIR(seen.st_mode) and not _is_foreign(path, seen):
            waiting += _list_folder(path, users)


def list_users_mounts() -> set[str]:
    """Return where FUSE file systems are mounted."""
    with open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape") as file:
        rows = [line.split(" ") for line in file]
    return {_unescape(row[1]) for row in rows if row[2].startswith("fuse")}


def _unescape(path: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), path)


def _list_folder(path: str, left_out: set[str]) -> list[tuple[str, os.stat_result]]:
    """Return what is in a folder; nothing where a link is on the way by now."""
    found = []
    handle = open_folder(path)
    if handle < 0:
        return []
    try:
        for name in os.listdir(handle):
            if f"{path}/{name}" not in left_out:
                with suppress(OSError):
                    seen = os.stat(name, dir_fd=handle, follow_symlinks=False)
                    found.append((f"{path}/{name}", seen))
    except OSError:
        pass
    finally:
        os.close(handle)
    return found


def open_folder(path: str) -> int:
    """Open a folder if no link is on the way to it (openat2 with RESOLVE_NO_SYMLINKS)."""
    how = struct.pack("QQQ", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, 0, _NO_SYMLINKS)
    return int(_libc.syscall(_OPENAT2, _AT_FDCWD, os.fsencode(path), how, len(how)))


def _is_foreign(path: str, seen: os.stat_result) -> bool:
    """Tell whether a folder is a user's mount, which may never answer."""
    try:
        return seen.st_dev != os.lstat(os.path.dirname(path)).st_dev and "/home/" in path
    except OSError:
        return True


def look_at_files() -> Files:
    """Return what is on this host; of a folder no size or time."""
    return {path: (seen.st_ino, describe(path, seen)) for path, seen in walk(TOPS)}


def describe(path: str, seen: os.stat_result) -> Entry:
    kind = oct(stat.S_IFMT(seen.st_mode))
    digest, size = "", 0 if stat.S_ISDIR(seen.st_mode) else seen.st_size
    if stat.S_ISREG(seen.st_mode) and path.startswith(HASHED) and size < _LARGEST:
        try:
            with open(path, "rb") as file:
                digest = hashlib.sha256(file.read()).hexdigest()[:12]
        except OSError:
            digest = "unreadable"
    elif stat.S_ISLNK(seen.st_mode):
        try:
            digest = os.readlink(path)
        except OSError:
            digest = "exchanged meanwhile"
    return seen.st_uid, seen.st_gid, stat.S_IMODE(seen.st_mode), kind, size, digest


def compare(before: Files, after: Files) -> list[str]:
    """Return what became of files that are not the attacker's, one line each.

    What only moved is no loss where the attacker's own folder held it: whoever owns a folder may
    move what others keep in it.
    """
    places = {inode: path for path, (inode, _entry) in after.items()}
    lines: list[str] = []
    for path, (inode, old) in before.items():
        is_there = path in after and after[path][0] == inode
        place = path if is_there else places.get(inode, path)
        if old[0] != UID:
            # The number of a file that is gone may be another's by now: a new name is a move.
            is_moved = place not in before and not _is_below_theirs(path, before)
            lines += _tell_fate(path, (inode, old), place, after.get(place), is_moved)
    known = {inode for inode, _entry in before.values()}
    for path, (inode, entry) in after.items():
        if path not in before and inode not in known and entry[0] != UID:
            lines.append(f"made {path}: {entry}")
    return sorted(lines)


def _tell_fate(
    path: str, old: tuple[int, Entry], place: str, new: tuple[int, Entry] | None, is_moved: bool
) -> Iterator[str]:
    """Yield what became of one file, which is at *place* now if it is anywhere."""
    if new is None or (new[1][0] == UID and new[0] != old[0]):
        yield f"deleted {path}: {old[1]}"
    elif new[1][0] == UID:
        yield f"given to the user {path}: {old[1]}"
    elif new[1][:_DIGEST] != old[1][:_DIGEST] or (place == path and new[1] != old[1]):
        yield f"changed {path}: {old[1]} -> {new[1]}"
    elif is_moved:
        yield f"moved {path}: to {place}"


def _is_below_theirs(path: str, files: Files) -> bool:
    """Tell whether a folder on the way to a path is the attacker's, who may move it."""
    while path != "/":
        path = os.path.dirname(path)
        if path in files and files[path][1][0] == UID:
            return True
    return False


def list_processes() -> dict[int, dict[str, str]]:
    """Return what is known of each process but the kernel's own."""
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/status", encoding="utf-8", errors="replace") as file:
                fields = dict(line.partition(":")[::2] for line in file)
            with open(f"/proc/{name}/cgroup", encoding="utf-8", errors="replace") as file:
                cgroup = file.read().strip()
        except OSError:
            continue
        if fields.get("PPid", "").strip() == "2" or name == "2":
            continue
        uids = fields["Uid"].split()
        one = {"comm": fields["Name"].strip(), "uids": " ".join(uids), "cgroup": cgroup}
        found[int(name)] = {**one, "state": fields["State"].split()[0]}
    return found


def find_strays(before: set[int]) -> list[str]:
    """Return the attacker's processes that live outside of the attacker's own slice."""
    lines = []
    for pid, one in list_processes().items():
        if pid in before or one["state"] == "Z":
            continue
        if str(UID) in one["uids"].split() and SLICE not in one["cgroup"]:
            lines.append(f"{one['comm']} ({pid}) as {one['uids']} in {one['cgroup']}")
    return lines


def find_root_helpers() -> list[str]:
    """Return processes with any of root's ids that run what lies in the attacker's home."""
    lines = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/status", encoding="utf-8", errors="replace") as file:
                uids = next(line for line in file if line.startswith("Uid:")).split()[1:]
            if "0" not in uids:
                continue
            where = [os.readlink(f"/proc/{name}/exe"), os.readlink(f"/proc/{name}/cwd")]
            with open(f"/proc/{name}/environ", "rb") as file:
                space = b"MLHOST_INNER" in file.read()
        except (OSError, StopIteration):
            continue
        if where[0].startswith(("/home/mallory", "/tmp/mallory")) and not space:
            lines.append(f"pid {name}, ids {' '.join(uids)}, runs {where[0]}")
    return lines


def find_marks(marks: dict[str, str], since: float) -> list[str]:
    """Return the files that the attacker can read and that hold a secret of root's."""
    found = []
    for path, seen in walk(READABLE):
        if not stat.S_ISREG(seen.st_mode) or max(seen.st_mtime, seen.st_ctime) < since:
            continue
        if (seen.st_uid == UID or seen.st_mode & stat.S_IROTH) and seen.st_size < _LARGEST:
            try:
                with open(path, "rb") as file:
                    content = file.read()
            except OSError:
                continue
            found += [
                f"{name} in {path}" for name, mark in marks.items() if mark.encode() in content
            ]
    return found


def read_loot() -> list[dict[str, str]]:
    """Return what each program that root started for the user wrote of itself."""
    told = []
    for path in sorted(glob.glob(f"{LOOT}/ran-*"))[:50]:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                told.append(dict(line.rstrip("\n").partition("=")[::2] for line in file))
        except OSError:
            continue
    return told
