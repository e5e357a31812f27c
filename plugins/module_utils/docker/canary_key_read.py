# SPDX-License-Identifier: BSD-2-Clause
"""Tell whether the last canary's result still holds, without starting another one."""

from __future__ import annotations

from ..host.process import read_limits, read_process
from ..kernel.read import read_sysctl
from .api_read import Daemon, find_listener


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
