# SPDX-License-Identifier: BSD-2-Clause
"""Look at the files of one checkpoint by their names, and keep what is wrong with each."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from ..host.open_directory import ObstacleError
from .cache_look_read import check_named_file
from .cache_open_read import NoFileError, describe_closed, find_stranger, open_regular
from .file_verdict import CORRUPT, EMPTY, UNSEEN, Verdict

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_LARGEST = 64 * 2**20
_MISSING = "is missing"


class CheckpointFolder:
    """An open folder of a checkpoint, and what was found in it so far.

    ``broken`` is what resuming ends at, ``unsure`` what nobody can tell, each a name, empty for the
    folder, and why; ``lost`` are sentences on what a run goes on without. ``stamps`` are the sizes
    and times, in nanoseconds, of all that was looked at.
    """

    def __init__(self, handle: int, trusts: bool = False) -> None:
        """Read the names in a folder.

        :param trusts: Whether root opens what is others', as a program of a run does.
        :raises OSError: If it cannot be read.
        """
        self.handle, self._trusts = handle, trusts
        self.names = sorted(os.listdir(handle))
        self.stamps = {"": (0, os.fstat(handle).st_mtime_ns)}
        self.folders = {name for name in self.names if self._stamp(name)}
        self.broken: list[tuple[str, str]] = []
        self.unsure: list[tuple[str, str]] = []
        self.lost: list[str] = []

    @property
    def newest(self) -> float:
        """When something in it was last changed."""
        return max(when for _size, when in self.stamps.values()) / 1e9

    def _stamp(self, name: str) -> bool:
        try:
            found = os.stat(name, dir_fd=self.handle)
        except OSError:
            return False
        self.stamps[name] = (found.st_size, found.st_mtime_ns)
        return stat.S_ISDIR(found.st_mode)

    def has(self, name: str) -> bool:
        return name in self.names and name not in self.folders

    def check(self, name: str) -> None:
        """Look at a file by its ends."""
        handle = self._open(name)
        if handle is None:
            return
        try:
            verdict = check_named_file(handle, name) or _judge_by_size(handle)
        except (OSError, MemoryError) as error:
            self.unsure.append((name, f"cannot be read: {error}"))
            return
        finally:
            os.close(handle)
        if verdict.status == CORRUPT:
            self.broken.append((name, verdict.reason))
        elif verdict.status == UNSEEN:
            self.unsure.append((name, verdict.reason))

    def read_json(self, name: str) -> dict[str, object] | None:
        """Return what a file states; nothing where it does not, which is kept as broken."""
        content = self.read(name)
        if content is None:
            return None
        try:
            value = json.loads(content.decode("utf-8"))
        except (ValueError, RecursionError):
            self.broken.append((name, "is not JSON: it is cut short, or damaged"))
            return None
        if not isinstance(value, dict):
            self.broken.append((name, "is not a mapping"))
            return None
        return value

    def read(self, name: str) -> bytes | None:
        """Return the first 64 MiB of a file; nothing where there are none, which is kept."""
        handle = self._open(name)
        if handle is None:
            return None
        try:
            with os.fdopen(handle, "rb") as file:
                content = file.read(_LARGEST)
        except OSError as error:
            self.unsure.append((name, f"cannot be read: {error.strerror}"))
            return None
        if not content:
            self.broken.append((name, "is empty"))
        return content or None

    def _open(self, name: str) -> int | None:
        """Open a file; what is not there, or may not be read, is kept."""
        try:
            return open_regular(self.handle, name, self._trusts)
        except FileNotFoundError:
            hangs = name in self.names
            self.broken.append((name, "is a link that leads nowhere" if hangs else _MISSING))
        except NoFileError as error:
            self.broken.append((name, str(error)))
        except PermissionError:
            self.broken.append((name, describe_closed(self.handle, name)))
        except ObstacleError as obstacle:
            self.unsure.append((name, obstacle.reason))
        except OSError as error:
            self.unsure.append((name, f"cannot be read: {error.strerror}"))
        return None

    @contextmanager
    def below(self, name: str) -> Iterator[CheckpointFolder | None]:
        """Yield a folder of this one, whose results become its; ``None`` where it is closed."""
        try:
            handle = os.open(name, self._flags, dir_fd=self.handle)
        except PermissionError:
            self.broken.append((name, describe_closed(self.handle, name)))
            yield None
            return
        except OSError as error:
            self.unsure.append((name, f"cannot be read: {error.strerror}"))
            yield None
            return
        try:
            whose = "" if self._trusts else find_stranger(handle)
            if whose:
                self.unsure.append((name, whose))
                yield None
                return
            folder = CheckpointFolder(handle, self._trusts)
            yield folder
            self._take(name, folder)
        finally:
            os.close(handle)

    @property
    def _flags(self) -> int:
        return _FOLDER if self._trusts or os.geteuid() else _FOLDER | os.O_NOFOLLOW

    def _take(self, name: str, folder: CheckpointFolder) -> None:
        self.broken += [(f"{name}/{one}".rstrip("/"), why) for one, why in folder.broken]
        self.unsure += [(f"{name}/{one}".rstrip("/"), why) for one, why in folder.unsure]
        self.stamps.update({f"{name}/{one}": stamp for one, stamp in folder.stamps.items()})


def _judge_by_size(handle: int) -> Verdict:
    """Return what is to be said of a file of no format that is known."""
    if not os.fstat(handle).st_size:
        return EMPTY
    return Verdict(UNSEEN, "has an unknown format")
