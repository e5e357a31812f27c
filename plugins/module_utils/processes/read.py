# SPDX-License-Identifier: BSD-2-Clause
"""Read what tells why a process has the limits it has: what started it, and what it is."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import partial

from ..core.values import NamedTuple
from ..host.door import open_file, read_kernel_file
from ..host.files import read_text
from ..host.look import Process, read_parent, read_process
from ..host.owned import ask_owner

_INTERPRETERS = re.compile(r"(python|perl|ruby|php|bash|dash|sh|zsh)[0-9.]*")
_CALLS = re.compile(rb"setrlimit|prlimit")
_WORDS = re.compile(rb"setrlimit|prlimit|RLIMIT_[A-Z]|\bulimit\b")
_SERVERS = ("tmux: server", "screen")
_MOST = 64
_AT_ONCE = 2**20
_LARGEST = 2**28
_LONGEST_NAME = 64


class Login(NamedTuple):
    """A login session as logind keeps it. ``opened`` is in seconds since the epoch."""

    id: str
    user: str
    service: str
    opened: float


def read_login(session: str, folder: str = "/run/systemd/sessions") -> Login | None:
    """Return a login session; nothing where logind does not know it."""
    text = read_text(f"{folder}/{session}") or ""
    told = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    try:
        opened = int(told["REALTIME"]) / 1e6
        return Login(session, told["USER"], told.get("SERVICE", ""), opened)
    except (KeyError, ValueError):
        return None


def find_ancestors(pid: int, proc: str = "/proc") -> list[Process]:
    """Return the processes above one, its parent first; the chain ends where one is gone."""
    found: list[Process] = []
    try:
        while len(found) < _MOST:
            pid = read_parent(pid, proc)
            if pid < 1:
                break
            found.append(read_process(pid, proc))
    except (OSError, ValueError, IndexError):
        pass
    return found


def find_main(process: Process, ancestors: Sequence[Process]) -> Process:
    """Return the process of a unit from which another descends: the last of the same cgroup."""
    main = process
    for parent in ancestors:
        if parent.cgroup != process.cgroup:
            break
        main = parent
    return main


def find_terminal_server(process: Process, ancestors: Sequence[Process]) -> Process | None:
    """Return the tmux or screen server that a process belongs to."""
    chain = (process, *ancestors)
    return next((one for one in chain if one.comm.lower() in _SERVERS), None)


def can_set_limits(pid: int, proc: str = "/proc") -> bool:
    """Tell whether a program holds the name of a call that sets limits; its script, if it is one's.

    A user's is looked at by a child that is that user. Where it cannot be read, it may.
    """
    try:
        uid = os.stat(f"{proc}/{pid}").st_uid
        task = partial(_can_set_limits, pid, proc)
        return bool(ask_owner(uid, task) if uid and os.geteuid() == 0 else task())
    except OSError:
        return True


def _can_set_limits(pid: int, proc: str) -> bool:
    name = os.path.basename(os.readlink(f"{proc}/{pid}/exe"))
    if not _INTERPRETERS.fullmatch(name):
        return _mentions(os.open(f"{proc}/{pid}/exe", os.O_RDONLY | os.O_CLOEXEC), _CALLS)
    words = os.fsdecode(read_kernel_file(f"{proc}/{pid}/cmdline")).split("\0")
    cwd = os.readlink(f"{proc}/{pid}/cwd")
    paths = [os.path.join(cwd, word) for word in words[1:] if word and word[0] != "-"]
    inline = _WORDS.search("\0".join(words[1:]).encode("utf-8", "surrogateescape"))
    scripts = [path for path in paths if os.path.isfile(path)]
    return bool(inline) or any(_mentions(open_file(path), _WORDS) for path in scripts[:_MOST])


def _mentions(handle: int, names: re.Pattern[bytes]) -> bool:
    """Tell whether an open file holds one of these names; read in parts, for it may shrink."""
    seen, left = b"", _LARGEST
    try:
        while left > 0:
            part = os.read(handle, _AT_ONCE)
            if not part:
                return False
            if names.search(seen[-_LONGEST_NAME:] + part):
                return True
            seen, left = part, left - len(part)
        return True  # It is too large to tell.
    finally:
        os.close(handle)
