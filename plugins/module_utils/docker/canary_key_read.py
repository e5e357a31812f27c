# SPDX-License-Identifier: BSD-2-Clause
"""Tell whether the last canary's result still holds, without starting another one."""

from __future__ import annotations

from ..host.process import read_limits, read_process
from ..kernel.read import read_sysctl
from .api_read import Daemon, find_listener


def read_canary_key(daemon: Daemon, config: bytes, address: str = "", proc: str = "/proc") -> str:
    """Return a digest of all that decides a canary's result; the same digest, the same result.

    :param config: daemon.json as it stands; the daemon read it at its start.
    :param address: The socket of containerd, whose limits containers start from. By default
        the one that the daemon was told, or starts for itself.
    """
    pid = find_containerd(daemon, address)
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


def find_containerd(daemon: Daemon, address: str = "") -> int | None:
    """Return the process of the containerd that a daemon uses; ``None`` where none answers."""
    return next(filter(None, map(find_listener, _containerd_sockets(daemon, address))), None)


def _containerd_sockets(daemon: Daemon, address: str) -> list[str]:
    given = {flag.name: flag.value for flag in daemon.flags}
    own = f"{given.get('exec-root', '/var/run/docker')}/containerd/containerd.sock"
    told = address or given.get("containerd", "")
    return [told] if told else ["/run/containerd/containerd.sock", own]


def read_boot_id(proc: str = "/proc") -> str:
    """Return what names this boot: no other boot of any machine has it."""
    return read_sysctl("kernel.random.boot_id", proc) or ""
