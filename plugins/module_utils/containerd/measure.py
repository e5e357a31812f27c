# SPDX-License-Identifier: BSD-2-Clause
"""Read what containers of containerd inherit, and what a new one like a pod's would get."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

from ..containers.cgroup import CONTAINERD, CRIO
from ..containers.findings import Canary, build_program, refuse_machine
from ..containers.limits_read import read_container_limits
from ..containers.read import RunningContainer, find_monitor, find_running
from ..containers.spec import Started, read_spec
from ..core.cgroup import find_home
from ..core.values import UNLIMITED
from ..host.daemons import is_daemon, is_in_unit
from ..host.door import find_paths
from ..host.files import read_text
from ..host.look import Process
from ..host.program import last_line, run_program
from ..host.scratch import CANARY, PROGRAMS, make_scratch, remove_scratch
from .base_spec import CONFIG, BaseSpec, find_base_spec

_CTR = "/usr/bin/ctr"
NAMESPACE = "mlhost-limits"
UNIT = "containerd.service"
NAME = "canary"
_TIME_LIMIT = 60.0
_STATES = "/run/containerd/io.containerd.runtime.v*"


def find_containerd(processes: Iterable[Process]) -> Process | None:
    """Return the containerd of this host's own; not one that runs in a container or for Docker."""
    running = (one for one in processes if one.comm == "containerd" and one.uid == 0)
    own = (one for one in running if is_in_unit(one.cgroup, (UNIT,)))
    return next((one for one in own if is_daemon(one.pid, "containerd", (UNIT,))), None)


def describe_absence(processes: Iterable[Process]) -> str:
    """Return why there is no containerd to ask; that of a snap is a service like another."""
    processes = list(processes)
    running = (one for one in processes if one.comm == "containerd" and one.uid == 0)
    units = (find_home(one.cgroup).unit for one in running)
    snap = next((unit for unit in units if unit.startswith("snap.")), "")
    if snap:
        return f"containerd is that of a snap here: ask for {snap} below services.units"
    if find_running(processes, (CRIO,)):
        return "CRI-O runs the containers of this host: ask for containers.crio"
    return f"no containerd of {UNIT} is running on this host"


def find_containers(processes: Iterable[Process]) -> list[RunningContainer]:
    """Return the containers of Kubernetes, of ctr and of nerdctl that run, but for our own."""
    found = find_running(processes, (CONTAINERD,))
    return [one for one in found if one.container.namespace != NAMESPACE]


def read_base_spec() -> BaseSpec | None:
    """Return the specification that pods are started with, if config.toml names one.

    :raises OSError, ValueError: If it cannot be read.
    """
    text = read_text(CONFIG)
    at = find_base_spec(text) if text else None
    if at is None:
        return None
    path = str(at.value)
    spec = read_text(path)
    if spec is None:
        raise ValueError(f"{path}, which {at.place} names, is absent")
    limits, tasks = read_spec(spec)
    return BaseSpec(path, limits, at, tasks, spec)


def read_task(one: RunningContainer) -> Started:
    """Return what is known of how a running container was started."""
    from ..containers.spec_read import read_started  # Where one has too little.

    monitor = find_monitor(one.process.pid)
    if monitor and monitor.bundle:  # CRI-O's.
        return read_started(one.container, f"{monitor.bundle}/config.json", one.owner)
    paths = find_paths(f"{_STATES}/*/{_escape(one.container.id)}/config.json")
    return read_started(one.container, next(iter(paths), ""))


def _escape(name: str) -> str:
    """Return a name with what a pattern would take for its own."""
    return "".join(f"[{char}]" if char in "*?[" else char for char in name)


def run_containerd_canary(base: BaseSpec | None) -> Canary:
    """Start a container as the kubelet would get it, read its limits, remove it.

    :param base: The base specification; what it does not state is inherited.
    """
    if not os.access(_CTR, os.X_OK):
        return Canary(None, reason="there is no ctr, the client that comes with containerd")
    machine = os.uname().machine
    if refuse_machine(machine):
        return Canary(None, reason=refuse_machine(machine))
    folder = make_scratch(PROGRAMS, CANARY)
    try:
        _write(folder, machine, base)
        return _measure(folder)
    except (OSError, ValueError) as error:
        return Canary(None, reason=str(error))
    finally:
        _ctr("task", "kill", "--signal", "KILL", NAME)
        _ctr("task", "delete", "--force", NAME)
        _ctr("container", "delete", NAME)
        _ctr("namespace", "remove", NAMESPACE)
        remove_scratch(folder)


def _write(folder: str, machine: str, base: BaseSpec | None) -> None:
    """Write the specification, and the file system with its one program."""
    for name in ("fs", "fs/proc"):
        os.mkdir(f"{folder}/{name}", 0o755)
    with open(f"{folder}/fs/pause", "wb") as file:
        file.write(build_program(machine))
    os.chmod(f"{folder}/fs/pause", 0o755)  # noqa: S103 - a program is run by everyone
    rlimits = [
        {"type": f"RLIMIT_{name.upper()}", "soft": limit.soft, "hard": limit.hard}
        for name, limit in (base.limits if base else {}).items()
    ]
    spaces = [{"type": name} for name in ("pid", "mount", "ipc", "uts", "network")]
    spec: dict[str, Any] = {
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": 0, "gid": 0},
            "args": ["/pause"],
            "cwd": "/",
            "noNewPrivileges": True,
            "rlimits": rlimits,
        },
        "root": {"path": f"{folder}/fs", "readonly": True},
        "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"}],
        "linux": {"namespaces": spaces, "cgroupsPath": f"/{NAMESPACE}/{NAME}"},
    }
    if base and base.tasks is not None:
        most = -1 if base.tasks >= UNLIMITED else base.tasks
        spec["linux"]["resources"] = {"pids": {"limit": most}}
    with open(f"{folder}/spec.json", "w", encoding="ascii") as text:
        json.dump(spec, text)


def _measure(folder: str) -> Canary:
    code, said = _ctr("run", "--detach", "--config", f"{folder}/spec.json", NAME)
    if code:
        return Canary(None, refusal=last_line(said))
    code, said = _ctr("task", "list")
    rows = [line.split() for line in said.splitlines()]
    pids = [int(row[1]) for row in rows if len(row) > 2 and row[0] == NAME and row[1].isdigit()]
    if not pids:
        return Canary(None, refusal="the container ended at once")
    return Canary(read_container_limits(pids[0]))


def _ctr(*words: str) -> tuple[int, str]:
    return run_program([_CTR, "--namespace", NAMESPACE, *words], _TIME_LIMIT)
