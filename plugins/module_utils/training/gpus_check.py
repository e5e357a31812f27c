# SPDX-License-Identifier: BSD-2-Clause
"""Ask the NVIDIA driver for the GPUs of this host, and judge them for a run."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ..host.program import run_program
from .nvidia_smi import (
    GPU_FIELDS,
    PROCESS_FIELDS,
    Gpu,
    GpuProcess,
    choose_visible,
    judge_gpus,
    leave_unknown,
    parse_gpus,
    parse_processes,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.finding import Finding
    from .policy import Training

_PROGRAMS = ("/usr/bin/nvidia-smi", "/usr/local/bin/nvidia-smi", "/usr/local/nvidia/bin/nvidia-smi")
_FORMAT = "--format=csv,noheader,nounits"
_TIME_LIMIT = 20.0  # Without persistence, the first question takes seconds for each GPU.


def read_gpus(
    programs: tuple[str, ...] = _PROGRAMS, seconds: float = _TIME_LIMIT
) -> tuple[list[Gpu], list[GpuProcess]]:
    """Return the GPUs and what computes on them.

    :raises OSError: If there is no driver, or it does not answer.
    :raises ValueError: If it says something else.
    """
    program = next((path for path in programs if os.access(path, os.X_OK)), None)
    if program is None:
        raise OSError("nvidia-smi is not installed: no GPU of NVIDIA can be asked for")
    text = _ask(program, f"--query-gpu={','.join(GPU_FIELDS)}", seconds)
    gpus = parse_gpus(text)
    text = _ask(program, f"--query-compute-apps={','.join(PROCESS_FIELDS)}", seconds)
    return gpus, parse_processes(text)


def _ask(program: str, query: str, seconds: float) -> str:
    status, text = run_program([program, query, _FORMAT], seconds)
    lines = text.strip().splitlines()
    if status:
        raise OSError(f"nvidia-smi: {lines[0] if lines else f'ended with status {status}'}")
    return text


_SELF = "self"
_VISIBLE = "CUDA_VISIBLE_DEVICES"


def check_gpus(training: Training) -> Iterator[Finding]:
    """Yield whether the GPUs that a run needs are there and free; nothing where it needs none."""
    if training.gpus is None:
        return
    try:
        gpus, processes = read_gpus()
    except (OSError, ValueError) as exc:
        yield leave_unknown(training.gpus.number, str(exc))
        return
    visible = os.environ.get(_VISIBLE) if training.place == _SELF else None
    chosen = choose_visible(gpus, visible)
    yield from judge_gpus(chosen, processes, training.gpus.number, training.gpus.memory)
