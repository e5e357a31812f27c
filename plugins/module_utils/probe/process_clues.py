# SPDX-License-Identifier: BSD-2-Clause
"""Read what tells why a process has the limits it has: what started it, and what it is."""

from __future__ import annotations

import mmap
import os
import re
from typing import NamedTuple

from ..policy.declaration import Declaration
from ..policy.shell_limits import ShellLine, find_shell_limits
from ..policy.unit_file import Setting, split_words
from .files import read_text
from .process import Process, read_parent, read_process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_INTERPRETERS = re.compile(r"(python|perl|ruby|php|bash|dash|sh|zsh)[0-9.]*")
_CALLS = re.compile(rb"setrlimit|prlimit")
_WORDS = re.compile(rb"setrlimit|prlimit|RLIMIT_[A-Z]|\bulimit\b")
_SERVERS = ("tmux: server", "screen")
_DEFAULTS = re.compile(r"/etc/(?:default|sysconfig)/[\w.-]+")
_PRLIMIT = re.compile(r"\bprlimit\b.*?--([a-z]+)=([0-9]+)")
_MOST = 64


class Login(NamedTuple):
    """A login session as logind keeps it. ``opened`` is in seconds since the epoch."""

    id: str
    user: str
    service: str
    leader: int
    opened: float


def read_login(session: str, folder: str = "/run/systemd/sessions") -> Login | None:
    """Return a login session; nothing where logind does not know it."""
    text = read_text(f"{folder}/{session}") or ""
    told = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    try:
        opened = int(told["REALTIME"]) / 1e6
        return Login(session, told["USER"], told.get("SERVICE", ""), int(told["LEADER"]), opened)
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

    Where it cannot be read, it may.
    """
    try:
        name = os.path.basename(os.readlink(f"{proc}/{pid}/exe"))
        if not _INTERPRETERS.fullmatch(name):
            return _mentions(f"{proc}/{pid}/exe", _CALLS)
        with open(f"{proc}/{pid}/cmdline", encoding="utf-8", errors="surrogateescape") as file:
            words = file.read().split("\0")
        cwd = os.readlink(f"{proc}/{pid}/cwd")
        paths = [os.path.join(cwd, word) for word in words[1:] if word and word[0] != "-"]
        inline = _WORDS.search("\0".join(words[1:]).encode("utf-8", "surrogateescape"))
        scripts = [path for path in paths if os.path.isfile(path)]
        return bool(inline) or any(_mentions(path, _WORDS) for path in scripts)
    except OSError:
        return True


def _mentions(path: str, names: re.Pattern[bytes]) -> bool:
    with open(path, "rb") as file:
        if not os.fstat(file.fileno()).st_size:
            return False
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return names.search(content) is not None


def find_starters(settings: Sequence[Setting]) -> Iterator[ShellLine]:
    """Yield what a unit's command lines set with ulimit, and the scripts that they name."""
    for setting in settings:
        if setting.section != "Service" or setting.key != "ExecStart":
            continue
        at = Declaration(setting.path, setting.line, f"{setting.key}={setting.value}", "")
        for line in find_shell_limits(setting.value.replace('"', " ").replace("'", " "), ""):
            yield line._replace(at=at._replace(value=line.at.value))
        for item, soft in _PRLIMIT.findall(setting.value):
            yield ShellLine(item, ("soft", "hard"), at._replace(value=int(soft)))
        for path in _find_scripts(setting.value):
            yield from find_shell_limits(read_text(path) or "", path)


def _find_scripts(command: str) -> Iterator[str]:
    """Yield the script that a command line runs, and the settings file that it reads."""
    try:
        words = [word.lstrip("-@:+!|") for word in split_words(command)]
    except ValueError:
        return
    for path in words[:3]:
        if path.startswith("/") and _is_script(path):
            yield path
            yield from dict.fromkeys(_DEFAULTS.findall(read_text(path) or ""))


def _is_script(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return False
