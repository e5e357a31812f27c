# SPDX-License-Identifier: GPL-3.0-or-later
"""Load batches through torch, accelerate or transformers, and print the most that it took of each.

One slow worker lets the batches of all others wait in the process that trains; a slow step lets
them wait in shared memory.
"""

import argparse
import collections
import json
import os
import tempfile
import threading
import time

import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info


class Samples(Dataset):
    """Samples of tensors; the first worker takes its time for each."""

    def __init__(self, given):
        self.given = given

    def __len__(self):
        return 100000

    def __getitem__(self, index):
        worker = get_worker_info()
        if worker and worker.id == 0:
            time.sleep(self.given.slow)
        each = max(self.given.batch_size // self.given.tensors, 1)
        return {
            f"x{number}": torch.zeros(each, dtype=torch.uint8)
            for number in range(self.given.tensors)
        }


class Model(torch.nn.Module):
    """As little as a trainer takes for a model."""

    def __init__(self, given):
        super().__init__()
        self.weight, self.step = torch.nn.Parameter(torch.zeros(1)), given.step

    def forward(self, **batch):
        time.sleep(self.step)
        return {"loss": (self.weight * batch["x0"].sum()).mean()}


class Peaks(threading.Thread):
    """The most that this process, and all that it started, had at a time."""

    def __init__(self):
        super().__init__(daemon=True)
        self.most = collections.Counter()
        self.ended = threading.Event()

    def run(self):
        while not self.ended.wait(0.002):
            self.look()

    def look(self):
        space = os.statvfs("/dev/shm")
        now = {
            "descriptors": len(os.listdir("/proc/self/fd")) - 1,
            "shared_memory": (space.f_blocks - space.f_bfree) * space.f_frsize,
            "tasks": count_tasks() - 1,
        }
        with open("/proc/self/maps") as rows:
            now["mappings"] = sum(1 for row in rows)
        for name, number in now.items():
            self.most[name] = max(self.most[name], number)


def count_tasks():
    """Count the tasks of this session: the trial gives each run one of its own."""
    total, own = 0, os.getsid(0)
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.getsid(int(name)) == own:
                total += len(os.listdir(f"/proc/{name}/task"))
        except OSError:
            continue
    return total


def make_loaders(given):
    words = {} if given.context is None else {"multiprocessing_context": given.context}
    if given.workers:
        words.update(prefetch_factor=given.prefetch, timeout=60 if given.context == "spawn" else 15)
    return [
        DataLoader(Samples(given), batch_size=None, num_workers=given.workers, **words)
        for number in range(given.loaders)
    ]


def train_with_torch(given, loaders):
    """Take batches and keep as many as are held; the second loader is started amid the first."""
    # Every worker, the slow one too, is asked again after all that it may prefetch and is held.
    rounds = given.prefetch + 2 + -(-given.hold // max(given.workers, 1))
    held = collections.deque(maxlen=given.hold + 1)
    started = []
    for loader in loaders:
        started.append(iter(loader))
        for _number in range(rounds * max(given.workers, 1)):
            for batches in started:
                held.append(next(batches))
                time.sleep(given.step)


def train_with_accelerate(given, loaders):
    from accelerate import Accelerator

    loader, model = Accelerator(cpu=True).prepare(loaders[0], Model(given))
    for number, batch in enumerate(loader):
        model(**batch)
        if number > (given.prefetch + 3) * given.workers:
            break


def train_with_transformers(given, loaders):
    from transformers import Trainer, TrainingArguments

    class OwnTrainer(Trainer):
        def get_train_dataloader(self):
            return self.accelerator.prepare(loaders[0])

    arguments = TrainingArguments(
        output_dir=tempfile.mkdtemp(dir="/tmp"),
        gradient_accumulation_steps=given.accumulation,
        max_steps=3 + (given.prefetch + 3) * max(given.workers, 1) // given.accumulation,
        report_to=[],
        save_strategy="no",
        logging_strategy="no",
        remove_unused_columns=False,
        disable_tqdm=True,
        use_cpu=True,
    )
    OwnTrainer(model=Model(given), args=arguments, train_dataset=Samples(given)).train()


TRAIN = {
    "torch": train_with_torch,
    "accelerate": train_with_accelerate,
    "transformers": train_with_transformers,
}


def main():
    parser = argparse.ArgumentParser()
    for name in ("workers", "prefetch", "tensors", "hold", "loaders", "accumulation", "batch-size"):
        parser.add_argument(f"--{name}", type=int, default=1)
    parser.add_argument("--slow", type=float, default=0)
    parser.add_argument("--step", type=float, default=0)
    parser.add_argument("--context")
    parser.add_argument("--sharing", default="file_descriptor")
    parser.add_argument("--library", choices=list(TRAIN), default="torch")
    given = parser.parse_args()
    torch.multiprocessing.set_sharing_strategy(given.sharing)
    torch.zeros(600, 600) @ torch.zeros(600, 600)  # The threads of BLAS start with the first.
    peaks = Peaks()
    peaks.start()
    TRAIN[given.library](given, make_loaders(given))
    peaks.ended.set()
    peaks.join()
    print(json.dumps({"peaks": peaks.most}), flush=True)
    os._exit(0)  # How workers end is no part of it.


if __name__ == "__main__":
    main()
