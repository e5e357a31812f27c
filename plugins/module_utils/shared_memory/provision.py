# SPDX-License-Identifier: BSD-2-Clause
"""What a size of /dev/shm needs on this host: a line of fstab(5), and a remount."""

from __future__ import annotations

from functools import partial

from ..core.plan import Section
from ..host.image import is_image
from ..host.program import run_program
from ..kernel.use_read import read_memory_size
from .model import SHM
from .plan import plan_shm
from .read import read_fstab, read_shm_size

_TIME_LIMIT = 120.0


def remount_shm(size: int) -> str:
    """Remount /dev/shm; return why that failed, or nothing."""
    code, text = run_program(["mount", "-o", f"remount,size={size}", SHM], _TIME_LIMIT)
    return f"{SHM} could not be remounted: {' '.join(text.split())}" if code else ""


def prepare_shm(size: int | None, override: bool, absent: bool) -> Section:
    """Return what the section needs here. What is larger already is left so.

    :param size: The bytes that are wanted at least; ``None`` where nobody asks any more.
    """
    if size is None and not absent:
        return Section()
    if is_image():  # How much memory the host will have is not known.
        return Section(plan_shm(size, read_fstab(), 0, override, absent)._replace(notes=()))
    plan = plan_shm(size, read_fstab(), read_memory_size("MemTotal"), override, absent)
    if absent or size is None:
        return Section(plan)
    try:
        now = read_shm_size()
    except OSError as exc:
        return Section(plan._replace(problems=(*plan.problems, f"shared_memory.size: {exc}")))
    if now >= size:
        return Section(plan, in_effect=("shared_memory",))
    return Section(
        plan,
        running=((f"size of {SHM}", str(now), str(size)),),
        settle=partial(remount_shm, size),
        in_effect=("shared_memory",),
    )
