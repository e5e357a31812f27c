# SPDX-License-Identifier: BSD-2-Clause
"""Replace files so that a reader, a crash or a full disk finds the old or the new, never a mix."""

from __future__ import annotations

import os
import stat
import tempfile
from typing import NamedTuple

from ..policy.edit import Edit
from ..probe.files import follow_links

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_TEMPORARY_PREFIX = ".mlhost-"


class _Step(NamedTuple):
    """An edit that only waits for its rename; ``temporary`` is ``None`` for a removal."""

    edit: Edit
    path: str
    temporary: str | None


def apply_edits(edits: Iterable[Edit], root: str = "/") -> tuple[Edit, ...]:
    """Write every edit; if one fails, put the files written before it back as they were.

    All that is new is on the disk before the first file changes, so a full disk changes nothing.

    :returns: The edits for :func:`revert_edits`, with the modes of the files that are gone.
    :raises OSError: With the path in it; nothing is changed then.
    """
    steps: list[_Step] = []
    done: list[Edit] = []
    try:
        for edit in edits:
            steps.append(_prepare(edit, root))
        for step in steps:
            _finish(step)
            done.append(step.edit)
            _sync_folder(os.path.dirname(step.path))
    except OSError:
        revert_edits(done, root)
        raise
    finally:
        _discard(step.temporary for step in steps[len(done) :])
    return tuple(done)


def revert_edits(edits: Sequence[Edit], root: str = "/") -> None:
    """Put every file back as it was before these edits, newest first."""
    for edit in reversed(edits):
        step = _prepare(edit._replace(before=edit.after, after=edit.before), root)
        _finish(step)
        _sync_folder(os.path.dirname(step.path))


def find_target(path: str, root: str = "/") -> str:
    """Return the file to replace, links followed.

    :raises OSError: If a link leads out of the top folder, such as /etc, that *path* is in.
    """
    target = follow_links(path, root)
    top = path.split("/")[1]
    if not target.startswith(f"/{top}/"):
        raise OSError(f"{path}: is a symbolic link to {target}, outside of /{top}")
    return root.rstrip("/") + target


def _prepare(edit: Edit, root: str) -> _Step:
    """Write what is new beside the file it will replace."""
    path = find_target(edit.path, root)
    if edit.after is None:
        return _Step(edit._replace(mode=stat.S_IMODE(os.stat(path).st_mode)), path, None)
    _make_folder(os.path.dirname(path))
    return _Step(edit, path, _write_temporary(path, edit.after, edit.mode))


def _finish(step: _Step) -> None:
    if step.temporary is None:
        os.unlink(step.path)
    else:
        os.rename(step.temporary, step.path)


def _discard(temporaries: Iterable[str | None]) -> None:
    for temporary in temporaries:
        if temporary is not None:
            os.unlink(temporary)


def _make_folder(folder: str) -> None:
    """Make a missing folder and those above it, readable for everyone as in /etc."""
    if not os.path.isdir(folder):
        _make_folder(os.path.dirname(folder))
        os.mkdir(folder, 0o755)
        os.chmod(folder, 0o755)  # noqa: S103 - as /etc is; the caller's umask may be stricter


def _write_temporary(path: str, content: bytes, mode: int) -> str:
    handle, temporary = tempfile.mkstemp(prefix=_TEMPORARY_PREFIX, dir=os.path.dirname(path))
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            _copy_attributes(path, file.fileno(), mode)
            os.fsync(file.fileno())
    except BaseException:
        os.unlink(temporary)
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
    for name in os.listxattr(path):
        os.setxattr(handle, name, os.getxattr(path, name))
    os.fchmod(handle, stat.S_IMODE(old.st_mode))


def _sync_folder(folder: str) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
