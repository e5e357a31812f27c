# SPDX-License-Identifier: BSD-2-Clause
"""Judge the containers of users' own dockerds against a policy.

A child that is the user looks at each, and asks its daemon. What it tells is that user's word, and
counts for places that have that user's name and for nothing else.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterator, Mapping
from functools import cached_property, partial
from typing import Any

from ..containers.findings import judge_container_unknown
from ..containers.policy import ContainerPolicy
from ..core.cause import Cause, Outlook, Remedy
from ..core.finding import FAIL, PASS, UNKNOWN, Finding, Observation, Requirement
from ..core.packed import pack, unpack
from ..core.quote import one_line
from ..core.values import Declaration, Rlimit
from ..host.as_user import Errand, ask_users, find_person
from ..host.children import Report
from ..host.door import read_kernel_file
from ..host.files import LARGEST
from ..host.look import Look, Process, read_limits, read_process
from ..host.users import name_user
from ..services.diagnose import explain_container_tasks
from ..write.cache import keep_entry, pick, read_entry
from .api_read import Daemon, find_listener, read_canary_key
from .causes import find_docker_causes
from .compose import Compose
from .daemon_json import StatedDefault, read_defaults
from .dockerd_flags import find_config_path, find_socket, parse_flags
from .engine_check import CACHE, Cache, check_engine
from .flags import read_flag_defaults
from .measure import run_canary
from .read import DockerRead
from .rootless import Rootless, explain_rootless
from .running import explain_running, find_tasks_causes
from .unit_read import find_dockerd, read_daemon_json

_KINDS = {
    kind.__name__: kind
    for kind in (Finding, Requirement, Observation, Cause, Outlook, Remedy, Declaration)
}
_LOADED = (
    *(find_dockerd, find_docker_causes, explain_running, run_canary, read_canary_key),
    *(find_tasks_causes, explain_container_tasks, hashlib, subprocess),
)
"""What a look imports on its way: a user's child may not read the files that it lies in."""

_MOST = 64


def check_rootless(
    policy: ContainerPolicy, canary: str, look: Look, seconds: float
) -> Iterator[Finding]:
    """Yield the findings of every rootless daemon, its places named after its user.

    :param seconds: How long they may take together: what root's own look needs is not theirs.
    """
    engines = list(list_rootless(look))
    errands = [
        Errand(
            find_person(docker.process.uid),
            partial(_look, policy, canary, engine, docker, look, _HandedOver(docker.process.uid)),
            seconds=seconds,
        )
        for engine, docker in engines[:_MOST]
    ]
    reports = ask_users(errands)
    for (engine, docker), report in zip(engines, reports):
        for finding in _read(report, policy, engine, docker.process.uid):
            yield finding._replace(owner=docker.user)
    for engine, docker in engines[_MOST:]:
        reason = f"no more than {_MOST} users' own dockerds are looked at"
        for finding in judge_container_unknown(f"new-container:{engine}", policy, reason):
            yield finding._replace(owner=docker.user)


class _HandedOver(Cache):
    """What was kept of a user's canary, as root read it; root keeps what is new."""

    def __init__(self, uid: int) -> None:
        self.entry = read_entry(f"{CACHE}-{uid}")
        self.is_new = False

    def read(self, key: str) -> object | None:
        return pick(self.entry, key)

    def keep(self, key: str, content: object) -> None:
        self.entry, self.is_new = {"key": key, "content": content}, True


def _look(
    policy: ContainerPolicy,
    canary: str,
    engine: str,
    docker: RootlessRead,
    look: Look,
    cache: _HandedOver,
) -> Any:
    """Return the findings of one daemon, and what its canary keeps. Runs as its user."""
    process = docker.process
    limits = read_limits(process.pid)
    if not docker.is_own:
        reason = f"who answers at {one_line(docker.address)} is not uid {process.uid}"
        return [pack(judge_container_unknown(f"new-container:{engine}", policy, reason)), None]
    daemon = Rootless(docker.user, process.pid, limits, _read_stated(docker))
    found = check_engine(policy, canary, look.seen_by(DockerRead, docker), engine, cache)
    findings = [explain_rootless(finding, daemon) for finding in found]
    return [pack(findings), cache.entry if cache.is_new else None]


def _read(report: Report, policy: ContainerPolicy, engine: str, uid: int) -> Iterator[Finding]:
    """Yield what a user's child tells of that user's own places."""
    try:
        if report.problem:
            raise ValueError(report.problem)
        told, kept = report.value
        findings = unpack(told, _KINDS)
        if not all(_is_about(one, engine) for one in findings):
            raise ValueError("it speaks of what is not the user's")
    except (TypeError, ValueError, AttributeError) as error:
        reason = f"the user's own dockerd could not be looked at: {one_line(str(error))}"
        yield from judge_container_unknown(f"new-container:{engine}", policy, reason)
        return
    if kept:
        keep_entry(f"{CACHE}-{uid}", kept)
    yield from findings


def _is_about(finding: object, engine: str) -> bool:
    if not isinstance(finding, Finding) or finding.status not in (PASS, FAIL, UNKNOWN):
        return False
    place = finding.requirement.place
    return place == f"new-container:{engine}" or place.startswith(f"container:{engine}/")


def list_rootless(look: Look) -> Iterator[tuple[str, RootlessRead]]:
    """Yield a rootless daemon of each user, the oldest, after what its places begin with."""
    oldest: dict[int, Any] = {}
    for process in sorted(look.at(DockerRead).rootless, key=lambda one: one.start):
        oldest.setdefault(process.uid, process)
    for process in oldest.values():
        docker = RootlessRead(process)
        yield f"docker/{one_line(docker.user)}", docker


def _read_stated(docker: RootlessRead) -> list[StatedDefault]:
    """Return the defaults that a daemon's file and flags state; none where they are unclear."""
    try:
        text = docker.config
        stated = read_defaults(text, docker.config_path, docker.version) if text else []
        return [*stated, *read_flag_defaults(docker.flags)]
    except (OSError, ValueError):
        return []


class RootlessRead(DockerRead):
    """One look at a user's own Docker."""

    def __init__(self, process: Process, proc: str = "/proc") -> None:
        self.process, self._proc = process, proc

    @cached_property
    def user(self) -> str:
        return name_user(self.process.uid)

    @cached_property
    def _environment(self) -> dict[str, str]:
        return dict(word.partition("=")[::2] for word in self._read_words("environ"))

    def _read_words(self, name: str) -> list[str]:
        content = read_kernel_file(f"{self._proc}/{self.process.pid}/{name}", LARGEST)
        return os.fsdecode(content).rstrip("\0").split("\0")

    @cached_property
    def daemon(self) -> Daemon | None:
        path = f"/proc/{self.process.pid}/cmdline"
        words = [(word, path, 0) for word in self._read_words("cmdline")[1:]]
        return Daemon(self.process, parse_flags(words))

    @cached_property
    def unit(self) -> str:
        return ""  # One of the user's manager, which we do not restart.

    @cached_property
    def _run_folder(self) -> str:
        return self._environment.get("XDG_RUNTIME_DIR") or f"/run/user/{self.process.uid}"

    @cached_property
    def address(self) -> str:
        return find_socket(self.running_flags, f"{self._run_folder}/docker.sock")

    @property
    def is_own(self) -> bool:
        """Tell whether the user is who answers at the socket."""
        return self._belongs(find_listener(self.address))

    def _belongs(self, pid: int | None) -> bool:
        try:
            return bool(pid) and read_process(pid or 0, self._proc).uid == self.process.uid
        except OSError:
            return False

    @cached_property
    def config_path(self) -> str:
        if any(flag.name == "config-file" for flag in self.running_flags):
            return find_config_path(self.running_flags)
        home = self._environment.get("HOME") or os.path.expanduser(f"~{self.user}")
        folder = self._environment.get("XDG_CONFIG_HOME") or f"{home}/.config"
        return f"{folder}/docker/daemon.json"

    @cached_property
    def config(self) -> str | None:
        return read_daemon_json(self.config_path)

    def read_running_config(self) -> bytes:
        return b""  # It is read when the daemon starts, and a daemon is told by its start.

    @cached_property
    def usual_config(self) -> str | None:
        return None

    @cached_property
    def containerd(self) -> Process | None:
        """Return the user's containerd, or else dockerd, which starts it with its own limits."""
        given = {flag.name: flag.value for flag in self.running_flags}
        folder = given.get("exec-root") or f"{self._run_folder}/docker"
        pid = find_listener(given.get("containerd") or f"{folder}/containerd/containerd.sock")
        return read_process(pid, self._proc) if pid and self._belongs(pid) else self.process

    @cached_property
    def containerd_unit(self) -> str:
        return ""  # It is within user@UID.service, whose limits PAM replaces.

    def read_own_ulimits(self, _details: Mapping[str, Any]) -> dict[str, Rlimit] | None:
        return None

    def read_compose(self, _details: Mapping[str, Any]) -> Compose | None:
        return None
