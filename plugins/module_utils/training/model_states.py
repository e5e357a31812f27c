# SPDX-License-Identifier: BSD-2-Clause
"""The memory of a model's states, as DeepSpeed spreads them over processes and hosts.

Source: ``estimate_zero2_model_states_mem_needs`` and its like of stage 3, DeepSpeed 0.19.8.
"""

from __future__ import annotations

from ..core.values import NamedTuple
from .collectives import find_backend
from .policy import DeepSpeed, Training

BUFFERS = 1.5
"""By how much DeepSpeed's own estimate is above the states alone."""
_PARAMETERS, _OPTIMIZER = 2, 16
"""Bytes for each parameter in 16 bits, and for each that is trained: gradient, copy, moments."""


class Floor(NamedTuple):
    """The least memory, in bytes, of each node and of each GPU."""

    node: int
    gpu: int


def find_floor(run: DeepSpeed) -> Floor:
    """Return the floor of a run whose parameters, and at stage 3 the largest layer, are known."""
    return _find_floor_2(run) if run.stage == 2 else _find_floor_3(run)


def _find_floor_2(run: DeepSpeed) -> Floor:
    parameters, gpus = run.parameters or 0, run.gpus_per_node * run.nodes
    if run.offload_optimizer:
        node = parameters * max(4 * gpus, _count_bytes(run, False)) * BUFFERS
        return Floor(int(node), 2 * parameters)
    node = parameters * 4 * run.gpus_per_node * BUFFERS
    return Floor(int(node), 2 * parameters + int(_count_bytes(run, True) * parameters / gpus))


def _find_floor_3(run: DeepSpeed) -> Floor:
    parameters, gpus = run.parameters or 0, run.gpus_per_node * run.nodes
    layer = 4 * (run.largest_layer or 0)
    if not run.offload_optimizer:
        held = (run.largest_layer or 0) if run.zero_init else parameters
        node = held * 4 * run.gpus_per_node * BUFFERS
        return Floor(int(node), layer + int(_count_bytes(run, True) * parameters / gpus))
    each, share = _count_bytes(run, run.offload_parameters), 1 / run.nodes
    if run.zero_init:
        node = parameters * each * share * BUFFERS
    else:
        node = parameters * max(4 * run.gpus_per_node, each * share) * BUFFERS
    return Floor(int(node), layer + (0 if run.offload_parameters else int(2 * parameters / gpus)))


def _count_bytes(run: DeepSpeed, has_parameters: bool) -> float:
    """Return the bytes of state for each parameter; an optimizer has some of what is trained."""
    return _PARAMETERS * has_parameters + _OPTIMIZER * run.trained / (run.parameters or 1)


def find_model_states(run: Training) -> int:
    """Return the bytes of each node that DeepSpeed needs for the states of the model.

    Who trains on CPUs has there what a GPU would have.
    """
    if not run.deepspeed:
        return 0
    floor = find_floor(run.deepspeed)
    is_on_cpus = find_backend(run) == "gloo"
    return floor.node + is_on_cpus * run.ranks_per_node * floor.gpu


def find_kept_states(run: Training) -> int:
    """Return the bytes of a node's model states that forked workers keep as they were.

    A step writes all that is trained, and the pages of before stay with the workers of each loader
    until they end. Measured with DeepSpeed 0.19.8: workers of a later epoch keep all of it, those
    that start before the first step what is made by then. Pinned memory is CUDA's, shared by fork.
    """
    zero = run.deepspeed
    if not zero or not zero.offload_optimizer or zero.pin_memory or run.start_method != "fork":
        return 0
    trained = find_floor(zero._replace(parameters=zero.trained)).node
    full = run.loaders - (run.epochs == 1)
    return trained * (25 * full + (12 if run.epochs == 1 else 0)) // 30
