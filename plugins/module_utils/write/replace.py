# SPDX-License-Identifier: BSD-2-Clause
"""Replace files so that a reader, a crash or a full disk finds the old or the new, never a mix."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable

from ..core.edit import Edit
from ..core.values import NamedTuple
from ..host.files import follow_links
from .label import apply_label
from .temporary import pick_name, place, swap, take_away

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class _Step(NamedTuple):
    """An edit that only waits for its rename; ``temporary`` is ``None`` for a removal."""

    edit: Edit
    path: str
    temporary: str | None


class Change(NamedTuple):
    """A file that was written or removed; ``aside`` is where the old one waits, if any."""

    path: str
    aside: str | None
    removed: bool = False
    with_folder: bool = False


class Changes(NamedTuple):
    """What was written, and the folders that were made for it, outermost first."""

    files: tuple[Change, ...]
    folders: tuple[str, ...]


def apply_edits(edits: Iterable[Edit], root: str = "/") -> Changes:
    """Write every edit; if one fails, put the files written before it back as they were.

    All that is new is on the disk before the first file changes, so a full disk changes nothing.
    A file that somebody else changed since it was read is left as they made it.

    :returns: What :func:`revert_edits` or :func:`commit_edits` must be called with.
    :raises OSError: With the path in it; nothing is changed then.
    """
    steps: list[_Step] = []
    files: list[Change] = []
    folders: list[str] = []
    try:
        for edit in edits:
            steps.append(_prepare(edit, root, folders))
        for step in steps:
            files.append(_finish(step))
            _sync_folder(os.path.dirname(step.path))
    except BaseException:
        _discard(step.temporary for step in steps[len(files) :])
        revert_edits(Changes(tuple(files), tuple(folders)))
        raise
    return Changes(tuple(files), tuple(folders))


def revert_edits(changes: Changes) -> None:
    """Put every file back, the very same one with owner, mode, times and attributes.

    :raises OSError: If one could not be put back; the others were.
    """
    problems = []
    for change in reversed(changes.files):
        try:
            _put_back(change)
            _sync_folder(os.path.dirname(change.path))
        except OSError as exc:
            problems.append(f"{change.path}: could not be put back: {exc}")
    for folder in reversed(changes.folders):
        with contextlib.suppress(OSError):  # Somebody may use it by now.
            os.rmdir(folder)
    if problems:
        raise OSError("; ".join(problems))


def commit_edits(changes: Changes) -> None:
    """Let go of the old files; one that cannot be removed now is by the next run."""
    _discard(change.aside for change in changes.files)
    for change in changes.files:
        if change.with_folder:
            with contextlib.suppress(OSError):  # Somebody else has something there.
                os.rmdir(os.path.dirname(change.path))


def find_target(path: str, root: str = "/") -> str:
    """Return the file to replace, links followed.

    :raises OSError: If a link leads out of the top folder, such as /etc, that *path* is in, or
        somebody other than root may write on the way to it.
    """
    target = follow_links(path, root)
    top = path.split("/")[1]
    if not target.startswith(f"/{top}/"):
        raise OSError(f"{path}: is a symbolic link to {target}, outside of /{top}")
    _require_own_folders(path, target, root.rstrip("/"))
    return root.rstrip("/") + target


def _require_own_folders(path: str, target: str, root: str) -> None:
    """Refuse a path on which somebody else could plant a link between two looks, or has.

    Each folder counts that a link on the way leads through.
    """

    def require(folder: str, entry: str) -> None:
        here = root + folder
        if folder and os.path.lexists(here) and not _is_own(here, f"{here}/{entry}"):
            raise OSError(f"{target}: users other than root may write to {folder}")

    follow_links(path, root, require)


def _is_own(folder: str, entry: str) -> bool:
    """Tell whether nobody else can make or replace an entry of a folder."""
    found = os.lstat(folder)
    if found.st_uid not in (0, os.geteuid()):
        return False
    if not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return True
    # In a sticky folder such as /tmp, what is ours already stays ours.
    sticky = bool(found.st_mode & stat.S_ISVTX) and os.path.lexists(entry)
    return sticky and os.lstat(entry).st_uid in (0, os.geteuid())


def _prepare(edit: Edit, root: str, folders: list[str]) -> _Step:
    """Write what is new beside the file it will replace."""
    path = find_target(edit.path, root)
    if edit.after is None:
        return _Step(edit, path, None)
    _make_folder(os.path.dirname(path), folders, root)
    return _Step(edit, path, _write_temporary(path, edit.after, edit.mode, root))


def _finish(step: _Step) -> Change:
    """Let the new file take its place, unless what it replaces is not what the plan saw.

    The old file is looked at after it is out of the way: nobody can change it in between.
    """
    path, temporary, before = step.path, step.temporary, step.edit.before
    try:
        if temporary is None:
            folder_too = step.edit.with_folder
            change = Change(path, take_away(path), removed=True, with_folder=folder_too)
        elif before is None:
            place(temporary, path)
            return Change(path, None)
        else:
            change = Change(path, swap(temporary, path))
    except OSError as exc:
        raise _explain(exc, step.edit.path) from exc
    try:
        if _read(change.aside) != before:
            raise OSError(
                f"{step.edit.path}: was changed by somebody else while this run was at work"
            )
    except BaseException:
        _put_back(change)
        raise
    return change


def _explain(error: OSError, path: str) -> OSError:
    if error.errno == errno.EBUSY:
        return OSError(f"{path}: is a mount point, which cannot be replaced; change what it shows")
    if error.errno == errno.EEXIST:
        return OSError(f"{path}: was made by somebody else while this run was at work")
    return error


def _read(path: str | None) -> bytes:
    with open(path or "", "rb") as file:
        return file.read()


def _put_back(change: Change) -> None:
    if change.aside is None:
        os.unlink(change.path)
    elif change.removed:
        place(change.aside, change.path)
    else:
        _discard([swap(change.aside, change.path)])


def _discard(names: Iterable[str | None]) -> None:
    for name in names:
        if name is not None:
            with contextlib.suppress(OSError):
                os.unlink(name)


def _make_folder(folder: str, made: list[str], root: str) -> None:
    """Make a missing folder and those above it, readable for everyone as in /etc."""
    if not os.path.isdir(folder):
        _make_folder(os.path.dirname(folder), made, root)
        os.mkdir(folder, 0o755)
        made.append(folder)
        os.chmod(folder, 0o755)  # noqa: S103 - as /etc is; the caller's umask may be stricter
        apply_label(folder, folder, root)
        _sync_folder(os.path.dirname(folder))


def _write_temporary(path: str, content: bytes, mode: int, root: str) -> str:
    temporary = pick_name(path)
    handle = os.open(temporary, _NEW, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            _copy_attributes(path, file.fileno(), mode)
            apply_label(file.fileno(), path, root)
            os.fsync(file.fileno())
    except BaseException:
        _discard([temporary])
        raise
    return temporary


def _copy_attributes(path: str, handle: int, mode: int) -> None:
    """Give the new file the owner, mode and extended attributes of the old one."""
    try:
        old = os.stat(path)
    except FileNotFoundError:
        os.fchmod(handle, mode)
        return
    os.fchown(handle, old.st_uid, old.st_gid)
    new = _read_attributes(handle)
    for name, value in _read_attributes(path).items():
        if new.get(name) != value:
            os.setxattr(handle, name, value)
    os.fchmod(handle, stat.S_IMODE(old.st_mode))


def _read_attributes(file: str | int) -> dict[str, bytes]:
    """Return the extended attributes, access lists and the SELinux label among them."""
    try:
        return {name: os.getxattr(file, name) for name in os.listxattr(file)}
    except OSError as exc:
        if exc.errno == errno.ENOTSUP:  # This file system has none.
            return {}
        raise


def _sync_folder(folder: str) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
