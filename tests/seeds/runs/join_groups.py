# SPDX-License-Identifier: GPL-3.0-or-later
"""Join process groups of gloo as several ranks of this host, and print what each has open more."""

import argparse
import json
import os
import tempfile
import time

import torch
import torch.multiprocessing as mp


def count_open():
    return len(os.listdir("/proc/self/fd"))


def count_threads():
    return len(os.listdir("/proc/self/task"))


def join(rank, given, start, told):
    import torch.distributed as dist

    before, alone = count_open(), count_threads()
    rows = []
    dist.init_process_group("gloo", init_method=start, rank=rank, world_size=given.ranks)
    groups = [dist.group.WORLD]
    for number in range(given.groups):
        if number:
            groups.append(dist.new_group(list(range(given.ranks))))
        for group in groups:
            dist.all_reduce(torch.zeros(4), group=group)
            dist.barrier(group)
        time.sleep(0.1)
        dist.barrier()
        rows.append((count_open() - before, count_threads() - alone))
        dist.barrier()
    told.put((rank, rows))
    dist.barrier()
    os._exit(0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--groups", type=int, default=1)
    parser.add_argument("--store", choices=("tcp", "file"), default="tcp")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        port = 20000 + os.getpid() % 20000
        start = f"tcp://127.0.0.1:{port}" if given.store == "tcp" else f"file://{folder}/store"
        context = mp.get_context("fork")
        told = context.SimpleQueue()
        ranks = [
            context.Process(target=join, args=(rank, given, start, told))
            for rank in range(given.ranks)
        ]
        for rank in ranks:
            rank.start()
        rows = dict(told.get() for rank in ranks)
        for rank in ranks:
            rank.join()
    print(json.dumps([rows[rank] for rank in range(given.ranks)]))


if __name__ == "__main__":
    main()
