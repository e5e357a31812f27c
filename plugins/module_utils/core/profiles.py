# SPDX-License-Identifier: BSD-2-Clause
"""The policies shipped by name; a policy of the user's own is merged over one of them."""

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
_TRAINER: dict[str, object] = {"needs": ["output"], "library": "transformers"}
"""TRL's trainers are subclasses of the Trainer."""

PROFILES: dict[str, dict[str, object]] = {
    # For a policy that stands alone.
    "none": {},
    # A host that trains models: loaders that share descriptors, memory pinned for RDMA and
    # NVMe offload, data sets mapped file by file, batches passed through /dev/shm.
    "training": {
        "sessions": [
            {"users": ["*", "root"], "limits": {"nofile": _NOFILE, "memlock": "unlimited"}}
        ],
        "kernel": {**_FILES, "vm.max_map_count": 262144},
        "containers": {
            "docker": {"limits": {"nofile": _NOFILE, "memlock": "unlimited"}, "shm_size": "8GiB"}
        },
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

DEFAULT_PROFILE = "training"
NO_PROFILE = "none"
