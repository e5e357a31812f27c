# SPDX-License-Identifier: BSD-2-Clause
"""Judge the size of /dev/shm, now and after a boot; show who can set it."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ..core.cause import Link, Outlook
from ..core.finding import FAIL, UNKNOWN, Finding, Observation, Requirement, judge
from ..core.forecast import Forecast
from ..host.users import name_user
from ..kernel.use_read import read_memory_size
from .causes import ShmFacts, blame_quota, find_shm_causes, foresee_boot, trace_shm
from .model import SHM, Quota
from .quota_read import list_users, read_quota
from .read import find_fstab_stop, read_fstab, read_scripts, read_shm_size

PLACE = f"path:{SHM}"
_QUOTA = "quota"
_NOBODY = 2**31 - 2  # The number of whoever stands for users that nobody has met.


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


def check_quotas(size: int) -> Iterator[Finding]:
    """Yield whether each user who is logged in may take as much, where quotas hold users back."""
    try:
        facts = gather_shm()
    except OSError:
        return  # That is told of its size.
    try:
        quotas = read_quotas(facts.size)
    except OSError as exc:
        yield judge(Requirement(PLACE, _QUOTA, "value", size), Observation(None, "", str(exc)))
        return
    for who, quota in quotas.items():
        wanted = Requirement(PLACE, f"{_QUOTA} of {who}", "value", size, unit="bytes")
        finding = judge(wanted, Observation(quota.limit, "quotactl; statvfs does not tell"))
        short = finding.status == FAIL and facts.size >= size  # Else the size is what must change.
        causes = (blame_quota(size, who, quota, facts),) if short else ()
        yield finding._replace(causes=causes)


def read_quotas(size: int) -> dict[str, Quota]:
    """Return what ordinary users may take of /dev/shm, by name, where less than all of it.

    Where nobody is logged in, whoever logs in next stands for them.

    :raises OSError: If that cannot be told.
    """
    users = list_users() if os.geteuid() == 0 else [os.geteuid()]
    found = {uid: read_quota(uid, size) for uid in users or [_NOBODY]}
    return {
        "an ordinary user" if uid == _NOBODY else name_user(uid): quota
        for uid, quota in found.items()
        if quota
    }


def foresee_shm(size: int | None, root: str) -> Iterator[tuple[Requirement, Forecast]]:
    """Yield what the fstab of a tree will give."""
    from ..host.files import read_text
    from .causes import foretell_shm
    from .model import FSTAB

    if size is not None:
        wanted = Requirement(PLACE, "size", "value", size, unit="bytes")
        stop = find_fstab_stop(root)
        if stop:
            yield wanted, Forecast(UNKNOWN, reason=f"{stop} {FSTAB} to {SHM}")
        else:
            yield wanted, foretell_shm(size, read_text(FSTAB, root) or "", read_scripts(root))


def gather_shm() -> ShmFacts:
    """Return what decides the size of /dev/shm.

    :raises OSError: If it is not a tmpfs, or cannot be looked at.
    """
    facts = ShmFacts(read_shm_size(), read_fstab() or "", read_memory_size("MemTotal"))
    try:
        return facts._replace(scripts=read_scripts())
    except OSError:  # Somebody else than root has a say there: what is now is known all the same.
        return facts._replace(scripts=None)


def trace_path(place: str, item: str) -> list[Link]:
    """Return who can set the size of /dev/shm.

    :raises ValueError: If another place or item is asked for.
    """
    if place != PLACE or item != "size":
        raise ValueError(f"{place} {item} cannot be explained; accepted is {PLACE} size")
    try:
        facts = gather_shm()
        return trace_shm(facts, read_quotas(facts.size))
    except OSError as exc:
        raise ValueError(str(exc)) from exc
