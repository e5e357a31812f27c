# SPDX-License-Identifier: BSD-2-Clause
"""Read what a Docker daemon runs with, and the limits its containers really have.

The daemon is asked over its own socket: the ``docker`` command is slow to start and may be
missing. Unit files are read as files, so a host that is not booted can be read as well.
"""

from __future__ import annotations

import json
import os
import re
import socket
import time
from collections.abc import Iterator, Mapping
from typing import Any

from ..core.values import NamedTuple
from ..host.booted import is_chroot
from ..host.daemons import is_daemon
from ..host.door import connect, read_kernel_file, read_peer
from ..host.files import read_text
from ..host.look import Process, read_limits, read_process, read_unit_pids
from ..kernel.read import read_sysctl
from .dockerd_flags import SOCKET_PATH, Flag, parse_flags

_LONGEST = 32 * 2**20
_LONGEST_MESSAGE = 2000
_ID = r"[\w.-]{1,128}"
_ONE_ANSWER = 10.0
_PATIENCE = 2.0


class EngineError(ValueError):
    """The daemon's own refusal. ``status`` is that of HTTP."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Container(NamedTuple):
    """A running container. ``pid`` is its first process, as the host counts.

    ``details`` is the engine's own description, as it answers.
    """

    id: str
    name: str
    pid: int
    image: str
    details: Mapping[str, Any] = {}


class UntoldError(TimeoutError):
    """The time is over before all containers have been told of; ``told`` are those that were."""

    def __init__(self, reason: str, told: list[Container]) -> None:
        super().__init__(reason)
        self.told = told


class Daemon(NamedTuple):
    """The running daemon and the flags on its command line."""

    process: Process
    flags: list[Flag]


def exchange(
    method: str,
    path: str,
    body: bytes = b"",
    *,
    kind: str = "application/json",
    address: str = SOCKET_PATH,
    timeout: float = 10.0,
) -> bytes:
    """Send one HTTP/1.0 request to the daemon and return the body of its answer.

    Where systemd holds the socket, a request starts a stopped daemon: see :func:`find_daemon`.

    :param kind: The media type of *body*.
    :param timeout: For the whole exchange, in seconds.
    :raises EngineError: With the daemon's message, if it refuses.
    :raises OSError: If the socket is missing, closed to us, or silent.
    """
    what = f"{method} {path.partition('?')[0]}"
    head = (
        f"{method} {path} HTTP/1.0\r\nHost: docker\r\n"
        f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    try:
        answer = _talk(address, head.encode("ascii") + body, time.monotonic() + timeout)
    except FileNotFoundError:
        raise FileNotFoundError(f"{address} does not exist: Docker is not running here") from None
    except ConnectionRefusedError:
        raise ConnectionRefusedError(f"{address}: nobody listens, Docker is not running") from None
    except PermissionError:
        raise PermissionError(f"{address}: permission denied, Docker answers root only") from None
    except (ConnectionResetError, BrokenPipeError):
        answer = b""
    except socket.timeout:
        raise TimeoutError(f"{address}: no answer to {what} in {timeout:.3g} s") from None
    if not answer:
        raise ConnectionError(f"{address}: the daemon hung up on {what}")
    return _parse_answer(answer, address)


def _talk(address: str, request: bytes, deadline: float) -> bytes:
    with connect(address, deadline) as connection:
        _allow(connection, deadline)
        connection.sendall(request)
        answer = bytearray()
        while True:
            _allow(connection, deadline)
            part = connection.recv(65536)
            if not part:
                return bytes(answer)
            answer += part
            if len(answer) > _LONGEST:
                raise ValueError(f"{address}: an answer is longer than {_LONGEST} bytes")


def _allow(connection: socket.socket, deadline: float) -> None:
    """Let the next step take what is left of the time.

    :raises socket.timeout: If nothing is.
    """
    left = deadline - time.monotonic()
    if left <= 0:
        raise socket.timeout
    connection.settimeout(left)


def _parse_answer(answer: bytes, address: str) -> bytes:
    head, body = answer.partition(b"\r\n\r\n")[::2]
    words = head.split(None, 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/") or not words[1].isdigit():
        raise ValueError(f"{address} does not speak HTTP: it answered {answer[:40]!r}")
    status = int(words[1])
    if status >= 400:
        raise EngineError(status, _parse_message(body) or f"HTTP status {status}")
    return body


def _parse_message(body: bytes) -> str:
    try:
        return str(json.loads(body)["message"]).strip()
    except (ValueError, KeyError, TypeError, RecursionError):
        return body[:_LONGEST_MESSAGE].decode("utf-8", "replace").strip()


def ask(
    method: str,
    path: str,
    content: object = None,
    *,
    address: str = SOCKET_PATH,
    timeout: float = 10.0,
) -> Any:
    """Send JSON, return JSON; ``None`` for an empty answer. Raises as :func:`exchange` does."""
    body = b"" if content is None else json.dumps(content).encode()
    answer = exchange(method, path, body, address=address, timeout=timeout)
    try:
        return json.loads(answer) if answer.strip() else None
    except RecursionError:
        raise ValueError(f"{address}: an answer holds too many nested values") from None


def read_containers(address: str = SOCKET_PATH, timeout: float = 30.0) -> list[Container]:
    """Return the running containers; one that ends while they are read is left out.

    :param timeout: For all of them together, in seconds.
    :raises UntoldError: If the time is over before all have been told.
    :raises OSError: If nobody answers.
    :raises ValueError: If who answers is not an engine.
    """
    told: list[Container] = []
    try:
        told.extend(_read_containers(address, time.monotonic() + timeout))
        return told
    except TimeoutError:
        reason = (
            f"{address}: told of {len(told)} containers in {timeout:g} s, and not of the others"
        )
        raise UntoldError(reason, told) from None
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{address} does not answer as Docker does: {error!r}") from None


def _read_containers(address: str, deadline: float) -> Iterator[Container]:
    for entry in ask("GET", "/containers/json", address=address, timeout=_left(deadline, address)):
        if not re.fullmatch(_ID, entry["Id"], re.ASCII):
            raise ValueError(f"{address}: a container has the id {entry['Id']!r:.99}")
        path = f"/containers/{entry['Id']}/json"
        try:
            state = ask("GET", path, address=address, timeout=_left(deadline, address))
        except EngineError as error:
            if error.status == 404:
                continue
            raise
        if state["State"]["Pid"]:
            name = state["Name"].lstrip("/")
            yield Container(entry["Id"], name, int(state["State"]["Pid"]), entry["Image"], state)


def _left(deadline: float, address: str) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError(f"{address}: did not list all containers in time")
    return min(left, _ONE_ANSWER)


def find_daemon(
    unit: str = "docker.service",
    proc: str = "/proc",
    cgroups: str = "/sys/fs/cgroup",
    pid_file: str = "/run/docker.pid",
) -> Daemon | None:
    """Return the running dockerd, from its unit's cgroup or else from its pid file."""
    if proc == "/proc" and is_chroot():
        return None  # What runs is the dockerd of the machine that builds this image.
    pids = read_unit_pids(unit, root=cgroups) or _read_pid_file(pid_file)
    for pid in pids:
        if not is_daemon(pid, "dockerd", (unit,), proc):
            continue
        try:
            process = read_process(pid, proc)
            words = os.fsdecode(read_kernel_file(f"{proc}/{pid}/cmdline")).rstrip("\0").split("\0")
        except OSError:
            continue
        path = f"/proc/{pid}/cmdline"
        return Daemon(process, parse_flags((word, path, 0) for word in words[1:]))
    return None


def _read_pid_file(path: str) -> list[int]:
    try:
        return [int(read_text(path) or "")]
    except (OSError, ValueError):
        return []


def find_listener(address: str) -> int | None:
    """Return the process that listens on a Unix socket; ``None`` where nobody does.

    A socket that systemd opened belongs to process 1.
    """
    try:
        with connect(address, time.monotonic() + _PATIENCE) as connection:
            return read_peer(connection)[0]
    except OSError:
        return None


def read_canary_key(daemon: Daemon, config: bytes, proc: str = "/proc") -> str:
    """Return a digest of all that decides a canary's result; the same digest, the same result.

    :param config: daemon.json as it stands; the daemon read it at its start.
    """
    pid = find_containerd(daemon)
    facts: list[object] = [
        daemon.process.pid,
        daemon.process.start,
        daemon.flags,
        config,
        read_boot_id(proc),
        read_sysctl("fs.nr_open", proc),
    ]
    for parent in filter(None, (daemon.process.pid, pid)):
        facts += [parent, read_process(parent, proc).start, read_limits(parent, proc)]
    import hashlib  # Slow to import, and only a host with Docker needs it.

    return hashlib.sha256(repr(facts).encode()).hexdigest()


def find_containerd(daemon: Daemon) -> int | None:
    """Return the process of the containerd that a daemon was told, or starts for itself.

    Containers start from its limits. ``None`` where none answers.
    """
    given = {flag.name: flag.value for flag in daemon.flags}
    own = f"{given.get('exec-root', '/var/run/docker')}/containerd/containerd.sock"
    told = given.get("containerd", "")
    sockets = [told] if told else ["/run/containerd/containerd.sock", own]
    return next(filter(None, map(find_listener, sockets)), None)


def read_boot_id(proc: str = "/proc") -> str:
    """Return what names this boot: no other boot of any machine has it."""
    return read_sysctl("kernel.random.boot_id", proc) or ""
