# SPDX-License-Identifier: BSD-2-Clause
"""Find the processes that somebody asks to have raised, and prove where each lives.

Whoever is not root may ask for their own alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from urllib.parse import quote as quote_url

from ..core.cgroup import list_units
from ..core.values import NamedTuple, User
from ..docker.api_read import ask
from ..host.door import read_kernel_text
from ..host.look import Process, find_processes, read_parent, read_process
from ..host.manager_read import show_properties
from ..host.program import run_program
from ..host.users import name_user, read_user
from ..slurm.read import ask as ask_slurm
from ..why.where_read import find_job_owner
from .owed import CONTAINER, JOB, OWN_UNIT, SESSION, Home, find_living

TYPE_CHECKING = False
_UIDS = re.compile(r"^Uid:((?:\s+[0-9]+){4})$", re.MULTILINE)
_UNIT = re.compile(r"[A-Za-z0-9:_.\\@-]{1,240}")
_NAME = re.compile(r"[\w.-]{1,128}", re.ASCII)
_JOB = re.compile(r"[0-9]{1,18}")
_ID = re.compile(r"[0-9a-f]{64}")
_PATIENCE = 10.0


class Living(NamedTuple):
    """A process that runs, where it lives, and whose it is."""

    process: Process
    home: Home
    user: User


if TYPE_CHECKING:
    Choose = Callable[[Living], bool]


def read_living(processes: Iterable[Process] | None = None) -> Iterator[Living]:
    """Yield every process whose place can be proved, without the kernel's own."""
    for process in find_processes() if processes is None else processes:
        user = _find_user(process)
        home = find_living(process.cgroup, user.name) if user else None
        if user and home:
            yield Living(process, home, user)


def _find_user(process: Process) -> User | None:
    """Return whose a process is; nothing where it changes between users, or is the kernel's."""
    try:
        found = _UIDS.search(read_kernel_text(f"/proc/{process.pid}/status"))
        os.readlink(f"/proc/{process.pid}/exe")  # A thread of the kernel has none.
    except OSError:
        return None
    uids = set(found[1].split()) if found else set()
    return _read_user(process.uid) if uids == {str(process.uid)} else None


@lru_cache(maxsize=256)
def _read_user(uid: int) -> User | None:
    """Return a user; one that the host does not know, as in containers, has a number for a name."""
    user = read_user(name_user(uid))
    return user if user and user.uid == uid else User(str(uid), uid, uid)


def choose_process(pid: int) -> Choose:
    """Choose a process and all that it started which live where it does.

    :raises OSError: If it does not run, or is another user's.
    """
    try:
        first = read_process(pid)
    except (OSError, IndexError):
        raise ProcessLookupError(f"--pid: process {pid} does not run") from None
    _require_own(f"process {pid} ({first.comm})", first.uid)

    def is_chosen(one: Living) -> bool:
        own = one.process
        if own.pid == pid:
            return own.start == first.start
        return own.uid == first.uid and own.cgroup == first.cgroup and _descends(own.pid, pid)

    return is_chosen


def _descends(pid: int, above: int) -> bool:
    try:
        while pid > 1 and pid != above:
            pid = read_parent(pid)
    except (OSError, ValueError, IndexError):
        return False
    return pid == above


def choose_user(name: str) -> Choose:
    """Choose what a user runs in sessions and services of the own.

    :raises OSError, ValueError: If it is another's, or there is no such user.
    """
    user = read_user(name)
    if user is None:
        raise ValueError(f"--user: there is no user {name!r} here")
    _require_own(f"what {name} runs", user.uid)
    return lambda one: one.user.uid == user.uid and one.home.kind in (SESSION, OWN_UNIT)


def choose_unit(name: str) -> Choose:
    """Choose what runs in a unit of the system.

    :raises OSError, ValueError: If there is none, or the caller is not root.
    """
    name = name if "." in name else f"{name}.service"
    if not _UNIT.fullmatch(name):
        raise ValueError(f"--unit: {name!r} is not the name of a unit")
    _require_own(name, None)
    told = show_properties(name, ("Id", "LoadState"))
    if told.get("LoadState", "not-found") == "not-found":
        raise ValueError(f"--unit: systemd knows no {name} here")
    own = told.get("Id") or name
    return lambda one: own in list_units(one.process.cgroup)


def choose_container(name: str) -> Choose:
    """Choose what runs in a container of root's Docker or Podman.

    :raises OSError, ValueError: If there is none, or the caller is not root.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"--container: {name!r} is not the name of a container")
    _require_own(f"container {name}", None)
    identity = _ask_docker(name) or _ask_podman(name)
    if not _ID.fullmatch(identity):
        raise ValueError(f"--container: neither Docker nor Podman knows {name}")
    return lambda one: one.home.kind == CONTAINER and one.home.name == identity


def _ask_docker(name: str) -> str:
    try:
        return str(ask("GET", f"/containers/{quote_url(name)}/json")["Id"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _ask_podman(name: str) -> str:
    words = ["/usr/bin/podman", "container", "inspect", "--format", "{{.Id}}", "--", name]
    code, text = run_program(words, _PATIENCE, with_errors=False)
    return text.strip() if code == 0 else ""


def choose_job(identity: str) -> Choose:
    """Choose what runs here of a job of Slurm: by its cgroup, or else as slurmd counts it.

    :raises OSError, ValueError: If there is none, or it is another user's.
    """
    if not _JOB.fullmatch(identity):
        raise ValueError(f"--job: {identity!r} is not the number of a job")
    shown = ask_slurm("scontrol", "show", "job", "-o", identity)
    if not shown.text.startswith("JobId="):
        reason = shown.errors.strip() or "it is too old, or never was"
        raise ValueError(f"--job: Slurm does not know job {identity}: {reason}")
    uid = find_job_owner(identity, shown.text)
    _require_own(f"job {identity}", uid)
    rows = ask_slurm("scontrol", "listpids", identity).text.splitlines()
    told = {row.split()[0] for row in rows[1:] if row.split()}
    return lambda one: (
        one.user.uid == uid and (one.home == Home(JOB, identity) or str(one.process.pid) in told)
    )


def _require_own(what: str, uid: int | None) -> None:
    if os.geteuid() not in (0, uid):
        owner = "" if uid is None else name_user(uid)
        raise PermissionError(f"{what} belongs to {owner or 'root'}; only root may raise it")
