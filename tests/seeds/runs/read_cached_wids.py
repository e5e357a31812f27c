# SPDX-License-Identifier: GPL-3.0-or-later
"""Read shards through the cache of wids, while another job of the node ends and clears its own."""

import argparse
import glob
import shutil

import wids
from torch.utils.data import DataLoader


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shards", help="a folder")
    parser.add_argument("--cache", required=True)
    parser.add_argument("--others-cache", required=True, help="what the other job clears")
    parser.add_argument("--samples", type=int, default=10, help="of each shard")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    names = sorted(glob.glob(f"{given.shards}/*.tar"))
    shards = [{"url": f"file:{name}", "nsamples": given.samples} for name in names]
    dataset = wids.ShardListDataset(shards, cache_dir=given.cache, transformations=[dict])
    shutil.rmtree(given.others_cache, ignore_errors=True)
    loader = DataLoader(dataset, batch_size=None, num_workers=given.workers)
    print(f"read {sum(1 for _ in loader)} samples")


if __name__ == "__main__":
    main()
