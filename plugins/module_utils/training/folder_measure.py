# SPDX-License-Identifier: BSD-2-Clause
"""Look at a directory as the user who will work in it, within a time limit.

Everything happens in children that became that user. Root becomes the user whose the directory is,
where nobody else is named: what a user can exchange is nothing for root to touch. Each child opens
what it touches relative to the directory and in a folder of its own, and follows no link that
somebody else made.
"""

from __future__ import annotations

import errno
import os
import pwd
import re
import stat
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from ..core.finding import FAIL, PASS, UNKNOWN
from ..core.folder_states import BROKEN, DIRECTORY, UNKNOWN_STATE
from ..core.values import UNLIMITED
from ..host.as_user import Errand, ask_users, find_person
from ..host.children import Report, run_in_children
from ..host.door import read_kernel_text
from ..host.files import read_text
from ..host.open_directory import ObstacleError, open_directory
from ..host.trial_folder import (
    SwappedError,
    pick_trial_name,
    remove_dead_trials,
    remove_trial,
    trial_folder,
)
from ..host.users import name_user
from ..shared_memory.quota_read import ask_quota
from .folder_rules import FolderFacts, Proof
from .proofs_measure import PROOFS


def find_actor(facts: FolderFacts, paths: Iterable[str]) -> str | None:
    """Return who carries out a remedy: empty for whoever looks, ``None`` where nobody safely can.

    Root does so only where every folder on the way is root's, and closed to others: there nobody
    puts a link in the way before it is pasted. Elsewhere the user does who will work there, or
    whose the directory is.

    :param paths: What the remedy changes: the directory, or what it holds.
    """
    folders = {os.path.dirname(os.path.abspath(path)) for path in paths}
    if os.geteuid() != 0 or all(map(is_roots, folders)):
        return ""
    names = (name for name in (facts.user, facts.owner) if name not in ("", "root"))
    return next(names, None)


def is_roots(path: str) -> bool:
    """Tell whether every folder of a path, as far as there are any, is root's and closed.

    In a sticky folder such as /tmp, a folder that is root's already stays where it is.
    """
    here, parts = "", path.strip("/").split("/")
    for part in ["", *parts]:
        above, here = here, f"{here}/{part}" if part else here
        try:
            found = os.lstat(here or "/")
        except FileNotFoundError:
            return not _is_open(above or "/")
        except OSError:
            return False
        if found.st_uid != 0 or not stat.S_ISDIR(found.st_mode):
            return False
        if _is_open(here or "/") and not found.st_mode & stat.S_ISVTX:
            return False
    return not _is_open(path)


def _is_open(folder: str) -> bool:
    """Tell whether users other than root may make entries in a folder."""
    return bool(os.lstat(folder).st_mode & (stat.S_IWGRP | stat.S_IWOTH))


_WALK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_LINKS = 40  # As the kernel's MAXSYMLINKS.
_NOBODY = 65534
_ALL = "4294967295"


def find_keeper(path: str) -> int:
    """Return the uid of the last on the way to a directory who is not root; 0 where all is root's.

    The way ends at a link that is not root's: where it leads is for its owner to find out. Inside
    a user namespace, who is nobody there is a stranger, whom its root cannot become.
    """
    strangers = {0, _NOBODY} if _is_inside() else {0}
    here, keeper, links = os.open("/", _WALK), 0, 0
    parts = path.split("/")
    try:
        while parts:
            part = parts.pop(0)
            if part in ("", "."):
                continue
            entry = os.open(part, _WALK, dir_fd=here)
            found = os.fstat(entry)
            keeper = keeper if found.st_uid in strangers else found.st_uid
            if stat.S_ISLNK(found.st_mode):
                links += 1
                target = os.readlink("", dir_fd=entry)
                os.close(entry)
                if found.st_uid not in strangers or links > _MOST_LINKS:
                    break
                parts = [*target.split("/"), *parts]
                if not target.startswith("/"):
                    continue
                entry = os.open("/", _WALK)
            os.close(here)
            here = entry
    except OSError:
        pass  # The look says where the way ends, and why.
    finally:
        os.close(here)
    return keeper


def _is_inside() -> bool:
    """Tell whether this is a user namespace that does not know every user (user_namespaces(7))."""
    try:
        lines = read_kernel_text("/proc/self/uid_map").splitlines()
        return [line.split()[2] for line in lines] != [_ALL]
    except (OSError, IndexError):
        return False


TIME_LIMIT = 10.0
"""Seconds; a healthy mount answers in milliseconds, a hung one never."""

_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def look_at_directory(
    path: str,
    user: str | None = None,
    proofs: Sequence[str] = tuple(PROOFS),
    seconds: float = TIME_LIMIT,
) -> FolderFacts:
    """Return what a user finds there.

    :param user: ``None`` for whoever this process is; for root, whose the directory is.
    :param proofs: Which operations two processes shall try against each other there.
    """
    entry, reason = _find_entry(user)
    if entry is None:
        return FolderFacts(path, user or "", UNKNOWN_STATE, reason)
    uid = entry.pw_uid
    names = [pick_trial_name() for number in range(len(proofs) + 1)]
    tasks: list[Callable[[], object]] = [
        partial(_look, path),
        partial(_try, path, names[0], _write_a_file),
    ]
    tasks += [partial(_try, path, name, PROOFS[proof]) for name, proof in zip(names[1:], proofs)]
    look, writing, *rest = _run_all(uid, path, tasks, seconds)
    late = [name for name, report in zip(names, (writing, *rest)) if report.problem]
    if late and not look.problem:  # Slow rather than dead: what was killed left its folder.
        _run_all(uid, path, [partial(_clean, path, late)], seconds)
    facts = FolderFacts(path, entry.pw_name, UNKNOWN_STATE, f"{path}: {look.problem}", uid=uid)
    if look.value is not None:
        facts = facts._replace(**look.value)
    answers = [Proof(*one.value) if one.value else Proof(UNKNOWN, one.problem) for one in rest]
    wrote = Proof(*writing.value) if writing.value else Proof(UNKNOWN, writing.problem)
    if uid == os.geteuid() and wrote.status == PASS and not _may_write(path, seconds):
        wrote = Proof(FAIL, f"[Errno {errno.EACCES}] {os.strerror(errno.EACCES)}")
    return facts._replace(writing=wrote, proofs=dict(zip(proofs, answers)))


def _find_entry(user: str | None) -> tuple[pwd.struct_passwd | None, str]:
    """Return who will work there, or why this process cannot look as that user."""
    try:
        entry = pwd.getpwuid(os.geteuid()) if user is None else pwd.getpwnam(user)
    except KeyError:
        return None, f"this host has no user {user or os.geteuid()}"
    if os.geteuid() not in (0, entry.pw_uid):
        return None, f"only root can look as {entry.pw_name}"
    return entry, ""


def run_there(uid: int, path: str, task: Callable[[], object], seconds: float) -> Report:
    """Run something in a child that is a user, or, for root, whose the directory is."""
    return _run_all(uid, path, [task], seconds)[0]


def _run_all(
    uid: int, path: str, tasks: Sequence[Callable[[], object]], seconds: float
) -> list[Report]:
    """Run each in a child that is a user before it touches anything: root becomes the owner."""
    if uid == 0:
        who = run_in_children([partial(find_keeper, path)], seconds)[0]
        if who.problem:
            return [who] * len(tasks)
        uid = int(who.value)
    if uid == os.geteuid():
        return run_in_children(tasks, seconds)
    return ask_users([Errand(find_person(uid), task, seconds=seconds) for task in tasks])


def _may_write(path: str, seconds: float) -> bool:
    """Tell whether we may: a root that lacks capabilities may not do what the owner may."""
    task = partial(os.access, path, os.W_OK | os.X_OK, effective_ids=True)
    return bool(run_in_children([task], seconds)[0].value)


def _look(path: str) -> dict[str, object]:
    """Return the fields of the facts that one look gives."""
    who = {"user": name_user(os.geteuid()), "uid": os.geteuid()}
    try:
        folder = open_directory(path)
    except ObstacleError as obstacle:
        return {**who, "state": obstacle.state, "at": obstacle.at, "reason": obstacle.reason}
    try:
        sizes, found = os.statvfs(folder), os.fstat(folder)
    except OSError as exc:
        reason = f"{path}: [Errno {exc.errno}] {exc.strerror}"
        return {**who, "state": BROKEN, "at": path, "reason": reason}
    mount = find_mount(folder)
    return {
        **who,
        "state": DIRECTORY,
        "reason": "",
        "owner": name_user(found.st_uid),
        "mode": stat.S_IMODE(found.st_mode),
        "read_only": bool(sizes.f_flag & os.ST_RDONLY),
        "free_bytes": _count_free(folder, sizes, mount.get("kind", "")),
        "free_inodes": sizes.f_favail if sizes.f_files else None,
        "filesystem": mount.get("kind", ""),
        "mount": mount.get("point", ""),
        "source": mount.get("source", ""),
        "mount_root": mount.get("root", ""),
        "device": mount.get("device", ""),
        "real_path": os.readlink(f"/proc/self/fd/{folder}"),
    }


def _count_free(folder: int, sizes: os.statvfs_result, kind: str) -> int:
    """Return the free bytes; of a tmpfs such as /tmp systemd may let a user take a part alone.

    What is kept for root counts for root. A file system that states no size has no end.
    """
    if not sizes.f_blocks:
        return UNLIMITED
    free = (sizes.f_bavail if os.geteuid() else sizes.f_bfree) * sizes.f_frsize
    if kind != "tmpfs" or os.geteuid() == 0:
        return free
    try:
        hard, used = ask_quota(os.geteuid(), folder)
    except OSError:
        return free  # It has no quotas.
    return min(free, max(hard - used, 0)) if hard else free


def _try(path: str, name: str, trial: Callable[[int], str]) -> tuple[str, str]:
    """Try one thing in a folder of our own; return the status and what went wrong."""
    try:
        parent = open_directory(path)
        if trial is _write_a_file:
            remove_dead_trials(parent)
        with trial_folder(parent, name) as folder:
            trouble = trial(folder)
    except (ObstacleError, SwappedError) as obstacle:
        return UNKNOWN, str(obstacle)
    except OSError as exc:
        return FAIL, f"[Errno {exc.errno}] {exc.strerror}"
    return (FAIL, trouble) if trouble else (PASS, "")


def _write_a_file(folder: int) -> str:
    """Write as much as a block, to the disk: a full one says so only then."""
    handle = os.open("file", _CREATE, 0o600, dir_fd=folder)
    os.write(handle, b"x" * 4096)
    os.fsync(handle)
    return ""


def _clean(path: str, names: Sequence[str]) -> None:
    """Remove the folders of trials that were killed."""
    try:
        parent = open_directory(path)
    except ObstacleError:
        return
    for name in names:
        remove_trial(parent, name)


def find_mount(folder: int) -> dict[str, str]:
    """Return what mountinfo (proc_pid_mountinfo(5)) says of the mount that an open file is on."""
    number = re.search(r"^mnt_id:\s*([0-9]+)", read_text(f"/proc/self/fdinfo/{folder}") or "", re.M)
    for line in (read_text("/proc/self/mountinfo") or "").splitlines() if number else ():
        left, _dash, right = line.partition(" - ")
        fields, kinds = left.split(), right.split()
        if number and fields[0] == number[1]:
            names = ("device", "root", "point")
            return {**dict(zip(names, fields[2:5])), "kind": kinds[0], "source": kinds[1]}
    return {}
