# SPDX-License-Identifier: GPL-3.0-or-later
"""The memory that ZeRO needs at least, compared with DeepSpeed's own functions over a grid."""

from __future__ import annotations

import itertools
import json
import subprocess
from collections.abc import Iterator
from typing import Any

import tests.conftest  # noqa: F401 - it makes the library importable

from .environments import install
from .trial import RUNS

PARAMETERS = (1, 999, 124_439_808, 1_300_000_001, 7_000_000_000, 70_553_706_496, 405_853_388_800)
LAYERS = (1, 7_077_888, 405_798_912)
GPUS = (1, 2, 3, 4, 7, 8, 16)
NODES = (1, 2, 3, 5, 8, 64)
OFFLOAD_2 = ((False, False), (True, False))
OFFLOAD_3 = (*OFFLOAD_2, (True, True))

Setting = tuple[int, int, int, int, int, bool, bool, bool]


def list_settings() -> Iterator[Setting]:
    """Yield stage, parameters, largest layer, GPUs, nodes, what is offloaded, and zero_init."""
    for parameters, gpus, nodes in itertools.product(PARAMETERS, GPUS, NODES):
        for optimizer, offload in OFFLOAD_2:
            yield 2, parameters, 1, gpus, nodes, optimizer, offload, True
        for layer in (size for size in LAYERS if size <= parameters):
            for (optimizer, offload), init in itertools.product(OFFLOAD_3, (True, False)):
                yield 3, parameters, layer, gpus, nodes, optimizer, offload, init


def try_rule() -> dict[str, Any]:
    """Ask DeepSpeed and the product of every setting; they must agree to the byte."""
    settings = list(list_settings())
    theirs = ask_deepspeed(settings)
    differ = [
        f"{setting}: DeepSpeed {tuple(their)}, here {tuple(find(setting))}"
        for setting, their in zip(settings, theirs, strict=True)
        if tuple(their) != tuple(find(setting))
    ]
    return {
        "holds": not differ,
        "settings": len(settings),
        "differ": len(differ),
        "differences": differ[:20],
    }


def find(setting: Setting) -> tuple[int, int]:
    """Return the product's floor of a node and of a GPU."""
    from mlhost_limits.training.model_states import find_floor
    from mlhost_limits.training.policy import DeepSpeed

    floor = find_floor(DeepSpeed(*setting))
    return floor.node, floor.gpu


def ask_deepspeed(settings: list[Setting]) -> Any:
    python = install("deepspeed")
    done = subprocess.run(
        [python, RUNS / "count_floors.py"],
        input=json.dumps(settings),
        stdout=subprocess.PIPE,
        env={"PATH": "/usr/bin:/bin", "DS_ACCELERATOR": "cpu"},
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])
