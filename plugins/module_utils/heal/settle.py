# SPDX-License-Identifier: BSD-2-Clause
"""Raise what was planned, one thing after the other, keep a record, and take it back."""

from __future__ import annotations

import ctypes
import os
import re
import resource
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..core.fields import parse_fields
from ..core.values import ITEMS, UNLIMITED, Rlimit
from ..docker.api_read import ask
from ..host.door import read_kernel_text
from ..host.guarded import run_guarded
from ..host.look import read_limits, read_process
from ..host.program import last_line, run_program
from ..kernel.read import read_sysctl
from ..kernel.settle import apply_sysctls
from ..shared_memory.model import SHM as SHM_PATH
from ..shared_memory.provision import remount_shm
from ..training.shm_read import find_folder, read_size
from ..write.cache import read_entry, write_entry
from ..write.systemctl import systemctl
from .raises import LIMIT, SHM, SYSCTL, TASKS, Change

RECORD = "healed"
"""What was raised since the boot, in the directory of what is kept until the next one."""

_SECONDS = 30.0
_CLONE_NEWNS, _MS_REMOUNT, _TMPFS = 0x20000, 32, "tmpfs"
_FLAGS = {"ro": 1, "nosuid": 2, "nodev": 4, "noexec": 8, "noatime": 1024, "relatime": 1 << 21}
_ENGINE = re.compile(r"(docker|podman)/([0-9a-f]{64})(?::(\d+):(\d+))?")


def read_now(change: Change) -> tuple[int, ...] | None:
    """Return what something that was raised has now; nothing where it is gone."""
    try:
        if change.kind == LIMIT:
            pid, start = map(int, change.target.split(":"))
            if read_process(pid).start != start:
                return None
            return tuple(read_limits(pid)[change.item])
        if change.kind == SYSCTL:
            return parse_fields(read_sysctl(change.item)) or None
        if change.kind == SHM:
            container = _ENGINE.fullmatch(change.target)
            if container:
                _require_start(container)
            return (read_size(find_folder(container[3] if container else "self")),)
        return _read_tasks(change.target)
    except (OSError, ValueError, IndexError, KeyError):
        return None


def _read_tasks(target: str) -> tuple[int, ...] | None:
    """Return the tasks that a cgroup may hold. A target is ``NAME PATH`` of its pids.max."""
    text = read_kernel_text(target.partition(" ")[2]).strip()
    return (UNLIMITED,) if text == "max" else (int(text),)


def _require_start(container: re.Match[str]) -> None:
    if read_process(int(container[3])).start != int(container[4]):
        raise ProcessLookupError(f"process {container[3]} is another one by now")


def set_value(change: Change, value: Sequence[int]) -> str:
    """Give something a value; return why that failed, or nothing."""
    try:
        return _SETTERS[change.kind](change, value)
    except (OSError, ValueError, IndexError) as error:
        return str(getattr(error, "strerror", None) or error)


def _set_limit(change: Change, value: Sequence[int]) -> str:
    """Set a limit, and put it back where the process is another one by then."""
    pid, start = map(int, change.target.split(":"))
    if read_process(pid).start != start:
        return "it has ended"
    number = ITEMS[change.item].resource or 0
    soft, hard = (one - 2**64 if one >= 2**63 else one for one in value)
    before = resource.prlimit(pid, number, (soft, hard))
    if read_process(pid).start != start:
        resource.prlimit(pid, number, before)
        return "it has ended"
    return ""


def _set_sysctl(change: Change, value: Sequence[int]) -> str:
    apply_sysctls([(change.item, " ".join(map(str, value)))])
    return ""


def _set_tasks(change: Change, value: Sequence[int]) -> str:
    name = change.target.partition(" ")[0]
    container = _ENGINE.fullmatch(name)
    if container is None:
        most = "infinity" if value[0] >= UNLIMITED else str(value[0])
        return systemctl("set-property", "--runtime", "--", name, f"TasksMax={most}")
    most = "-1" if value[0] >= UNLIMITED else str(value[0])
    if container[1] == "podman":
        words = ["/usr/bin/podman", "update", f"--pids-limit={most}", container[2]]
        code, text = run_program(words, _SECONDS)
        return last_line(text) if code else ""
    ask("POST", f"/containers/{container[2]}/update", {"PidsLimit": int(most)})
    return ""


def _set_shm(change: Change, value: Sequence[int]) -> str:
    container = _ENGINE.fullmatch(change.target)
    if container is None:
        return remount_shm(value[0])
    _require_start(container)
    space = os.open(f"/proc/{container[3]}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    try:
        _require_start(container)
        problem = run_guarded(lambda: _remount_inside(space, value[0]), _SECONDS)[1]
    finally:
        os.close(space)
    return problem


def shares_shm(pid: int) -> bool:
    """Tell whether a process of a container has the host's own /dev/shm, as with --ipc=host.

    :raises OSError: If it has ended, or has none.
    """
    return os.stat(find_folder(str(pid))).st_dev == os.stat(SHM_PATH).st_dev


def _remount_inside(space: int, size: int) -> None:
    """Remount a container's /dev/shm from inside of its mounts. Runs in a child.

    Nothing of the container is run, no link there is followed, and flags that it has stay.
    """
    library = ctypes.CDLL(None, use_errno=True)
    own = os.open("/proc/self", os.O_RDONLY | os.O_DIRECTORY)
    _require(library.setns(space, _CLONE_NEWNS), "setns")
    text = _read_at(own, "mountinfo")
    folder = os.open(SHM_PATH, os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY)
    os.fchdir(folder)
    seen = os.fstat(folder)
    device = f"{os.major(seen.st_dev)}:{os.minor(seen.st_dev)}"
    rows = [row.split(" ") for row in text.splitlines()]
    found = [row for row in rows if row[2] == device and row[4] == SHM_PATH]
    if not found or found[-1][found[-1].index("-") + 1] != _TMPFS:
        raise OSError(f"its {SHM_PATH} is not a tmpfs of its own")
    flags = sum(_FLAGS.get(word, 0) for word in found[-1][5].split(","))
    options = f"size={size}".encode()
    _require(library.mount(None, b".", None, _MS_REMOUNT | flags, options), "mount")


def _read_at(folder: int, name: str) -> str:
    handle = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    with open(handle, encoding="utf-8", errors="surrogateescape") as file:
        return file.read()


def _require(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


_SETTERS: Mapping[str, Callable[[Change, Sequence[int]], str]] = {
    LIMIT: _set_limit,
    SYSCTL: _set_sysctl,
    TASKS: _set_tasks,
    SHM: _set_shm,
}


def keep_record(changes: Sequence[Change]) -> None:
    """Keep what is about to be raised, so that it can be taken back whatever happens next.

    :raises OSError: If it cannot be kept: nothing is raised then.
    """
    write_entry(RECORD, [one._asdict() for one in changes])


def read_record() -> list[Change]:
    """Return what was raised since the boot, in its order; nothing where no record is usable."""
    kept: Any = read_entry(RECORD)
    try:
        return [_read_change(one) for one in kept or ()]
    except (KeyError, TypeError, ValueError):
        return []


def _read_change(raw: Mapping[str, Any]) -> Change:
    numbers = [tuple(int(one) for one in raw[name]) for name in ("before", "after")]
    words = [str(raw[name]) for name in ("kind", "item", "target", "who", "place")]
    if words[0] not in _SETTERS:
        raise ValueError(words[0])
    if words[0] == LIMIT:
        Rlimit(*numbers[0])
    return Change(words[0], words[1], words[2], numbers[0], numbers[1], words[3], words[4])
