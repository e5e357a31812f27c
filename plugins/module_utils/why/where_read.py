# SPDX-License-Identifier: BSD-2-Clause
"""Find where a run lived, by its process, unit, job or container, and the words that it left there.

Whoever is not root may ask for their own alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import quote as quote_url

from ..containers.cgroup import find_container
from ..core.cgroup import find_home
from ..core.values import NamedTuple
from ..docker.api_read import ask, exchange
from ..host.look import read_process
from ..host.manager_read import show_properties
from ..host.program import run_program
from ..host.users import name_user, read_user
from ..slurm.read import ask as ask_slurm
from .host_read import read_group
from .log_read import Log, read_log_as
from .signs import Group

PID, UNIT, JOB, CONTAINER, SESSION = "process", "unit", "job", "container", "session"
_UNIT = re.compile(r"[A-Za-z0-9:_.\\@-]{1,240}")
_JOB = re.compile(r"[0-9]{1,18}(?:_[0-9]{1,9})?")
_NAME = re.compile(r"[\w.-]{1,128}", re.ASCII)
_PROPERTIES = (
    *("LoadState", "Result", "ExecMainCode", "ExecMainStatus", "User", "MainPID", "ControlGroup"),
    *("MemoryMax", "TasksMax", "OOMPolicy"),
)
_LINES = 400
_PATIENCE = 10.0
_TOP = "/sys/fs/cgroup"


class Where(NamedTuple):
    """Where a run lived.

    ``kind`` and ``name`` are as check names the place; ``uid`` is whose run it was, ``None`` where
    nobody knows. ``told`` is what the manager says, ``words`` what the run left there, ``home``
    what its cgroup is called.
    """

    kind: str
    name: str
    uid: int | None
    pid: int | None = None
    words: Log = Log("", False)
    told: Mapping[str, str] = {}
    groups: Sequence[Group] = ()
    home: str = ""


class NotOursError(PermissionError):
    """A user asked about what is another's."""

    def __init__(self, what: str, owner: str) -> None:
        super().__init__(f"{what} belongs to {owner or 'another user'}; only root may ask about it")


def _require_own(what: str, uid: int | None) -> None:
    if os.geteuid() not in (0, uid):
        raise NotOursError(what, "" if uid is None else name_user(uid))


def find_process(pid: int) -> Where:
    """Return where a process lives that still runs.

    :raises OSError: If it has ended, or is another user's.
    """
    try:
        process = read_process(pid)
    except (OSError, IndexError):
        raise ProcessLookupError(
            f"process {pid} does not run; give its last words or its log instead"
        ) from None
    _require_own(f"process {pid} ({process.comm})", process.uid)
    home, container = find_home(process.cgroup), find_container(process.cgroup)
    if container:
        return Where(CONTAINER, container.engine or "docker", process.uid, pid)
    if home.unit and not home.user_unit and not home.unit.startswith("user@"):
        return Where(UNIT, home.unit, process.uid, pid)
    return Where(SESSION, name_user(process.uid), process.uid, pid)


def find_user(name: str) -> Where:
    """Return the sessions of a user as the place of a run.

    :raises OSError, ValueError: If it is another's, or there is no such user.
    """
    user = read_user(name)
    if user is None:
        raise ValueError(f"--user: there is no user {name!r} here")
    _require_own(f"what {name} runs", user.uid)
    return Where(SESSION, name, user.uid)


def find_unit(name: str) -> Where:
    """Return what the system's manager and the journal say of a unit.

    :raises OSError, ValueError: If there is none, or it is another's.
    """
    name = name if "." in name else f"{name}.service"
    if not _UNIT.fullmatch(name):
        raise ValueError(f"--unit: {name!r} is not the name of a unit")
    told = show_properties(name, _PROPERTIES)
    if told.get("LoadState", "not-found") == "not-found":
        raise ValueError(f"--unit: systemd knows no {name} here")
    user = read_user(told.get("User") or "root")
    _require_own(name, user.uid if user else None)
    pid = int(told["MainPID"]) if told.get("MainPID", "0").isdigit() else 0
    words = ["/usr/bin/journalctl", "--no-pager", "-o", "short-iso", f"-n{_LINES}", "-u", name]
    code, text = run_program(words, _PATIENCE, with_errors=False)
    groups = tuple(_list_groups(told.get("ControlGroup", "")))
    log = Log(text if code == 0 else "", True)
    return Where(UNIT, name, user.uid if user else None, pid or None, log, told, groups, name)


def _list_groups(path: str) -> Iterator[Group]:
    """Yield the bounds of a unit's cgroup and of those above it, which outlive it."""
    parts = [part for part in path.split("/") if part]
    for length in range(len(parts), 0, -1):
        for top in (_TOP, f"{_TOP}/memory", f"{_TOP}/pids"):
            yield from read_group("/".join([top, *parts[:length]]))


def find_job(identity: str) -> Where:
    """Return what Slurm says of a job, and the end of what it wrote, read as its user.

    :raises OSError, ValueError: If there is none, or it is another's.
    """
    if not _JOB.fullmatch(identity):
        raise ValueError(f"--job: {identity!r} is not the number of a job")
    shown = ask_slurm("scontrol", "show", "job", "-o", identity)
    told = dict(re.findall(r"(\w+)=(\S*)", shown.text))
    owner = re.fullmatch(r"[^()]*\(([0-9]+)\)", told.get("UserId", ""))
    if owner is None:
        reason = shown.errors.strip() or "it is too old, or never was"
        raise ValueError(f"--job: Slurm does not know job {identity}: {reason}")
    uid = int(owner[1])
    _require_own(f"job {identity}", uid)
    texts = []
    paths = dict.fromkeys(told.get(name, "") for name in ("StdOut", "StdErr"))
    for path in paths:
        if path.startswith("/"):
            try:
                texts.append(read_log_as(uid, path))  # Whose job it is chose the name.
            except OSError:
                continue  # On another node, or removed; what Slurm says is told in any case.
    state = f"JobState={told.get('JobState', '')} Reason={told.get('Reason', '')}"
    log = Log(
        "\n".join([*(one.text for one in texts), state]),
        True,
        min((one.age for one in texts), default=0.0),
    )
    return Where(JOB, "slurm", uid, words=log, told=told)


def find_docker(name: str) -> Where:
    """Return what Docker says of a container, and the end of its log.

    :raises OSError, ValueError: If there is none, or Docker does not answer.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"--container: {name!r} is not the name of a container")
    details = ask("GET", f"/containers/{quote_url(name)}/json")
    state = details["State"]
    told = {key: str(state.get(key, "")).lower() for key in ("OOMKilled", "ExitCode", "Status")}
    told["MemoryMax"] = str(details.get("HostConfig", {}).get("Memory") or "")
    path = f"/containers/{details['Id']}/logs?stdout=1&stderr=1&tail={_LINES}"
    text = _join_frames(exchange("GET", path))
    ended = f'"OOMKilled": {told["OOMKilled"]}, "ExitCode": {told["ExitCode"]}'
    log = Log(f"{text}\n{ended}", True)
    return Where(
        CONTAINER, "docker", None, int(state.get("Pid") or 0) or None, log, told, home=details["Id"]
    )


def _join_frames(content: bytes) -> str:
    """Return what a container wrote: without a terminal, each piece has a head of eight bytes.

    Source: Docker's API, ContainerAttach, "Stream format".
    """
    parts = []
    while len(content) >= 8 and content[0] < 3 and content[1:4] == b"\0\0\0":
        size = int.from_bytes(content[4:8], "big")
        parts.append(content[8 : 8 + size])
        content = content[8 + size :]
    return (b"".join(parts) + content).decode("utf-8", "replace")
