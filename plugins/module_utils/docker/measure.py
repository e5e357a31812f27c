# SPDX-License-Identifier: BSD-2-Clause
"""Measure what a new Docker container would get: start one, look at it, take it away again.

Nothing is fetched. The image holds one hand-made program that sleeps and ends by itself, so
even a run that is killed half way leaves no process behind; what else it leaves is labeled and
taken away by the next run.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any
from urllib.parse import quote

from ..containers.findings import Canary, ContainerLimits, build_program, refuse_machine
from ..containers.limits_read import read_container_limits
from ..core.values import NamedTuple
from ..host.look import read_process
from .api_read import EngineError, ask, exchange, read_boot_id
from .dockerd_flags import SOCKET_PATH

LABEL = "mlhost.limits.canary"

_TIME_LIMIT = 60.0
_CLEANING_LIMIT = 10.0  # Of its own, so that a run out of time still cleans up.
_PAUSE = 0.02
_FAILURES = (OSError, ValueError, KeyError, TypeError, AttributeError)
"""Of an exchange; the last three where who answers is not an engine."""
_PROGRAM = "pause"


class _Client(NamedTuple):
    """The daemon's address and the moment, on the monotonic clock, when patience ends."""

    address: str
    deadline: float

    @property
    def left(self) -> float:
        return max(self.deadline - time.monotonic(), 0.1)

    def ask(self, method: str, path: str, content: object = None) -> Any:
        return ask(method, path, content, address=self.address, timeout=self.left)

    def send(self, path: str, body: bytes) -> bytes:
        kind = "application/x-tar"
        return exchange("POST", path, body, kind=kind, address=self.address, timeout=self.left)


def run_canary(
    address: str = SOCKET_PATH, time_limit: float = _TIME_LIMIT, proc: str = "/proc"
) -> Canary:
    """Start a container as any user would get it, read its limits from the host, remove it.

    It has no network, no capabilities, a read-only root and the engine's default runtime.

    :param time_limit: In seconds. Cleaning up has ten more.
    """
    machine = os.uname().machine
    if refuse_machine(machine):
        return Canary(None, reason=refuse_machine(machine))
    client = _Client(address, time.monotonic() + time_limit)
    owner = _owner(os.getpid(), proc)
    try:
        _remove_abandoned(client, proc)
    except _FAILURES as error:
        return Canary(None, reason=_describe(error))
    try:
        result = _measure(client, build_program(machine), owner, proc)
    except _FAILURES as error:
        result = Canary(None, reason=_describe(error))
    try:
        _remove_owned(_Client(address, time.monotonic() + _CLEANING_LIMIT), {owner})
    except _FAILURES as error:
        return result._replace(leftovers=_describe(error))
    return result


def _describe(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"the engine's answer has no {error}"
    known = isinstance(error, (OSError, ValueError))
    return str(error) if known else f"the engine does not answer as Docker does: {error}"


def _measure(client: _Client, program: bytes, owner: str, proc: str) -> Canary:
    image = _import_image(client, program, owner)
    content = {
        "Image": image,
        "Entrypoint": [f"/{_PROGRAM}"],
        "NetworkDisabled": True,
        "Labels": {LABEL: owner},
        "HostConfig": {
            "AutoRemove": True,
            "NetworkMode": "none",
            "ReadonlyRootfs": True,
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges"],
            "LogConfig": {"Type": "none"},
        },
    }
    name = f"mlhost-limits-canary-{owner}"
    try:
        container = client.ask("POST", f"/containers/create?name={name}", content)["Id"]
        _start(client, container)
    except EngineError as error:
        return Canary(None, refusal=str(error))
    found = _look_at(client, container, proc)
    return Canary(found, refusal="" if found else "the container ended at once")


def _look_at(client: _Client, container: str, proc: str) -> ContainerLimits | None:
    """Return a running container's limits; ``None`` if it has ended, even if half of them show."""
    pid = _read_pid(client, container)
    try:
        found = read_container_limits(pid, proc) if pid else None
    except (FileNotFoundError, ProcessLookupError):
        return None
    return found if _read_pid(client, container) else None


def _read_pid(client: _Client, container: str) -> int:
    """Return a container's first process; 0 where it has ended, and was removed or not."""
    try:
        return int(client.ask("GET", f"/containers/{container}/json")["State"]["Pid"])
    except EngineError as error:
        if error.status == 404:
            return 0
        raise


def _start(client: _Client, container: str) -> None:
    """Start a container; an engine that hangs up but goes on has stumbled over its defaults.

    :raises EngineError: If it does not start.
    """
    try:
        client.ask("POST", f"/containers/{container}/start")
    except ConnectionError as error:
        client.ask("GET", "/version")  # Where the engine itself is gone, nothing is known.
        raise EngineError(500, f"{error} and goes on: a default it cannot read") from None


def _import_image(client: _Client, program: bytes, owner: str) -> str:
    change = quote(f"LABEL {LABEL}={owner}")
    answer = client.send(f"/images/create?fromSrc=-&changes={change}", build_tar(program))
    for line in answer.splitlines():
        report = json.loads(line)
        if "error" in report:
            raise ValueError(f"the canary's image is refused: {report['error']}")
        if str(report.get("status", "")).startswith("sha256:"):
            return str(report["status"])
    raise ValueError(f"the canary's image has no name: the engine answered {answer[:200]!r}")


def _owner(pid: int, proc: str) -> str:
    """Return what names one process for good: its id, its start, the boot."""
    return f"{pid}-{read_process(pid, proc).start}-{read_boot_id(proc)}"


def _remove_abandoned(client: _Client, proc: str) -> None:
    """Remove what earlier runs left, but nothing of a run that is still going on."""
    owners = {entry["Labels"][LABEL] for entry in _list(client)}
    _remove_owned(client, {owner for owner in owners if not _is_alive(owner, proc)})


def _is_alive(owner: str, proc: str) -> bool:
    pid = owner.partition("-")[0]
    try:
        return pid.isdigit() and _owner(int(pid), proc) == owner
    except OSError:
        return False


def _list(client: _Client) -> list[Any]:
    wanted = quote(json.dumps({"label": [LABEL]}))
    containers = client.ask("GET", f"/containers/json?all=1&filters={wanted}")
    images = client.ask("GET", f"/images/json?filters={wanted}")
    return [*containers, *images]


def _remove_owned(client: _Client, owners: set[str]) -> None:
    """Remove until nothing is left; the containers first, since they hold the images."""
    while owners:
        entries = [entry for entry in _list(client) if entry["Labels"][LABEL] in owners]
        if not entries:
            return
        if time.monotonic() > client.deadline:
            raise TimeoutError(f"the canary's {entries[0]['Id'][:19]} could not be removed in time")
        for entry in entries:
            _remove(client, entry)


def _remove(client: _Client, entry: Any) -> None:
    path = f"/containers/{entry['Id']}" if "Names" in entry else f"/images/{entry['Id']}"
    try:
        if entry.get("State") == "running":
            client.ask("POST", f"{path}/kill")  # The engine removes it then, as it was told to.
        else:
            client.ask("DELETE", f"{path}?force=1")
    except EngineError as error:
        if error.status not in (404, 409):  # Gone, or held by what is being removed.
            raise
    time.sleep(_PAUSE)


def build_tar(program: bytes) -> bytes:
    """Return an archive that holds the program alone, executable for everyone: tar(5)."""
    fields = (_PROGRAM, "0000555", "0000000", "0000000", f"{len(program):011o}", f"{0:011o}")
    widths = (100, 8, 8, 8, 12, 12)
    head = b"".join(field.encode().ljust(width, b"\0") for field, width in zip(fields, widths))
    checksum = f"{sum(head) + 8 * ord(' ') + ord('0'):06o}\0 0".encode()
    padding = bytes(-len(program) % 512 + 1024)
    return (head + checksum).ljust(512, b"\0") + program + padding
