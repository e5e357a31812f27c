# SPDX-License-Identifier: BSD-2-Clause
"""The policies shipped by name; a policy of the user's own is merged over one of them.

``training@1`` is the first version of ``training``, whose values stay what they are; the bare name
is the newest. A value that changes makes a new version, and the old one goes to ``OLDER``.
"""

from __future__ import annotations

# To close every descriptor that it may have takes a program 2.6 s for four million, and minutes for
# the 2**30 that containers of Docker have on Debian 13.
_NOFILE = {"soft": 65536, "hard": 1048576, "max": 4194304}
_FILES = {"fs.file-max": 2097152, "fs.nr_open": 1048576}
_OPENS_FILES: dict[str, object] = {
    "sessions": [{"users": ["*", "root"], "limits": {"nofile": _NOFILE}}],
    "kernel": _FILES,
    "containers": {"docker": {"limits": {"nofile": _NOFILE}}},
}
_ON_HOST: dict[str, object] = {
    "sessions": [{"users": ["*", "root"], "limits": {"nofile": _NOFILE, "memlock": "unlimited"}}],
    "kernel": {**_FILES, "vm.max_map_count": 262144},
}
_IN_CONTAINER: dict[str, object] = {
    "limits": {"nofile": _NOFILE, "memlock": "unlimited"},
    "shm_size": "8GiB",
}
_WATCHES = {"fs.inotify.max_user_watches": 524288}
_TRAINER: dict[str, object] = {"needs": ["output"], "library": "transformers"}
"""TRL's trainers are subclasses of the Trainer."""

PROFILES: dict[str, dict[str, object]] = {
    # For a policy that stands alone.
    "none": {},
    # A host that trains models: loaders that share descriptors, memory pinned for RDMA and
    # NVMe offload, data sets mapped file by file, batches passed through /dev/shm.
    "training": {**_ON_HOST, "containers": {"docker": _IN_CONTAINER}},
    # Ranks on many nodes: memory pinned for RDMA, and a first rank to which all the others connect.
    "multi-node": {
        **_ON_HOST,
        "kernel": {**_FILES, "vm.max_map_count": 262144, "net.core.somaxconn": 16384},
        "containers": {"docker": _IN_CONTAINER},
    },
    # A node whose jobs Slurm starts, beside the logins of people.
    "slurm-node": {
        **_ON_HOST,
        "jobs": {"slurm": {"limits": {"nofile": _NOFILE, "memlock": "unlimited"}}},
    },
    # A node whose pods a kubelet starts, all of whose runtimes and sidecars watch files as root.
    "kubernetes-node": {
        "sessions": [{"users": ["root"], "limits": {"nofile": _NOFILE}}],
        "kernel": {
            **_FILES,
            "vm.max_map_count": 262144,
            **_WATCHES,
            "fs.inotify.max_user_instances": 8192,
            "kernel.keys.root_maxkeys": 1000000,
            "kernel.keys.root_maxbytes": 25000000,
        },
        "containers": {"containerd": {"limits": {"nofile": _NOFILE, "memlock": "unlimited"}}},
    },
    # A server of a model: a connection is a descriptor, and its workers share memory.
    "inference": {
        "sessions": [{"users": ["*", "root"], "limits": {"nofile": _NOFILE}}],
        "kernel": {**_FILES, "net.core.somaxconn": 4096},
        "containers": {"docker": {"limits": {"nofile": _NOFILE}, "shm_size": "8GiB"}},
    },
    # One person's machine, with an editor that watches all files of a project.
    "workstation": {
        "sessions": [{"users": ["*", "root"], "limits": {"nofile": _NOFILE}}],
        "kernel": {**_FILES, **_WATCHES},
        "containers": {"docker": {"limits": {"nofile": _NOFILE}, "shm_size": "8GiB"}},
    },
    # Those of one kind of run each, named for what people run; the numbers come with the policy.
    # A loader that passes tensors as descriptors: "Too many open files".
    "dataloader": {**_OPENS_FILES, "training": {"needs": ["descriptors", "memory"]}},
    # DeepSpeed with the optimizer and the parameters in the host's memory: a rank is killed.
    "deepspeed-zero3-offload": {
        "sessions": [{"users": ["*", "root"], "limits": {"memlock": "unlimited"}}],
        "containers": {"docker": {"limits": {"memlock": "unlimited"}}},
        "training": {
            "needs": ["deepspeed", "memory"],
            "deepspeed": {"stage": 3, "offload_optimizer": True, "offload_parameters": True},
        },
    },
    # Workers that share a cache of shards: "No such file or directory: ...tar.lock".
    "webdataset": {"training": {"needs": ["cache", "cpus"]}},
    # Ranks that write embeddings to one cache: "failed finding central directory".
    "simpletuner": {"training": {"needs": ["cache", "cache_integrity"]}},
    # A Trainer, whose checkpoints are renamed into place: "Directory not empty". By default it has
    # no workers; where some are stated, what it keeps of their batches is counted too.
    "transformers": {**_OPENS_FILES, "training": {**_TRAINER, "packages": {"transformers": ""}}},
    "trl": {
        **_OPENS_FILES,
        "training": {**_TRAINER, "library": "trl", "packages": {"transformers": "", "trl": ""}},
    },
}

PROFILE = "profile"  # The key by which a policy names its own.
DEFAULT_PROFILE = "training"
NO_PROFILE = "none"


class Asked(str):
    """The name of a profile that somebody asked for, where others are a default."""

    __slots__ = ()


class Merged(str):
    """No profile, of a policy that holds already all of the one that was ``named``."""

    named: str

    def __new__(cls, named: str) -> Merged:
        merged = super().__new__(cls, NO_PROFILE)
        merged.named = named
        return merged


OLDER: dict[str, dict[str, object]] = {}
"""Versions that are no longer the newest, by name and number, such as ``training@1``."""


class _Names(tuple):  # type: ignore[type-arg]  # Python 3.8 cannot say of what.
    """The names of profiles, of which each is known with a version as well."""

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and find_profile(name) is not None


def find_profile(name: str) -> dict[str, object] | None:
    """Return a profile by its name, with or without a version; ``None`` if there is none."""
    stem, mark, number = name.partition("@")
    if not mark or (stem in PROFILES and number == str(count_versions(stem))):
        return PROFILES.get(stem)
    return OLDER.get(name)


def count_versions(stem: str) -> int:
    """Return the number of the newest version of a profile."""
    return 1 + sum(name.startswith(f"{stem}@") for name in OLDER)


PROFILE_NAMES = _Names(sorted(PROFILES))
