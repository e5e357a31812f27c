# SPDX-License-Identifier: BSD-2-Clause
"""For training code: save a file whole or not at all, verify a checkpoint, get an own folder.

``from mlhost_limits import atomic_save, job_cache_dir, verify_checkpoint``. Nothing but the
standard library is imported, and torch where it is there and something is saved with it.
"""

from __future__ import annotations

import errno
import importlib
import os
import stat
from collections.abc import Callable
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Union

    Path = Union[str, os.PathLike[str]]
    Save = Callable[[object, str], object]

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_SYNC = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EBADF)
_LONGEST_NAME = 180  # Bytes, so that what is added fits into the 255 bytes of a name.


def verify_checkpoint(folder: Path) -> list[str]:
    """Return what keeps a run from going on from a checkpoint, a sentence each; none if it can.

    The state of the Trainer, the weights with every shard of an index, the optimizer and the states
    of DeepSpeed, FSDP or accelerate are looked at by their ends, as far as their library reads
    them. What seems damaged is looked at again after three seconds.

    :param folder: A checkpoint, such as ``output/checkpoint-100``.
    """
    from .training.checkpoint_read import read_contents

    path = os.fspath(folder).rstrip("/") or "/"
    try:
        handle = os.open(path, _FOLDER)
    except OSError as error:
        return [f"{path} cannot be opened: {error.strerror}"]
    try:
        found = read_contents(handle, trusts=True)
    except OSError as error:
        return [f"{path} cannot be read: {error.strerror}"]
    finally:
        os.close(handle)
    troubles = [*found.broken, *found.unsure]
    return [f"{os.path.join(path, name).rstrip('/')} {why}" for name, why in troubles]


def atomic_save(obj: object, path: Path, save: Save | None = None) -> None:
    """Save to a path so that whoever reads it finds the old file or the new one, never a part.

    It is written beside the path, to the disk, read back, and renamed; of two that save at the same
    time one is left whole. After an error, or a full disk, the old file is as it was, and nothing
    is left beside it.

    :param save: Is called with the object and a path to write it to; by default ``torch.save``, or
        ``pickle`` where there is no torch.
    :raises OSError: If it cannot be written, or what is read back is damaged.
    """
    target = os.path.realpath(os.fspath(path))
    with suppress(FileNotFoundError):
        if stat.S_IFMT(os.stat(target).st_mode) not in (stat.S_IFREG, stat.S_IFDIR):
            raise OSError(errno.EINVAL, "is not a regular file, and is not replaced", target)
    folder, name = os.path.split(target)
    name = os.fsdecode(os.fsencode(name)[:_LONGEST_NAME])
    temporary = os.path.join(folder, f".{name}.{os.urandom(4).hex()}.temp{os.getpid()}")
    os.close(os.open(temporary, _NEW, 0o666))
    try:
        (save or _find_save())(obj, temporary)
        _finish(temporary, target, is_ours=save is None)
        os.replace(temporary, target)
    except BaseException:
        _remove(temporary)
        raise
    _sync_folder(folder)


def _find_save() -> Save:
    """Return how an object is saved where nobody says."""
    try:
        save: Any = importlib.import_module("torch").save
    except ImportError:
        return _save_pickle
    return save  # type: ignore[no-any-return]


def _save_pickle(obj: object, path: str) -> None:
    import pickle

    with open(path, "wb") as file:
        pickle.dump(obj, file, protocol=pickle.HIGHEST_PROTOCOL)


def _finish(temporary: str, target: str, is_ours: bool) -> None:
    """Bring a file to the disk and look at it; it gets mode and, by root, owner of the old one."""
    handle = os.open(temporary, os.O_RDWR | os.O_CLOEXEC)
    try:
        with suppress(FileNotFoundError):
            old = os.stat(target)
            if os.geteuid() == 0:
                os.fchown(handle, old.st_uid, old.st_gid)
            os.fchmod(handle, stat.S_IMODE(old.st_mode))
        os.fsync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)  # So that the disk is read.
        _read_back(handle, os.path.basename(target), is_ours)
    finally:
        os.close(handle)


def _read_back(handle: int, name: str, is_ours: bool) -> None:
    """Look at all of a file, as far as its format has sums.

    :raises OSError: If it is damaged, or nothing was written.
    """
    if not os.fstat(handle).st_size:
        raise OSError(errno.EIO, "nothing was written to the path that save was called with", name)
    from .training.cache_look_read import check_open_file
    from .training.file_verdict import CORRUPT, PT, find_kind

    kind = PT if is_ours else find_kind(name)
    verdict = check_open_file(handle, kind, deep=True) if kind else None
    if verdict is not None and verdict.status == CORRUPT:
        raise OSError(errno.EIO, f"what was written {verdict.reason}", name)


def _sync_folder(folder: str) -> None:
    """Bring a rename to the disk, where the file system can."""
    handle = os.open(folder, _FOLDER)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
    finally:
        os.close(handle)


def _remove(temporary: str) -> None:
    """Remove what was written, under whatever ending a function gave it besides."""
    folder, name = os.path.split(temporary)
    for one in os.listdir(folder):
        if one.startswith(name):
            with suppress(OSError):
                os.unlink(os.path.join(folder, one))


_JOB = "SLURM_JOB_ID"
_BASES = ("SLURM_TMPDIR", "TMPDIR")
_USUAL = ("/tmp", "/var/tmp")  # noqa: S108 - each folder made there is closed, and its owner looked at


def job_cache_dir(base: Path | None = None) -> str:
    """Return a directory that belongs to this job alone, with mode 0700, and make it.

    All processes of a job of Slurm on a node get the same one; without Slurm, each process its own.
    It is not a link, and nobody else's: where somebody has taken its name, it gets another.

    :param base: Where it is made; by default the first of ``$SLURM_TMPDIR``, ``$TMPDIR``, /tmp and
        /var/tmp that can be written and is local, or, where none is local, that can be written.
    :raises OSError: If it cannot be made, or others could put another in its place.
    """
    where = os.path.realpath(os.fspath(base) if base is not None else _find_base())
    if base is not None:
        os.makedirs(where, 0o700, exist_ok=True)
    found = os.stat(where)
    if found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX:
        mode = stat.S_IMODE(found.st_mode)
        text = f"anybody may exchange what is made there: its mode is {mode:04o}, and not 1777"
        raise PermissionError(errno.EPERM, text, where)
    path = os.path.join(where, f"mlhost-{os.geteuid()}-{_name_job()}")
    return path if _make_own(path) else _make_another(path)


def _find_base() -> str:
    named = [os.environ.get(name, "") for name in _BASES]
    usable = [
        path
        for path in (*named, *_USUAL)
        if path.startswith("/") and os.path.isdir(path) and os.access(path, os.W_OK | os.X_OK)
    ]
    if not usable:
        tried = ", ".join((*(f"${name}" for name in _BASES), *_USUAL))
        raise FileNotFoundError(errno.ENOENT, f"no directory can be written; tried were {tried}")
    return next(filter(_is_local, usable), usable[0])


def _is_local(path: str) -> bool:
    from .training.folder_measure import find_mount
    from .training.folder_rules import LOCAL, find_reach

    handle = os.open(path, _FOLDER)
    try:
        return find_reach(find_mount(handle).get("kind", "")) == LOCAL
    finally:
        os.close(handle)


def _name_job() -> str:
    """Return a name that no other job of this host has: its number, or when this process began."""
    job = os.environ.get(_JOB, "")
    if job.isascii() and job.isdigit():
        return f"job-{job}"
    from .host.door import read_kernel_text

    began = read_kernel_text("/proc/self/stat").rpartition(")")[2].split()[19]  # starttime
    return f"run-{os.getpid()}-{began}"


def _make_own(path: str) -> bool:
    """Make a directory, or take one that is ours; tell whether it could be done."""
    with suppress(FileExistsError):  # Of another process of the job, or somebody took the name.
        os.mkdir(path, 0o700)
    try:
        handle = os.open(path, _FOLDER | os.O_NOFOLLOW)
    except OSError:
        return False  # A link, or a file, or closed to us.
    try:
        if os.fstat(handle).st_uid != os.geteuid():
            return False
        os.fchmod(handle, 0o700)
    finally:
        os.close(handle)
    return True


def _make_another(path: str) -> str:
    import tempfile

    return tempfile.mkdtemp(prefix=f"{os.path.basename(path)}-", dir=os.path.dirname(path))
