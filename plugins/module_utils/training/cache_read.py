# SPDX-License-Identifier: BSD-2-Clause
"""Look at every file of a cache, one after the other, however many there are.

Links to directories are not followed. Root looks at what is root's, and says of all else whose it
is. What seems damaged is looked at twice: a file that is being written is not whole yet.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence

from ..core.folder_states import CLOSED as CLOSED_FOLDER
from ..core.values import NamedTuple
from ..host.open_directory import ObstacleError, open_directory
from .cache_look_read import check_open_file
from .cache_open_read import (
    NoFileError,
    describe_closed,
    find_stranger,
    is_young,
    name_kind,
    open_regular,
    wait_for,
)
from .cache_packed_read import Patience
from .file_verdict import (
    CLOSED,
    CORRUPT,
    LEFTOVER,
    QUARANTINE,
    SKIPPED,
    SOUND,
    UNSEEN,
    WRITTEN,
    find_kind,
    find_owner,
    is_temporary,
)

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_DEEPEST = 64
_MOST = 1000
_NAMED = 5
_OLD = 3600.0  # Seconds after which a temporary file is nobody's.
_PACE = 0.5
_PATIENCE = 1.0  # Seconds for unpacking again what seemed damaged.


class Checked(NamedTuple):
    """One file, by its path below the directory, and what was seen.

    ``stamp`` is its size and when it was changed, in nanoseconds, where it seems damaged.
    """

    path: str
    status: str
    reason: str = ""
    stamp: tuple[int, int] = (0, 0)


class LateError(BaseException):
    """The time for a look is over; what was seen until then counts."""


class Survey(NamedTuple):
    """What was seen of a directory: how many files of each state, and the first of each.

    ``reason`` says why it could not be looked at, ``unfinished`` why not all of it was.
    """

    counts: dict[str, int]
    lists: dict[str, list[Checked]]
    reason: str = ""
    unfinished: str = ""

    @property
    def number(self) -> int:
        return sum(self.counts.values()) - self.counts[SKIPPED]

    @property
    def corrupt(self) -> list[Checked]:
        return self.lists[CORRUPT]


LISTED = (CORRUPT, UNSEEN, LEFTOVER, CLOSED, SKIPPED, WRITTEN)


class _Tally:
    """Counts files as they are looked at, and keeps the first of those that are not sound."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys((SOUND, *LISTED), 0)
        self.lists: dict[str, list[Checked]] = {status: [] for status in LISTED}

    def add(self, one: Checked) -> None:
        self.counts[one.status] += 1
        kept = self.lists.get(one.status)
        if kept is not None and len(kept) < _MOST:
            kept.append(one)

    def take_damaged(self) -> list[Checked]:
        """Return those that seem damaged and are kept, which are no longer counted then."""
        damaged, self.lists[CORRUPT] = self.lists[CORRUPT], []
        self.counts[CORRUPT] -= len(damaged)
        return damaged


def survey_files(
    path: str, deep: bool = False, tell: Callable[[int], None] | None = None
) -> Survey:
    """Look at all files below a directory, and twice at what seems damaged.

    :param deep: Whether the checksums of zip archives are computed, which reads all of them.
    :param tell: Is told now and then how many files have been looked at.
    :raises KeyboardInterrupt: At once after Ctrl-C; it says what was seen until then.
    """
    tally, reason, unfinished, told = _Tally(), "", "", time.monotonic()
    try:
        for checked in check_files(path, deep):
            tally.add(checked)
            if tell is not None and time.monotonic() - told > _PACE:
                tell(sum(tally.counts.values()))
                told = time.monotonic()
        _settle(path, deep, tally)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_describe(path, tally)) from None
    except ObstacleError as obstacle:
        reason = obstacle.reason
    except LateError as late:
        unfinished = (
            f"{sum(tally.counts.values())} files were looked at {late}; the others were not"
        )
        _doubt(tally)
    return Survey(tally.counts, tally.lists, reason, unfinished)


def _settle(path: str, deep: bool, tally: _Tally) -> None:
    """Look again at what seems damaged; what is late stays as it is until then."""
    damaged = tally.lists[CORRUPT]
    if damaged:
        again = list(look_again(path, damaged, deep))
        tally.take_damaged()
        for one in again:
            tally.add(one)


def _doubt(tally: _Tally) -> None:
    """Let what is young and was looked at only once be unknown."""
    for one in tally.take_damaged():
        status = UNSEEN if is_young(one.stamp[1] / 1e9) else one.status
        tally.add(one._replace(status=status))


def _describe(path: str, tally: _Tally) -> str:
    """Say what was seen of a cache that nobody looks at any further."""
    corrupt = tally.lists[CORRUPT]
    names = ", ".join(one.path for one in corrupt[:_NAMED])
    damaged = f", {tally.counts[CORRUPT]} of them damaged ({names})" if corrupt else ""
    number = sum(tally.counts.values())
    return f"{path}: interrupted after {number} files{damaged}; the others were not looked at"


def look_again(path: str, damaged: Sequence[Checked], deep: bool = False) -> Iterator[Checked]:
    """Yield what becomes of files that seemed damaged, once they are not young any more.

    One that is gone is left out, one that changed and seems damaged still is being written.

    :raises ObstacleError: If the directory itself cannot be opened.
    """
    if not damaged:
        return
    wait_for(max(one.stamp[1] for one in damaged) / 1e9)
    patience = Patience(None if deep else _PATIENCE)
    for one in damaged:
        now = _check_path(path, one.path, deep, patience)
        if now is None:
            continue
        if now.status == CORRUPT and (now.stamp != one.stamp or is_young(now.stamp[1] / 1e9)):
            now = now._replace(status=WRITTEN)
        yield now


def _check_path(path: str, name: str, deep: bool, patience: Patience) -> Checked | None:
    """Look at one file by its path below a directory; no link is followed on the way."""
    *above, last = name.split("/")
    here = open_directory(path)
    try:
        for part in above:
            below = os.open(part, _FOLDER, dir_fd=here)
            os.close(here)
            here = below
            if find_stranger(here):
                return None
        checked = _check_file(here, last, find_kind(last), deep, patience)
    except OSError:
        return None  # Somebody moved it meanwhile.
    finally:
        os.close(here)
    return checked and checked._replace(path=name)


def check_files(path: str, deep: bool = False) -> Iterator[Checked]:
    """Yield each file below a directory that is looked at; folders are read as they are walked.

    :raises ObstacleError: If the directory itself cannot be opened.
    """
    patience = Patience(None) if deep else Patience()
    top = open_directory(path)
    try:
        walk = [_Folder(top, ".", "")]
    except _ClosedError as closed:
        raise ObstacleError(CLOSED_FOLDER, path, f"{path} {closed}") from None
    finally:
        os.close(top)
    try:
        while walk:
            folder = walk[-1]
            entry = next(folder.entries, None)
            if entry is None:
                walk.pop().close()
            elif entry.is_dir(follow_symlinks=False):
                yield from _enter(walk, entry.name)
            else:
                checked = _check_entry(folder.handle, entry, deep, patience)
                if checked is not None:
                    yield checked._replace(path=folder.below + entry.name)
    finally:
        for folder in walk:
            folder.close()


class _ClosedError(Exception):
    """A folder may not be read."""


class _Folder:
    """An open folder whose entries are being read; ``below`` is its path, with a slash."""

    def __init__(self, parent: int, name: str, below: str) -> None:
        try:
            self.handle = os.open(name, _FOLDER, dir_fd=parent)
        except PermissionError:
            raise _ClosedError(describe_closed(parent, name)) from None
        except OSError as exc:
            raise ObstacleError("", name, f"cannot be read: {exc.strerror}") from None
        whose = find_stranger(self.handle)
        if whose:
            os.close(self.handle)
            raise ObstacleError("", name, whose)
        self.below = below
        self.entries = os.scandir(self.handle)

    def close(self) -> None:
        self.entries.close()
        os.close(self.handle)


def _enter(walk: list[_Folder], name: str) -> Iterator[Checked]:
    """Go into a folder, or yield why not."""
    if name == QUARANTINE:
        return
    below = walk[-1].below + name
    if find_kind(name):
        yield Checked(below, UNSEEN, "is a directory, not a file")
    try:
        if len(walk) >= _DEEPEST:
            raise ObstacleError("", name, "lies too deep")
        walk.append(_Folder(walk[-1].handle, name, f"{below}/"))
    except ObstacleError as obstacle:
        yield Checked(below, UNSEEN, obstacle.reason)
    except _ClosedError as closed:
        yield Checked(below, CLOSED, str(closed))


def _check_entry(
    folder: int, entry: os.DirEntry[str], deep: bool, patience: Patience
) -> Checked | None:
    """Look at one entry; nothing for a lock, and for what somebody is to finish."""
    kind = find_kind(entry.name)
    if kind:
        is_file = entry.is_file(follow_symlinks=False)
        return _check_file(folder, entry.name, kind, deep, patience, is_file)
    if is_temporary(entry.name):
        return _check_leftover(folder, entry)
    if entry.name.endswith(_LOCK):
        return None
    if entry.is_file(follow_symlinks=False) or entry.is_symlink():
        return Checked(entry.name, SKIPPED, "format unknown")
    return Checked(entry.name, SKIPPED, name_kind(entry.stat(follow_symlinks=False).st_mode))


_LOCK = ".lock"


def _check_file(
    folder: int, name: str, kind: str, deep: bool, patience: Patience, is_file: bool = False
) -> Checked | None:
    """Look at one file of a kind that is known; nothing for one that is gone meanwhile."""
    try:
        handle = open_regular(folder, name, is_file=is_file)
        try:
            verdict = check_open_file(handle, kind, deep, patience)
            found = os.fstat(handle) if verdict.status == CORRUPT else None
        finally:
            os.close(handle)
    except ObstacleError as obstacle:
        return Checked(name, UNSEEN, obstacle.reason)
    except NoFileError as error:
        return Checked(name, UNSEEN, str(error))
    except FileNotFoundError:
        return _check_link(folder, name)
    except PermissionError:
        return Checked(name, CLOSED, describe_closed(folder, name))
    except OSError as exc:
        return Checked(name, UNSEEN, f"cannot be read: {exc.strerror}")
    except MemoryError:
        return Checked(name, UNSEEN, "could not be looked at: there is too little memory")
    stamp = (found.st_size, found.st_mtime_ns) if found else (0, 0)
    return Checked(name, *verdict, stamp)


def _check_link(folder: int, name: str) -> Checked | None:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return None  # Somebody removed it meanwhile.
    if not stat.S_ISLNK(found.st_mode):
        return None
    stamp = (found.st_size, found.st_mtime_ns)
    return Checked(name, CORRUPT, "is a link that leads nowhere", stamp)


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
