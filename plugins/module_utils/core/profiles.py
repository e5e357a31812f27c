# SPDX-License-Identifier: BSD-2-Clause
"""The policies shipped by name; a policy of the user's own is merged over one of them."""

from __future__ import annotations

# To close every descriptor that it may have takes a program 2.6 s for four million, and minutes for
# the 2**30 that containers of Docker have on Debian 13.
_NOFILE = {"soft": 65536, "hard": 1048576, "max": 4194304}
_FILES = {"fs.file-max": 2097152, "fs.nr_open": 1048576}

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
    # Those of one run each; its own numbers are given with the policy.
    # A loader that passes tensors as descriptors: "Too many open files".
    "second_me": {
        "sessions": [{"users": ["*", "root"], "limits": {"nofile": _NOFILE}}],
        "kernel": _FILES,
        "containers": {"docker": {"limits": {"nofile": _NOFILE}}},
        "training": {"needs": ["descriptors", "memory"]},
    },
    # DeepSpeed with the optimizer and the parameters in the host's memory: a rank is killed.
    "zero3_offload": {
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
    "embedding_cache": {"training": {"needs": ["cache", "cache_integrity"]}},
    # Checkpoints that are renamed into place: "Directory not empty".
    "checkpoints": {"training": {"needs": ["output"], "packages": {"transformers": ""}}},
}

DEFAULT_PROFILE = "training"
NO_PROFILE = "none"
