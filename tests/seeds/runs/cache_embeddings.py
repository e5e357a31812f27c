# SPDX-License-Identifier: GPL-3.0-or-later
"""Eight ranks share a cache of embeddings: what is there is loaded, what is not is written."""

import argparse
import multiprocessing
import os
import sys

import torch


def cache(path, size, rename):
    """Return the embedding of one sample, from the cache where it is there."""
    if os.path.exists(path):
        return torch.load(path)
    embedding = {"embedding": torch.zeros(size)}
    if rename:
        temporary = f"{path}.{os.getpid()}.tmp"
        torch.save(embedding, temporary)
        os.replace(temporary, path)
    else:
        torch.save(embedding, path)
    return embedding


def be_rank(barrier, given):
    torch.set_num_threads(1)
    for sample in range(given.samples):
        barrier.wait()
        try:
            cache(f"{given.cache}/sample-{sample}.pt", given.size, given.rename)
        except BaseException:
            barrier.abort()
            raise


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cache")
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--samples", type=int, default=40)
    parser.add_argument("--size", type=int, default=2**19)
    parser.add_argument("--rename", action="store_true")
    given = parser.parse_args()
    barrier = multiprocessing.Barrier(given.ranks)
    ranks = [
        multiprocessing.Process(target=be_rank, args=(barrier, given)) for _ in range(given.ranks)
    ]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
    if any(rank.exitcode for rank in ranks):
        sys.exit("a rank failed")
    print(f"{given.ranks} ranks had {given.samples} embeddings each")


if __name__ == "__main__":
    main()
