# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare the batches of a guarded loader, whose workers do not fit, with those of torch's own."""

import importlib.util
import json
import resource
import sys
import warnings

warnings.simplefilter("ignore")
import torch
from torch.utils.data import DataLoader, Dataset

FOLDER, SOFT = sys.argv[1], int(sys.argv[2])
spec = importlib.util.spec_from_file_location(
    "mlhost_limits", f"{FOLDER}/__init__.py", submodule_search_locations=[FOLDER]
)
sys.modules["mlhost_limits"] = module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
WORDS = {"batch_size": 4, "shuffle": True, "num_workers": 8, "prefetch_factor": 4}


class Numbers(Dataset):
    def __len__(self):
        return 200

    def __getitem__(self, index):
        return [torch.full((8,), index) for _tensor in range(4)]


def read(loader):
    torch.manual_seed(3)
    return [[batch[0][:, 0].tolist() for batch in loader] for _epoch in range(3)]


wanted = read(DataLoader(Numbers(), **WORDS))
resource.setrlimit(resource.RLIMIT_NOFILE, (SOFT, SOFT))
with module.guard() as watch:
    watch.workers = lambda wanted, **_run: wanted  # All are started, to see them fail.
    loader = watch.loader(DataLoader, Numbers(), **WORDS)
    print(json.dumps([read(loader) == wanted, loader.num_workers]))
