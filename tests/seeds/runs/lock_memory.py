# SPDX-License-Identifier: GPL-3.0-or-later
"""Lock a buffer as DeepSpeed's offload to NVMe does; without a size, only build the operator."""

import sys

import torch
from deepspeed.ops.op_builder import AsyncIOBuilder


def main():
    handle = AsyncIOBuilder().load(verbose=False).aio_handle(2**17, 8, False, False, 1)
    if len(sys.argv) > 1:
        handle.new_cpu_locked_tensor(int(sys.argv[1]), torch.empty(0, dtype=torch.uint8))
        print(f"locked {sys.argv[1]} bytes")


if __name__ == "__main__":
    main()
