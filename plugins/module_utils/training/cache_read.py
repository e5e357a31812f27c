# SPDX-License-Identifier: BSD-2-Clause
"""Look at every file of a cache, one after the other, however many there are.

Links to directories are not followed, those to files are, once what they lead to is known to be a
file. Nothing is opened for writing. Root looks at what is root's, and says of all else whose it is.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator

from ..core.folder_states import ABSENT
from ..core.values import NamedTuple
from ..host.open_directory import ObstacleError, open_directory
from ..host.users import name_user
from .file_verdict import (
    CORRUPT,
    LEFTOVER,
    PT,
    QUARANTINE,
    SOUND,
    UNSEEN,
    Verdict,
    find_kind,
    find_owner,
    is_temporary,
)
from .weights_file import check_pt, check_safetensors

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_DEEPEST = 64
_MOST = 1000
_NAMED = 5
_OLD = 3600.0  # Seconds after which a temporary file is nobody's.
_PACE = 0.5


class Checked(NamedTuple):
    """One file, by its path below the directory, and what was seen."""

    path: str
    status: str
    reason: str = ""


class LateError(BaseException):
    """The time for a look is over; what was seen until then counts."""


class Survey(NamedTuple):
    """What was seen of a directory: how many files of each state, and the first of each.

    ``reason`` says why it could not be looked at, ``unfinished`` why not all of it was.
    """

    counts: dict[str, int]
    corrupt: list[Checked]
    unknown: list[Checked]
    leftover: list[Checked]
    reason: str = ""
    unfinished: str = ""

    @property
    def number(self) -> int:
        return sum(self.counts.values())


def survey_files(
    path: str, deep: bool = False, tell: Callable[[int], None] | None = None
) -> Survey:
    """Look at all files below a directory.

    :param deep: Whether the checksums of zip archives are computed, which reads all of them.
    :param tell: Is told now and then how many files have been looked at.
    :raises KeyboardInterrupt: At once after Ctrl-C; it says what was seen until then.
    """
    counts = {SOUND: 0, CORRUPT: 0, UNSEEN: 0, LEFTOVER: 0}
    lists: dict[str, list[Checked]] = {CORRUPT: [], UNSEEN: [], LEFTOVER: []}
    reason, unfinished, told = "", "", time.monotonic()
    try:
        for checked in check_files(path, deep):
            counts[checked.status] += 1
            kept = lists.get(checked.status)
            if kept is not None and len(kept) < _MOST:
                kept.append(checked)
            if tell is not None and time.monotonic() - told > _PACE:
                tell(sum(counts.values()))
                told = time.monotonic()
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_describe(path, counts, lists[CORRUPT])) from None
    except ObstacleError as obstacle:
        reason = obstacle.reason
    except LateError as late:
        unfinished = f"{sum(counts.values())} files were looked at {late}; the others were not"
    return Survey(counts, lists[CORRUPT], lists[UNSEEN], lists[LEFTOVER], reason, unfinished)


def _describe(path: str, counts: dict[str, int], corrupt: list[Checked]) -> str:
    """Say what was seen of a cache that nobody looks at any further."""
    names = ", ".join(one.path for one in corrupt[:_NAMED])
    damaged = f", {counts[CORRUPT]} of them damaged ({names})" if corrupt else ""
    number = sum(counts.values())
    return f"{path}: interrupted after {number} files{damaged}; the others were not looked at"


def check_files(path: str, deep: bool = False) -> Iterator[Checked]:
    """Yield each file below a directory that is looked at; folders are read as they are walked.

    :raises ObstacleError: If the directory itself cannot be opened.
    """
    top = open_directory(path)
    try:
        walk = [_Folder(top, ".", "")]
    finally:
        os.close(top)
    try:
        while walk:
            folder = walk[-1]
            entry = next(folder.entries, None)
            if entry is None:
                walk.pop().close()
            elif not entry.is_dir(follow_symlinks=False):
                checked = _check_entry(folder.handle, entry, deep)
                if checked is not None:
                    yield checked._replace(path=folder.below + entry.name)
            elif entry.name != QUARANTINE:
                below = folder.below + entry.name
                try:
                    walk.append(_enter(folder.handle, entry.name, f"{below}/", len(walk)))
                except ObstacleError as obstacle:
                    yield Checked(below, UNSEEN, obstacle.reason)
    finally:
        for folder in walk:
            folder.close()


class _Folder:
    """An open folder whose entries are being read; ``below`` is its path, with a slash."""

    def __init__(self, parent: int, name: str, below: str) -> None:
        try:
            self.handle = os.open(name, _FOLDER, dir_fd=parent)
        except OSError as exc:
            raise ObstacleError("", name, f"cannot be read: {exc.strerror}") from None
        whose = _find_stranger(self.handle)
        if whose:
            os.close(self.handle)
            raise ObstacleError("", name, whose)
        self.below = below
        self.entries = os.scandir(self.handle)

    def close(self) -> None:
        self.entries.close()
        os.close(self.handle)


def _enter(parent: int, name: str, below: str, depth: int) -> _Folder:
    if depth >= _DEEPEST:
        raise ObstacleError("", name, "lies too deep")
    return _Folder(parent, name, below)


def _check_entry(folder: int, entry: os.DirEntry[str], deep: bool) -> Checked | None:
    """Look at one entry; nothing for what is no file of a kind that is known."""
    kind = find_kind(entry.name)
    if not kind:
        return _check_leftover(folder, entry) if is_temporary(entry.name) else None
    try:
        handle = _open_file(folder, entry)
        if handle is None:
            return None
        try:
            whose = _find_stranger(handle)
            verdict = Verdict(UNSEEN, whose) if whose else _check_file(handle, kind, deep)
        finally:
            os.close(handle)
    except ObstacleError as obstacle:
        return Checked(entry.name, UNSEEN, obstacle.reason)
    except FileNotFoundError:
        if entry.is_symlink():
            return Checked(entry.name, CORRUPT, "is a link that leads nowhere")
        return None  # Somebody removed it meanwhile.
    except OSError as exc:
        return Checked(entry.name, UNSEEN, f"cannot be read: {exc.strerror}")
    except MemoryError:
        return Checked(entry.name, UNSEEN, "needs more memory to be looked at than there is")
    return Checked(entry.name, *verdict)


def _find_stranger(handle: int) -> str:
    """Return whose an open file or folder is, where this is root and it is not root's."""
    owner = os.fstat(handle).st_uid
    if os.geteuid() or not owner:
        return ""
    return f"is {name_user(owner)}'s, and only that user looks at it"


def _open_file(folder: int, entry: os.DirEntry[str]) -> int | None:
    """Open a file for reading; nothing is opened that is none, because that can have effects."""
    if entry.is_file(follow_symlinks=False):
        return os.open(entry.name, _FILE, dir_fd=folder)
    if not entry.is_symlink():
        return None
    target = _follow(folder, entry.name)
    try:
        if not stat.S_ISREG(os.fstat(target).st_mode):
            return None
        return os.open(f"/proc/self/fd/{target}", _FILE & ~os.O_NOFOLLOW)
    finally:
        os.close(target)


def _follow(folder: int, name: str) -> int:
    """Open what a link leads to without touching it; root follows links of root alone."""
    if os.geteuid():
        return os.open(name, os.O_PATH | os.O_CLOEXEC, dir_fd=folder)
    link = os.open(name, _LOOK, dir_fd=folder)
    try:
        whose = _find_stranger(link)
        if whose:
            raise ObstacleError("", name, whose)
        target = os.path.join(os.readlink(f"/proc/self/fd/{folder}"), os.readlink("", dir_fd=link))
    finally:
        os.close(link)
    above = _open_way(os.path.dirname(target))
    try:
        return os.open(os.path.basename(target), _LOOK, dir_fd=above)
    finally:
        os.close(above)


def _open_way(path: str) -> int:
    try:
        return open_directory(path)
    except ObstacleError as obstacle:
        if obstacle.state == ABSENT:
            raise FileNotFoundError(path) from None
        raise


def check_open_file(handle: int, name: str) -> Verdict | None:
    """Return what a cheap look says of an open file; nothing where its kind is not known."""
    kind = find_kind(name)
    return _check_file(handle, kind, deep=False) if kind else None


def _check_file(handle: int, kind: str, deep: bool) -> Verdict:
    def read(offset: int, size: int) -> bytes:
        return os.pread(handle, size, offset) if offset < length else b""

    length = os.fstat(handle).st_size
    if kind != PT:
        return check_safetensors(read, length)
    verdict = check_pt(read, length)
    return _check_sums(handle) if deep and verdict.status == SOUND else verdict


def load_archives() -> None:
    """Load what unpacks archives, for a process that will not be able to read Python's files."""
    import zipfile  # noqa: F401 - needed only where all is read
    import zlib  # noqa: F401

    "".encode("cp437")  # The names in an archive are written so.


def _check_sums(handle: int) -> Verdict:
    """Compare the checksums of a zip archive with its content."""
    import zipfile  # Needed only where all is read.
    import zlib

    try:
        with os.fdopen(os.dup(handle), "rb") as file, zipfile.ZipFile(file) as archive:
            bad = archive.testzip()
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as exc:
        return Verdict(CORRUPT, f"cannot be unpacked: {exc}")
    return Verdict(SOUND) if bad is None else Verdict(CORRUPT, f"has a wrong checksum at {bad}")


def _check_leftover(folder: int, entry: os.DirEntry[str]) -> Checked | None:
    """Tell whether nobody writes a temporary file any more."""
    try:
        found = os.stat(entry.name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return None
    pid = find_owner(entry.name)
    alive = os.path.exists(f"/proc/{pid}") if pid else time.time() - found.st_mtime < _OLD
    if alive or not stat.S_ISREG(found.st_mode):
        return None
    return Checked(entry.name, LEFTOVER, f"{found.st_size} bytes")
