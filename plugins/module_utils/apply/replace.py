# SPDX-License-Identifier: BSD-2-Clause
"""Replace files so that a reader, a crash or a full disk finds the old or the new, never a mix."""

from __future__ import annotations

import os
import stat
import tempfile

from ..policy.edit import Edit
from ..probe.files import follow_links

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_TEMPORARY_PREFIX = ".mlhost-"


def apply_edits(edits: Iterable[Edit], root: str = "/") -> None:
    """Write every edit; if one fails, put the files written before it back as they were.

    :raises OSError: With the path in it; nothing is changed then.
    """
    done: list[Edit] = []
    try:
        for edit in edits:
            _apply(edit, root)
            done.append(edit)
    except OSError:
        revert_edits(done, root)
        raise


def revert_edits(edits: Sequence[Edit], root: str = "/") -> None:
    """Put every file back as it was before these edits, newest first."""
    for edit in reversed(edits):
        _apply(edit._replace(before=edit.after, after=edit.before), root)


def find_target(path: str, root: str = "/") -> str:
    """Return the file to replace, links followed.

    :raises OSError: If a link leads out of the top folder, such as /etc, that *path* is in.
    """
    target = follow_links(path, root)
    top = path.split("/")[1]
    if target.split("/")[1] != top:
        raise OSError(f"{path}: is a symbolic link to {target}, outside of /{top}")
    return root.rstrip("/") + target


def _apply(edit: Edit, root: str) -> None:
    path = find_target(edit.path, root)
    if edit.after is None:
        os.unlink(path)
        _sync_folder(os.path.dirname(path))
        return
    _make_folder(os.path.dirname(path))
    _replace(path, edit.after, edit.mode)


def _make_folder(folder: str) -> None:
    """Make a missing folder and those above it, readable for everyone as in /etc."""
    if not os.path.isdir(folder):
        _make_folder(os.path.dirname(folder))
        os.mkdir(folder, 0o755)
        os.chmod(folder, 0o755)  # noqa: S103 - as /etc is; the caller's umask may be stricter


def _replace(path: str, content: bytes, mode: int) -> None:
    folder = os.path.dirname(path)
    handle, temporary = tempfile.mkstemp(prefix=_TEMPORARY_PREFIX, dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            _copy_attributes(path, file.fileno(), mode)
            os.fsync(file.fileno())
        os.rename(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    _sync_folder(folder)


def _copy_attributes(path: str, handle: int, mode: int) -> None:
    """Give the new file the owner, mode and extended attributes of the old one."""
    try:
        old = os.stat(path)
    except FileNotFoundError:
        os.fchmod(handle, mode)
        return
    os.fchown(handle, old.st_uid, old.st_gid)
    for name in os.listxattr(path):
        os.setxattr(handle, name, os.getxattr(path, name))
    os.fchmod(handle, stat.S_IMODE(old.st_mode))


def _sync_folder(folder: str) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
