# SPDX-License-Identifier: GPL-3.0-or-later
"""Read shards through the cache of webdataset."""

import argparse
import glob

import webdataset


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shards", help="a folder")
    parser.add_argument("--cache", required=True)
    parser.add_argument("--workers", type=int, default=2, help="0 needs no torch")
    given = parser.parse_args()
    urls = [f"pipe:cat {name}" for name in sorted(glob.glob(f"{given.shards}/*.tar"))]
    dataset = webdataset.WebDataset(urls, cache_dir=given.cache, shardshuffle=False)
    if given.workers:
        from torch.utils.data import DataLoader

        dataset = DataLoader(dataset, batch_size=None, num_workers=given.workers)
    print(f"read {sum(1 for _ in dataset)} samples")


if __name__ == "__main__":
    main()
