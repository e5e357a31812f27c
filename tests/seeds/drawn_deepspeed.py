# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs of DeepSpeed that are drawn: a model whose states are offloaded, beside a loader."""

from __future__ import annotations

import functools
import random
import subprocess
from collections.abc import Mapping
from typing import Any

from .zero3_offload import EXTENSIONS, build, find_variables, train

LIBRARY = "deepspeed"


def draw_offload(one: random.Random) -> dict[str, Any]:
    """Return what of a model and its states is spread, and how."""
    layers = one.choice((2, 4, 8))
    return {
        "workers": one.randint(1, 3),
        "prefetch": one.randint(1, 3),
        "epochs": one.choice((1, 2)),
        "ranks": one.choice((1, 1, 2)),
        "stage": one.choice((2, 3, 3)),
        "width": one.choice((256, 1024, 2048)),
        "layers": layers,
        "trained": one.choice((layers, layers, 1)),
    }


def describe_offload(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the model and its states in the words of a policy's ``deepspeed``; all is offloaded.

    At stage 2 DeepSpeed offloads no parameters.
    """
    layer = options["width"] ** 2
    return {
        "stage": options["stage"],
        "parameters": layer * options["layers"],
        "largest_layer": layer,
        "trainable_parameters": layer * options["trained"],
        "gpus_per_node": options["ranks"],
        "offload_optimizer": True,
        "offload_parameters": options["stage"] == 3,
    }


def tell_offload(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same as the preflight's options take it."""
    words = {True: "yes", False: "no"}
    return {name: words[one] if isinstance(one, bool) else one for name, one in told.items()}


@functools.cache
def prepare_operators() -> dict[str, str]:
    """Build what DeepSpeed compiles, for every user, and return the variables of a run."""
    build(train())
    subprocess.run(["chmod", "-R", "a+rwX", EXTENSIONS], check=True)
    return find_variables()
