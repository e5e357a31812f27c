# SPDX-License-Identifier: GPL-3.0-or-later
"""The values that both sides set on a target, as variables of its inventory."""

from __future__ import annotations

import resource
from typing import NamedTuple

_GIB = 2**30


class Values(NamedTuple):
    """Limits of logins and values of the kernel; ``memlock`` in bytes, ``None`` for no limit."""

    nofile_soft: int
    nofile_hard: int
    memlock: int | None
    sysctls: dict[str, int]
    docker: bool
    reload: bool


GUEST = Values(
    nofile_soft=65536,
    nofile_hard=1048576,
    memlock=None,
    sysctls={
        "fs.file-max": 2097152,
        "fs.nr_open": 1048576,
        "vm.max_map_count": 262144,
        "net.core.rmem_max": 16777216,
    },
    docker=True,
    reload=True,
)


def read_native_values() -> Values:
    """Return values that this machine's root may set, where a container's root may raise nothing.

    Every sysctl is stated as it is: both sides write their file, and neither the running kernel,
    which a private tree shares with everything else here.
    """
    _, nofile = resource.getrlimit(resource.RLIMIT_NOFILE)
    _, memlock = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    sysctls = {}
    for key in GUEST.sysctls:
        with open(f"/proc/sys/{key.replace('.', '/')}", encoding="ascii") as file:
            sysctls[key] = int(file.read())
    hard = min(nofile, sysctls["fs.nr_open"])
    return Values(
        nofile_soft=min(hard, GUEST.nofile_soft),
        nofile_hard=hard,
        memlock=None if memlock == resource.RLIM_INFINITY else memlock,
        sysctls=sysctls,
        docker=False,
        reload=False,
    )


def format_variables(values: Values) -> dict[str, object]:
    """Return the variables that peers.yml and ours.yml take."""
    nofile = {"soft": values.nofile_soft, "hard": values.nofile_hard}
    memlock: object = "unlimited" if values.memlock is None else values.memlock
    memlock_kib = "unlimited" if values.memlock is None else values.memlock // 1024
    limits = {"nofile": nofile, "memlock": memlock}
    stated = {
        "nofile": {name: str(value) for name, value in nofile.items()},
        "memlock": {"soft": str(memlock_kib), "hard": str(memlock_kib)},
    }
    policy: dict[str, object] = {
        "sessions": [{"users": ["*", "root"], "limits": limits}],
        "kernel": values.sysctls,
    }
    if values.docker:
        policy["containers"] = {"docker": {"limits": limits, "shm_size": "8GiB"}}
    return {
        "bench_login_limits": stated,
        "bench_limits_file": "".join(
            f"{user} {kind} {name} {value}\n"
            for user in ("root", "*")
            for name, values in stated.items()
            for kind, value in values.items()
        ),
        "bench_sysctl_file": "".join(f"{key} = {value}\n" for key, value in values.sysctls.items()),
        "bench_sysctls": {key: str(value) for key, value in values.sysctls.items()},
        "bench_sysctl_reload": values.reload,
        "bench_docker": values.docker,
        "bench_daemon": _format_daemon(values),
        "bench_policy": policy,
    }


def _format_daemon(values: Values) -> dict[str, object]:
    return {
        "default-ulimits": {
            "nofile": {"Name": "nofile", "Soft": values.nofile_soft, "Hard": values.nofile_hard},
            "memlock": {"Name": "memlock", "Soft": -1, "Hard": -1},
        },
        "default-shm-size": str(8 * _GIB),
    }
