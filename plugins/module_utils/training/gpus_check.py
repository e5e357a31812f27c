# SPDX-License-Identifier: BSD-2-Clause
"""Judge the GPUs of this host for a run."""

from __future__ import annotations

import os
from collections.abc import Iterator

from .gpus_read import read_gpus
from .nvidia_smi import choose_visible, judge_gpus, leave_unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.finding import Finding
    from .policy import Training

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
