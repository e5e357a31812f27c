# SPDX-License-Identifier: BSD-2-Clause
"""Find where a run lived, by its process, unit, job or container, and the words that it left there.

Whoever is not root may ask for their own alone.
"""

from __future__ import annotations

import json
import os
import re
import time
from calendar import timegm
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
from .facts import Group
from .host_read import read_group
from .log_read import Log, read_log_as

PID, UNIT, JOB, CONTAINER, SESSION = "process", "unit", "job", "container", "session"
_UNIT = re.compile(r"[A-Za-z0-9:_.\\@-]{1,240}")
_JOB = re.compile(r"[0-9]{1,18}(?:_[0-9]{1,9})?")
_NAME = re.compile(r"[\w.-]{1,128}", re.ASCII)
_PROPERTIES = (
    *("LoadState", "Result", "ExecMainCode", "ExecMainStatus", "User", "MainPID", "ControlGroup"),
    *("MemoryMax", "TasksMax", "OOMPolicy", "Id", "Slice", "InvocationID", "NRestarts"),
    *("ExecMainStartTimestampMonotonic", "ExecMainExitTimestampMonotonic"),
)
_INVOCATION = re.compile(r"[0-9a-f]{32}")
_NODE_COUNT = re.compile(r" NumNodes=1(?:-1)? ")
_FAILED = re.compile(r"(?!COMPLETED|RUNNING|PENDING|COMPLETING|CONFIGURING|SUSPENDED)\w")
_MOST_JOBS = 8
"""Tasks of an array whose logs are read."""

_LINES = 400
_PATIENCE = 10.0
_TOP = "/sys/fs/cgroup"


class Where(NamedTuple):
    """Where a run lived.

    ``kind`` and ``name`` are as check names the place; ``uid`` is whose run it was, ``None`` where
    nobody knows. ``told`` is what the manager says, ``words`` what the run left there, ``home``
    its cgroup, a path. ``started`` and ``ended`` are how many seconds ago it did, ``None`` where
    nobody knows. ``here`` tells that it was on this host.
    """

    kind: str
    name: str
    uid: int | None
    pid: int | None = None
    words: Log = Log("", False)
    told: Mapping[str, str] = {}
    groups: Sequence[Group] = ()
    home: str = ""
    started: float | None = None
    ended: float | None = None
    here: bool = True


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
    return place_process(process.cgroup, process.uid)._replace(pid=pid)


def place_process(cgroup: str, uid: int) -> Where:
    """Return where a process lives, by its /proc/PID/cgroup."""
    home, container = find_home(cgroup), find_container(cgroup)
    if container:
        return Where(CONTAINER, container.engine or "docker", uid)
    if home.unit and not home.user_unit and not home.unit.startswith("user@"):
        return Where(UNIT, home.unit, uid)
    return Where(SESSION, name_user(uid), uid)


def find_user(name: str) -> Where:
    """Return the sessions of a user as the place of a run.

    :raises OSError, ValueError: If it is another's, or there is no such user.
    """
    user = read_user(name)
    if user is None:
        raise ValueError(f"--user: there is no user {name!r} here")
    _require_own(f"what {name} runs", user.uid)
    return Where(SESSION, name, user.uid, here=False)  # A log may be of any host.


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
    name = told.get("Id") or name  # What was asked may be an alias.
    user = read_user(told.get("User") or "root")
    _require_own(name, user.uid if user else None)
    pid = int(told["MainPID"]) if told.get("MainPID", "0").isdigit() else 0
    started, ended = (
        _count_age(told.get(f"ExecMain{one}TimestampMonotonic", "0")) for one in ("Start", "Exit")
    )
    is_again = pid > 0 and told.get("NRestarts", "0") != "0"
    if is_again:  # What runs now is not what died, and nobody says when that did.
        pid, started, ended = 0, None, None
    log = Log(_read_journal(name, "" if is_again else told.get("InvocationID", "")), True)
    home = told.get("ControlGroup") or f"{_find_slice(told.get('Slice', ''))}/{name}"
    where = Where(UNIT, name, user.uid if user else None, pid or None, log, told)
    return where._replace(
        groups=tuple(list_groups(home)), home=home, started=started, ended=0.0 if pid else ended
    )


def _count_age(told: str) -> float | None:
    """Return how many seconds ago something was, by the microseconds of a clock since the boot."""
    at = int(told) / 1e6 if told.isdigit() else 0.0
    return max(time.clock_gettime(time.CLOCK_MONOTONIC) - at, 0.0) if at else None


def _find_slice(name: str) -> str:
    """Return the cgroup of a slice: each dash of its name is a level (systemd.slice(5))."""
    stem = name[: -len(".slice")] if name.endswith(".slice") else ""
    if stem in ("", "-"):
        return ""
    parts = stem.split("-")
    return "".join(f"/{'-'.join(parts[:end])}.slice" for end in range(1, len(parts) + 1))


def _read_journal(name: str, invocation: str) -> str:
    """Return the end of what a unit's last run wrote, and the manager of it; else the unit's."""
    words = ["/usr/bin/journalctl", "--no-pager", "-o", "short-iso", f"-n{_LINES}"]
    if _INVOCATION.fullmatch(invocation):
        own, of_manager = f"_SYSTEMD_INVOCATION_ID={invocation}", f"INVOCATION_ID={invocation}"
        code, text = run_program(
            [*words, own, "+", of_manager, "_PID=1"], _PATIENCE, with_errors=False
        )
    else:
        code, text = run_program([*words, "-u", name], _PATIENCE, with_errors=False)
    return text if code == 0 else ""


def list_groups(path: str) -> Iterator[Group]:
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
    lines = [line for line in shown.text.splitlines() if line.startswith("JobId=")]
    if not lines:
        reason = shown.errors.strip() or "it is too old, or never was"
        raise ValueError(f"--job: Slurm does not know job {identity}: {reason}")
    uid = find_job_owner(identity, shown.text)
    _require_own(f"job {identity}", uid)
    failed = [line for line in lines if _FAILED.match(_find_first(line, "JobState"))]
    lines = (failed or lines)[:_MOST_JOBS]
    texts = list(_read_jobs(uid, lines))
    told = {name: _find_first(lines[0], name) for name in ("JobState", "Reason")}
    state = f"JobState={told['JobState']} Reason={told['Reason']}"
    log = Log(
        "\n".join([*(one.text for one in texts), state]),
        True,
        min((one.age for one in texts), default=0.0),
    )
    here = all(_is_here(line) for line in lines)
    return Where(JOB, "slurm", uid, words=log, told=told, here=here)


def find_job_owner(identity: str, text: str) -> int:
    """Return whose a job is: whoever chose its name, its folder or its comment may have written
    another user there, and then nobody's word counts.

    :raises ValueError: If Slurm's answer names several users, or none.
    """
    owners = set(re.findall(r"\bUserId=(\S*)", text))
    owner = re.fullmatch(r"[^()]*\(([0-9]+)\)", owners.pop()) if len(owners) == 1 else None
    if owner is None:
        raise ValueError(f"--job: what Slurm says of job {identity} does not name one user")
    return int(owner[1])


def _find_first(line: str, name: str) -> str:
    """Return what Slurm says of a job; nothing where a name that its user chose says other."""
    found = set(re.findall(rf"(?:^| ){name}=(\S*)", line))
    return found.pop() if len(found) == 1 else ""


def _is_here(line: str) -> bool:
    """Tell whether a job ran on this host alone."""
    own = os.uname().nodename.partition(".")[0]
    return _find_first(line, "BatchHost") == own and bool(_NODE_COUNT.search(line))


def _read_jobs(uid: int, lines: Sequence[str]) -> Iterator[Log]:
    """Yield the ends of what jobs wrote, read as their user, who chose the names."""
    found = [_find_path(line, name) for line in lines for name in ("StdOut", "StdErr")]
    for path in dict.fromkeys(found):
        if path.startswith("/"):
            try:
                yield read_log_as(uid, path)
            except OSError:
                continue  # On another node, or removed; what Slurm says is told in any case.


def _find_path(line: str, name: str) -> str:
    """Return a path, which may hold blanks, up to the next name; Slurm's own stand last."""
    found = re.findall(rf" {name}=((?:(?! [A-Z]\w*=).)*)", line)
    return found[-1].rstrip() if found else ""


def find_docker(name: str) -> Where:
    """Return what Docker says of a container, and the end of its log.

    :raises OSError, ValueError: If there is none, or Docker does not answer.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"--container: {name!r} is not the name of a container")
    details = ask("GET", f"/containers/{quote_url(name)}/json")
    state = details["State"]
    told = {key: str(state.get(key, "")).lower() for key in ("OOMKilled", "ExitCode", "Status")}
    told.update(_read_signals(details["Id"], state.get("StartedAt")))
    told["MemoryMax"] = str(details.get("HostConfig", {}).get("Memory") or "")
    path = f"/containers/{details['Id']}/logs?stdout=1&stderr=1&tail={_LINES}"
    text = _join_frames(exchange("GET", path))
    ended = f'"OOMKilled": {told["OOMKilled"]}, "ExitCode": {told["ExitCode"]}'
    log = Log(f"{text}\n{ended}", True)
    pid = int(state.get("Pid") or 0) or None
    return Where(
        *(CONTAINER, "docker", None, pid, log, told),
        home=details["Id"],
        started=_count_since(state.get("StartedAt")),
        ended=0.0 if pid else _count_since(state.get("FinishedAt")),
    )


def _read_signals(identity: str, started: object) -> dict[str, str]:
    """Return the signals that Docker was told to send to a container, if it still knows them all.

    It keeps its last events, and knows all of this run's while it knows its start.
    """
    age = _count_since(started)
    if age is None:
        return {}
    now, asked = time.time(), {"container": [identity], "event": ["kill", "start"]}
    filters = quote_url(json.dumps(asked))
    path = f"/events?since={int(now - age) - 1}&until={int(now) + 1}&filters={filters}"
    try:
        events = [json.loads(row) for row in exchange("GET", path).splitlines() if row.strip()]
        signals = [str(one["Actor"]["Attributes"].get("signal", "")) for one in events]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
    return {"signals": ", ".join(filter(None, signals))} if "" in signals else {}


def _count_since(told: object) -> float | None:
    """Return how many seconds ago a date was that Docker tells; it has year 1 for never."""
    match = re.match(r"([12]\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d)[.\d]*Z", str(told))
    if match is None:
        return None
    return max(time.time() - timegm(time.strptime(match[1], "%Y-%m-%dT%H:%M:%S")), 0.0)


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
