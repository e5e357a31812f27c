# SPDX-License-Identifier: BSD-2-Clause
"""Prepare a cache directory on a host in one run: read, plan, write, mount; and give it back."""

from __future__ import annotations

import grp
import os
import pwd
import stat
from collections.abc import Iterator, Mapping

from ..core.edit import Edit, show_change, show_edit
from ..core.plan import Section
from ..core.reader import PolicyError
from ..core.values import NamedTuple
from ..host.door import read_kernel_text
from ..host.files import read_text
from ..host.image import is_image
from ..host.users import name_user
from ..sessions.settle import apply_plans
from ..write.lock import only_run
from ..write.replace import find_target
from .plan import (
    FSTAB,
    TMPFILES,
    Workspace,
    format_mount,
    has_rule,
    is_ours,
    name_both,
    plan_workspace,
)
from .settle import Aside, make_directory, mount_tmpfs, quarantine, remove_directory, unmount


def find_ids(owner: str, group: str) -> tuple[int, int]:
    """Return the numbers of a user and a group.

    :raises ValueError: If this host has no such one.
    """
    try:
        return pwd.getpwnam(owner).pw_uid, grp.getgrnam(group).gr_gid
    except KeyError:
        raise ValueError(f"this host has no user {owner}, or no group {group}") from None


def read_directory(path: str) -> tuple[int, int, int] | None:
    """Return owner, group and mode of a directory; ``None`` where there is none.

    :raises OSError: If it is something else.
    """
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    if not stat.S_ISDIR(found.st_mode):
        raise OSError(f"{path}: exists and is not a directory")
    return found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)


def read_tmpfs_size(path: str) -> int | None:
    """Return the size of the tmpfs that is mounted on a directory; ``None`` where none is."""
    lines = read_kernel_text("/proc/self/mounts").splitlines()
    kinds = [line.split()[2] for line in lines if line.split()[1] == path]
    if not kinds or kinds[-1] != "tmpfs":
        return None
    found = os.statvfs(path)
    return found.f_blocks * found.f_frsize


_PAGE = 4096  # A tmpfs has a whole number of pages.


class Outcome(NamedTuple):
    """What a run did, or would do in check mode."""

    edits: tuple[Edit, ...]
    running: tuple[tuple[str, str, str], ...]
    quarantined: tuple[str, ...]
    notes: tuple[str, ...]

    def as_result(self) -> dict[str, object]:
        """Return what a task returns; the diff holds every file and all that is running."""
        return {
            "changed": bool(self.edits or self.running or self.quarantined),
            "files": [edit.path for edit in self.edits],
            "quarantined": list(self.quarantined),
            "notes": list(self.notes),
            "diff": list(self._describe()),
        }

    def _describe(self) -> Iterator[dict[str, str]]:
        yield from map(show_edit, self.edits)
        for what, before, after in self.running:
            yield show_change(what, before, after)
        if self.quarantined:
            names = "".join(f"{name}\n" for name in self.quarantined)
            yield {"before_header": "in place", "after_header": "quarantine", "before": names}


def prepare_workspace(wanted: Workspace, moves: bool, check_mode: bool) -> Outcome:
    """Make a workspace, or take it back.

    :param moves: Whether damaged files are moved aside.
    :raises PolicyError: With every reason to refuse; nothing was written then.
    :raises OSError: If something could not be written; the files are put back.
    """
    if check_mode:
        return _prepare(wanted, moves, check_mode)
    with only_run():
        return _prepare(wanted, moves, check_mode)


def _prepare(wanted: Workspace, moves: bool, check_mode: bool) -> Outcome:
    texts = {path: read_text(path) for path in wanted.files}
    files = {path: text for path, text in texts.items() if text is not None}
    plan = plan_workspace(wanted, files)
    problems = plan.problems or tuple(_find_owner(wanted, files))
    if problems:
        raise PolicyError(problems)
    ours = is_ours(files.get(FSTAB), wanted.path)
    running = tuple(_plan_running(wanted, ours))
    if not check_mode and (plan.edits or running):
        apply_plans({"workspace": Section(plan, settle=lambda: _settle(wanted, running))})
    aside = Aside((), 0, ())
    if moves and not wanted.absent and read_directory(wanted.path):
        aside = quarantine(find_target(wanted.path), check_mode)
    return Outcome(plan.edits, running, aside.names, (*plan.notes, *aside.notes))


def _find_owner(wanted: Workspace, files: Mapping[str, str]) -> Iterator[str]:
    """Yield why a directory is not for us to take: it is another user's, and we did not make it.

    :raises OSError: If users other than root may write on the way to it.
    """
    if wanted.absent:
        return
    find_target(wanted.path)
    found, uid = read_directory(wanted.path), find_ids(wanted.owner, wanted.group)[0]
    if found and found[0] not in (0, uid) and not has_rule(files.get(TMPFILES), wanted.path):
        taken = f"{wanted.path} is {name_user(found[0])}'s"
        yield f"{name_both('path')}: {taken}; name that owner, or another directory"


def _plan_running(wanted: Workspace, ours: bool) -> Iterator[tuple[str, str, str]]:
    """Yield what is to change of what is there now: what, before, after."""
    found = read_directory(wanted.path)
    size = None if is_image() else read_tmpfs_size(wanted.path)
    if wanted.absent:
        if size is not None and ours:
            yield f"mount of {wanted.path}", f"tmpfs of {size} bytes", "none"
        return
    uid, gid = find_ids(wanted.owner, wanted.group)
    asked = (uid, gid, int(wanted.mode, 8))
    if found != asked:
        yield wanted.path, _show(found), _show(asked)
    if is_image():
        return  # It is mounted by the first boot.
    whole = None if wanted.size is None else -(-wanted.size // _PAGE) * _PAGE
    if whole is not None and whole != size:
        before = "none" if size is None else f"tmpfs of {size} bytes"
        yield f"mount of {wanted.path}", before, f"tmpfs of {whole} bytes"
    elif whole is None and size is not None and ours:
        yield f"mount of {wanted.path}", f"tmpfs of {size} bytes", "none"


def _show(found: tuple[int, int, int] | None) -> str:
    return f"uid {found[0]}, gid {found[1]}, mode {found[2]:04o}" if found else "absent"


def _settle(wanted: Workspace, running: tuple[tuple[str, str, str], ...]) -> str:
    """Make the directory and its mount as planned; return why that failed, or nothing."""
    mounts = [one for one in running if one[0] != wanted.path]
    trouble = ""
    for _what, before, after in mounts:
        if after == "none":
            trouble = unmount(wanted.path)
        else:
            is_there = before != "none"
            if not is_there:
                make_directory(wanted.path, 0, 0, 0o755)
            trouble = mount_tmpfs(wanted.path, format_mount(wanted), is_there)
    if wanted.absent:
        remove_directory(wanted.path)
    elif not trouble:
        make_directory(wanted.path, *find_ids(wanted.owner, wanted.group), int(wanted.mode, 8))
    return trouble
