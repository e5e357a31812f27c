# SPDX-License-Identifier: BSD-2-Clause
"""Every key that a policy may have: what the readers accept, and what the docs say of it.

A name in capitals stands for one of the user's own: of a sysctl, a unit, a package.
"""

from __future__ import annotations

from typing import NamedTuple

from .rlimit import ITEMS, RLIMITS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Key(NamedTuple):
    """One key: the kind of its value, what it means, and what its kind leaves open.

    ``accepted`` are the items of limits, or the words of a choice. ``least`` and ``most`` bound a
    number. ``below`` are the keys of a mapping, or of each mapping of a list.
    """

    kind: str
    text: str
    accepted: tuple[str, ...] = ()
    least: int = 0
    most: int = 10**6
    below: Mapping[str, Key] = {}


_CONTAINER_ITEMS = tuple(name for name in RLIMITS if name != "as")
_JOB_ITEMS = tuple(name for name in RLIMITS if name not in ("cpu", "fsize", "rss"))
_MOST_PARAMETERS = 10**15
_PROPAGATED = ("cpu", "fsize", "data", "stack", "core", "rss", "nproc", "nofile", "memlock", "as")

BOUNDS = {
    "soft": Key("limit", "what a process begins with: set exactly, checked as a minimum"),
    "hard": Key("limit", "how far it may raise that itself: set exactly, checked as a minimum"),
    "max": Key("limit", "the highest hard limit that passes; only checked"),
}
SESSION = {
    "users": Key("domains", "whose logins; `*` never means root"),
    "limits": Key("limits", "what a fresh login has", tuple(ITEMS)),
}
SYSCTL = {
    "min": Key("number", "the least value that passes; a lower one is raised"),
    "max": Key("number", "the highest value that passes; only checked"),
    "exact": Key("line", "the text that it must have, alone"),
}
_TASKS = {"tasks": Key("tasks", "how many processes and threads its cgroup may hold")}
SERVICES = {
    "default": Key("rule", "services that state nothing", RLIMITS, below=_TASKS),
    "user_default": Key(
        "rule", "services of users' managers that state nothing", RLIMITS, below=_TASKS
    ),
    "units": Key(
        "by name",
        "units by their names",
        below={
            "UNIT": Key(
                "rule",
                "a service, a template, or a slice, which has tasks alone",
                RLIMITS,
                below=_TASKS,
            )
        },
    ),
    "logind": Key(
        "mapping",
        "logind.conf",
        below={
            "remove_ipc": Key(
                "switch", "whether the shared memory of a user goes with the last login"
            )
        },
    ),
}
DOCKER = {
    "limits": Key("limits", "what a container has that states nothing", _CONTAINER_ITEMS),
    "shm_size": Key("size above 0", "the size of its /dev/shm"),
}
PODMAN = {
    "limits": Key("limits", "what a container has that states nothing", _CONTAINER_ITEMS),
    "shm_size": Key("size above 0", "the size of its /dev/shm"),
    "users": Key("users", "whose rootless containers are checked too"),
}
CONTAINERD = {"limits": Key("limits", "what pods and `ctr` containers inherit", _CONTAINER_ITEMS)}
ENGINES = {
    "docker": Key("mapping", "Docker", below=DOCKER),
    "podman": Key("mapping", "Podman", below=PODMAN),
    "containerd": Key("mapping", "containerd, and Kubernetes above it", below=CONTAINERD),
}
PROCESS = {
    "user": Key("one of three", "processes of this user"),
    "name": Key("one of three", "processes with this name in /proc/PID/comm"),
    "unit": Key("one of three", "processes in the cgroup of this systemd unit"),
    "limits": Key("limits", "what each of them has", RLIMITS),
}
SHARED_MEMORY = {"size": Key("size above 0", "what /dev/shm of the host has at least")}
SLURM = {
    "limits": Key("limits", "what a job has", _JOB_ITEMS),
    "partitions": Key("partitions", "in which a job is tried; else in the default one"),
    "propagate": Key(
        "propagate",
        "the soft limits that a login may decide; else all but those of `limits`",
        _PROPAGATED,
    ),
    "memory": Key("size", "what a job gets that asks for as much; only checked", least=64 * 2**20),
    "cpus": Key(
        "count",
        "how many CPUs a job gets that asks for as many; only checked",
        least=1,
        most=2**16,
    ),
}
JOBS = {"slurm": Key("mapping", "jobs of Slurm", below=SLURM)}
DEEPSPEED = {
    "stage": Key("stage", "the stage of ZeRO", ("2", "3"), least=1),
    "parameters": Key(
        "count", "the number of the model's parameters", least=1, most=_MOST_PARAMETERS
    ),
    "largest_layer": Key(
        "count", "the number of parameters of the largest layer", least=1, most=_MOST_PARAMETERS
    ),
    "gpus_per_node": Key("count", "GPUs of each node", least=1),
    "nodes": Key("count", "nodes", least=1),
    "offload_optimizer": Key("switch", "whether the optimizer is in the host's memory"),
    "offload_parameters": Key("switch", "whether the parameters are"),
    "zero_init": Key("switch", "whether the model is made under `zero.Init`"),
}
GPUS = {
    "count": Key("count", "how many", least=1),
    "memory": Key("size", "free memory of each"),
}
TRAINING = {
    "checks": Key("checks", "these checks and no others"),
    "needs": Key("checks", "checks that must be made: what they lack is refused, all at once"),
    "workers": Key("count", "the number of workers that each rank starts"),
    "prefetch": Key("count", "batches that each worker prefetches", least=1),
    "tensors_per_batch": Key("count", "how many tensors one batch holds", least=1),
    "batch_size": Key("size", "the bytes of one batch"),
    "hold": Key("count", "batches that the program keeps beside the current one"),
    "base": Key("count", "descriptors that are open before"),
    "sharing": Key("word", "torch's sharing strategy", ("file_descriptor", "file_system")),
    "start_method": Key("word", "how workers are started", ("fork", "spawn", "forkserver")),
    "ranks_per_node": Key(
        "count", "processes that train on this host; with DeepSpeed its `gpus_per_node`", least=1
    ),
    "dataset_files": Key("count", "files that each worker has open"),
    "worker_memory": Key("size", "bytes of data of each worker"),
    "pinned_buffer": Key("size", "bytes that each rank locks"),
    "cache_dir": Key("path", "the directory of the cache"),
    "shards": Key("count", "shards of the data", least=1),
    "cache_free": Key("size", "bytes that must be free in the cache"),
    "deep": Key("switch", "whether the files of the cache are read for their checksums"),
    "output_dir": Key("path", "the directory that checkpoints go to"),
    "checkpoint_size": Key("size", "the bytes of one checkpoint"),
    "save_total_limit": Key("count", "how many checkpoints are kept", least=1),
    "resume": Key("switch", "whether the run goes on from the last checkpoint in `output_dir`"),
    "deepspeed": Key("mapping", "how DeepSpeed spreads the model", below=DEEPSPEED),
    "packages": Key(
        "by name",
        "the packages, each with its version specifier",
        below={"PACKAGE": Key("specifier", "versions that pass (PEP 440); an empty text for any")},
    ),
    "python": Key("path", "the path of the interpreter that will run"),
    "gpus": Key("mapping", "the GPUs that the run needs", below=GPUS),
    "user": Key("user", "who will run it"),
    "place": Key("place", "as which process; where only `user` is stated, one of a fresh login"),
}
WAIVER = {
    "what": Key(
        "pattern", "an item (`nofile`, `fs.*`), or with its bound (`nofile hard`); else `*`"
    ),
    "where": Key("pattern", "a place, as findings name it; else `*`, but not both"),
    "hosts": Key("patterns", "names of hosts, with or without the domain; else every host"),
    "why": Key("text", "the reason; needed"),
    "until": Key("day", "the last day that it holds; needed"),
}
SECTIONS = {
    "sessions": Key("list", "PAM logins", below=SESSION),
    "kernel": Key(
        "by name",
        "sysctls by their names",
        below={"SYSCTL": Key("number or mapping", "the least value that passes", below=SYSCTL)},
    ),
    "services": Key("mapping", "systemd's services and user managers", below=SERVICES),
    "containers": Key("mapping", "what containers get from their engines", below=ENGINES),
    "processes": Key("list", "running processes; only checked", below=PROCESS),
    "shared_memory": Key("mapping", "the host's /dev/shm", below=SHARED_MEMORY),
    "jobs": Key("mapping", "batch jobs", below=JOBS),
    "training": Key("mapping", "the numbers of one training run; only checked", below=TRAINING),
    "waivers": Key("list", "what may fall short, and until when", below=WAIVER),
}
