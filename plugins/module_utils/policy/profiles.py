# SPDX-License-Identifier: BSD-2-Clause
"""The policies shipped by name; a policy of the user's own is merged over one of them."""

from __future__ import annotations

PROFILES: dict[str, dict[str, object]] = {
    # For a policy that stands alone.
    "none": {},
    # A host that trains models: loaders that share descriptors, memory pinned for RDMA and
    # NVMe offload, data sets mapped file by file, batches passed through /dev/shm.
    "training": {
        "sessions": [
            {
                "users": ["*", "root"],
                "limits": {
                    "nofile": {"soft": 65536, "hard": 1048576},
                    "memlock": "unlimited",
                },
            }
        ],
        "kernel": {
            "fs.file-max": 2097152,
            "fs.nr_open": 1048576,
            "vm.max_map_count": 262144,
        },
        "containers": {
            "docker": {
                "limits": {
                    "nofile": {"soft": 65536, "hard": 1048576},
                    "memlock": "unlimited",
                },
                "shm_size": "8GiB",
            }
        },
    },
}

DEFAULT_PROFILE = "training"
