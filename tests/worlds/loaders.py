# SPDX-License-Identifier: GPL-3.0-or-later
"""What torch's DataLoader is to whoever watches it: the same names, with nothing behind them."""

from __future__ import annotations

from pathlib import Path

LOADER = """
import os, time

class Tensor:
    def __init__(self, numbers):
        self.numbers = numbers
    def numel(self):
        return self.numbers
    def element_size(self):
        return 4

class Worker:
    def __init__(self):
        self.pid = os.fork()
        if not self.pid:
            time.sleep(600)

class _BaseDataLoaderIter:
    def __init__(self, loader):
        self._rest = iter(loader.dataset)
        self._workers = [Worker() for _worker in range(loader.num_workers)]
        self._shutdown = False
    def __iter__(self):
        return self
    def __next__(self):
        try:
            return [Tensor(size) for size in next(self._rest)]
        except StopIteration:
            self._shutdown = True
            raise

class DataLoader:
    multiprocessing_context = None
    def __init__(self, dataset, num_workers=0, prefetch_factor=None, persistent_workers=False):
        self.dataset, self.num_workers = dataset, num_workers
        self.prefetch_factor, self.persistent_workers = prefetch_factor, persistent_workers
    def __iter__(self):
        return _BaseDataLoaderIter(self)
"""
FILES = {
    "torch/__init__.py": "",
    "torch/utils/__init__.py": "",
    "torch/utils/data/__init__.py": "import torch.multiprocessing\nfrom .dataloader import DataLoader\n",
    "torch/utils/data/dataloader.py": LOADER,
    "torch/multiprocessing.py": "def get_sharing_strategy():\n    return 'file_system'\n",
}


def lay_torch(folder: Path) -> None:
    """Put the package into a folder, where a script beside it imports it."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
