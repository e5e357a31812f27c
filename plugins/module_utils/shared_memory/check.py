# SPDX-License-Identifier: BSD-2-Clause
"""Judge the size of /dev/shm, now and after a boot; show who has a say in it."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.cause import Link, Outlook
from ..core.finding import Finding, Observation, Requirement, judge
from ..core.forecast import Forecast
from ..kernel.use_read import read_meminfo
from .causes import ShmFacts, find_shm_causes, foresee_boot, trace_shm
from .model import SHM
from .read import read_fstab, read_scripts, read_shm_size

PLACE = f"path:{SHM}"


def check_shm(size: int) -> Finding:
    """Return whether /dev/shm has a size at least."""
    wanted = Requirement(PLACE, "size", "value", size, unit="bytes")
    try:
        facts = gather_shm()
    except OSError as exc:
        return judge(wanted, Observation(None, "", str(exc)))
    finding = judge(wanted, Observation(facts.size, f"statvfs of {SHM}"))
    later = foresee_boot(size, facts)
    return finding._replace(
        causes=tuple(find_shm_causes(size, facts)), outlook=Outlook(after_boot=later)
    )


def foresee_shm(size: int | None, root: str) -> Iterator[tuple[Requirement, Forecast]]:
    """Yield what the fstab of a tree will give."""
    from ..host.files import read_text
    from .causes import foretell_shm
    from .model import FSTAB

    if size is not None:
        wanted = Requirement(PLACE, "size", "value", size, unit="bytes")
        yield wanted, foretell_shm(size, read_text(FSTAB, root) or "", read_scripts(root))


def gather_shm() -> ShmFacts:
    """Return what decides the size of /dev/shm.

    :raises OSError: If it is no tmpfs, or cannot be looked at.
    """
    facts = ShmFacts(read_shm_size(), read_fstab() or "", read_meminfo()["MemTotal"])
    try:
        return facts._replace(scripts=read_scripts())
    except OSError:  # Somebody else than root has a say there: what is now is known all the same.
        return facts._replace(scripts=None)


def trace_path(place: str, item: str) -> list[Link]:
    """Return who has a say in the size of /dev/shm.

    :raises ValueError: If another place or item is asked for.
    """
    if place != PLACE or item != "size":
        raise ValueError(f"{place} {item} cannot be explained; accepted is {PLACE} size")
    try:
        return trace_shm(gather_shm())
    except OSError as exc:
        raise ValueError(str(exc)) from exc
