# SPDX-License-Identifier: GPL-3.0-or-later
"""Load batches as a training run does.

With one slow worker the batches of all others wait in the main process; with a slow step of the
training all batches wait in shared memory.
"""

import argparse
import collections
import time

import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info


class Batches(Dataset):
    """Batches of tensors; the first worker takes its time for each."""

    def __init__(self, count, tensors, size, slow):
        self.count, self.tensors, self.size, self.slow = count, tensors, size, slow

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        worker = get_worker_info()
        if worker is None or worker.id == 0:
            time.sleep(self.slow)
        return [
            torch.zeros(self.size // self.tensors, dtype=torch.uint8) for _ in range(self.tensors)
        ]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--prefetch", type=int, default=2)
    parser.add_argument("--tensors", type=int, default=4)
    parser.add_argument("--hold", type=int, default=0)
    parser.add_argument("--batch-size", type=int, default=4096)
    parser.add_argument("--slow", type=float, default=0.6, help="seconds of the first worker")
    parser.add_argument("--step", type=float, default=0, help="seconds of a step of training")
    given = parser.parse_args()
    # Every worker, the slow one too, is asked again after all that it may prefetch and is held.
    rounds = given.prefetch + 2 + -(-given.hold // max(given.workers, 1))
    count = max(given.workers, 1) * rounds
    batches = Batches(count, given.tensors, given.batch_size, given.slow)
    loader = DataLoader(
        batches,
        batch_size=None,
        num_workers=given.workers,
        prefetch_factor=given.prefetch if given.workers else None,
    )
    held, total = collections.deque(maxlen=given.hold + 1), 0
    for batch in loader:
        held.append(batch)
        total += 1
        time.sleep(given.step)
    print(f"trained on {total} batches")


if __name__ == "__main__":
    main()
