# SPDX-License-Identifier: BSD-2-Clause
"""The memory that DeepSpeed's ZeRO needs for the states of a model, and no run does with less.

Source: ``estimate_zero2_model_states_mem_needs`` and ``estimate_zero3_model_states_mem_needs`` of
DeepSpeed 0.19.8, to the byte: the order of the factors decides how a float is rounded.
Activations, the framework and the data come on top.
"""

from __future__ import annotations

from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .policy import DeepSpeed

_BUFFERS = 1.5
_WITH_PARAMETERS, _OPTIMIZER, _ALL = 18, 16, 18
"""Bytes for each parameter: of all states with the 16-bit parameters, without, and on a GPU."""


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
        return Floor(int(parameters * max(4 * gpus, 16) * _BUFFERS), 2 * parameters)
    node = parameters * 4 * run.gpus_per_node * _BUFFERS
    return Floor(int(node), 2 * parameters + int(_ALL * parameters / gpus))


def _find_floor_3(run: DeepSpeed) -> Floor:
    parameters, gpus = run.parameters or 0, run.gpus_per_node * run.nodes
    layer = 4 * (run.largest_layer or 0)
    if not run.offload_optimizer:
        held = (run.largest_layer or 0) if run.zero_init else parameters
        node = held * 4 * run.gpus_per_node * _BUFFERS
        return Floor(int(node), layer + int(_ALL * parameters / gpus))
    each = _WITH_PARAMETERS if run.offload_parameters else _OPTIMIZER
    share = 1 / run.nodes
    if run.zero_init:
        node = parameters * each * share * _BUFFERS
    else:
        node = parameters * max(4 * run.gpus_per_node, each * share) * _BUFFERS
    return Floor(int(node), layer + (0 if run.offload_parameters else int(2 * parameters / gpus)))
