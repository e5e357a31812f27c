# SPDX-License-Identifier: BSD-2-Clause
"""What a policy says of batch jobs: ``jobs.slurm``."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..core.reader import (
    LONGEST_WORD,
    Key,
    Limit,
    join_names,
    read_limits,
    read_mapping,
    read_quantity,
)
from ..core.values import ITEMS, RLIMITS, UNLIMITED, NamedTuple, format_quantity
from .confines import Size

_JOB_ITEMS = tuple(name for name in RLIMITS if name not in ("cpu", "fsize", "rss"))
_PROPAGATED = ("cpu", "fsize", "data", "stack", "core", "rss", "nproc", "nofile", "memlock", "as")
KEYS = {
    "limits": Key("limits", "what a job has", _JOB_ITEMS),
    "partitions": Key("partitions", "in which a job is tried; else in the default one"),
    "propagate": Key(
        "propagate",
        "the soft limits that a login may decide; else all but those of `limits`",
        _PROPAGATED,
    ),
    "memory": Key("size", "what a job gets that asks for as much; only checked", least=64 * 2**20),
    "cpus": Key(
        "count", "how many CPUs a job gets that asks for as many; only checked", least=1, most=2**16
    ),
}
PROPAGATED = KEYS["propagate"].accepted
"""The limits that Slurm may carry from a login to a job (``slurm_rlimits_info.c``)."""

_UNFIT = {
    "cpu": "would end slurmd itself once it has used that much",
    "fsize": "would end slurmd itself once its log is that long",
    "rss": "is set by Slurm to the memory of each job",
}
_LEAST = {"nofile": 1024, "stack": 2**20, "nproc": 64, "as": 2**28, "data": 2**28}
"""What slurmd, and the step that it starts for each job, need themselves."""

_PARTITION = re.compile(r"[A-Za-z0-9_.+][A-Za-z0-9_.+-]*")


class SlurmPolicy(NamedTuple):
    """What jobs of Slurm owe their users.

    ``partitions`` are those in which a job is tried, none for the default one. ``propagate`` are
    the soft limits that jobs may take over from the login that submits them, ``None`` for all but
    those of ``limits``. ``size`` is the memory and the CPUs that a job must get that asks for them.
    """

    limits: Mapping[str, Limit]
    partitions: tuple[str, ...] = ()
    propagate: frozenset[str] | None = None
    size: Size | None = None

    @property
    def kept_back(self) -> frozenset[str]:
        """Return the limits that no login may decide."""
        if self.propagate is not None:
            return frozenset(PROPAGATED) - self.propagate
        named = {name for name, limit in self.limits.items() if limit.soft is not None}
        return frozenset(named & set(PROPAGATED))

    @property
    def of_steps(self) -> dict[str, Limit]:
        """Return what the steps owe that run: the soft limits are the job's own affair by now."""
        highest = {
            name: max(limit.soft or 0, limit.hard or 0)
            for name, limit in self.limits.items()
            if (limit.soft, limit.hard) != (None, None)
        }
        return {name: Limit(hard=value) for name, value in highest.items()}


def read_slurm(raw: object, problems: list[str]) -> SlurmPolicy:
    """Read the section ``jobs.slurm``."""
    path = "jobs.slurm"
    slurm = read_mapping(path, raw, KEYS, problems)
    limits = _read_limits(f"{path}.limits", slurm.get("limits", {}), problems)
    partitions = _read_partitions(f"{path}.partitions", slurm.get("partitions", []), problems)
    propagate = None
    if "propagate" in slurm:
        propagate = _read_propagate(f"{path}.propagate", slurm["propagate"], limits, problems)
    elif not slurm.get("limits") and not {"memory", "cpus"} & set(slurm):
        problems.append(f"{path}: states neither limits nor propagate, so nothing is required")
    return SlurmPolicy(limits, partitions, propagate, _read_size(path, slurm, problems))


def _read_size(path: str, slurm: Mapping[str, object], problems: list[str]) -> Size | None:
    """Read what a job must get that asks for it."""
    memory = cpus = None
    if "memory" in slurm:
        memory = read_quantity(f"{path}.memory", slurm["memory"], "bytes", problems)
        least = KEYS["memory"].least
        if memory is not None and not least <= memory < UNLIMITED:
            shown = format_quantity(least, "bytes")
            problems.append(f"{path}.memory: a job can ask for {shown} or more")
    if "cpus" in slurm:
        cpus = read_quantity(f"{path}.cpus", slurm["cpus"], "", problems)
        least, most = KEYS["cpus"].least, KEYS["cpus"].most
        if cpus is not None and not least <= cpus <= most:
            problems.append(f"{path}.cpus: a job can ask for {least} to {most}")
    return None if memory is cpus is None else Size(memory, cpus)


def _read_limits(path: str, raw: object, problems: list[str]) -> dict[str, Limit]:
    if isinstance(raw, dict):
        problems += [f"{path}.{name}: {why}" for name, why in _UNFIT.items() if name in raw]
        raw = {name: value for name, value in raw.items() if name not in _UNFIT}
    limits = read_limits(path, raw, KEYS["limits"].accepted, problems)
    for name, limit in limits.items():
        problems += [f"{path}.{name}: {why}" for why in _find_harm(name, limit)]
    return limits


def _find_harm(name: str, limit: Limit) -> list[str]:
    """Return why slurmd, or no job, would start with a limit."""
    stated = [value for value in (limit.soft, limit.hard) if value is not None]
    if name == "nofile" and UNLIMITED in stated:
        return ["'unlimited' is above fs.nr_open, so systemd would ignore it; a number is accepted"]
    least = _LEAST.get(name, 0)
    if stated and min(stated) < least:
        shown = format_quantity(least, ITEMS[name].unit)
        return [f"slurmd itself needs more; {shown} or above is accepted"]
    return []


def _read_partitions(path: str, raw: object, problems: list[str]) -> tuple[str, ...]:
    if not isinstance(raw, list):
        problems.append(f"{path}: {raw!r} was given; a list of names is accepted")
        return ()
    for name in raw:
        fits = isinstance(name, str) and _PARTITION.fullmatch(name) and len(name) <= LONGEST_WORD
        if not fits:
            problems.append(f"{path}: {name!r} is not a name of a partition")
    return tuple(dict.fromkeys(str(name) for name in raw))


def _read_propagate(
    path: str, raw: object, limits: Mapping[str, Limit], problems: list[str]
) -> frozenset[str]:
    if raw == "none":
        return frozenset()
    if not isinstance(raw, list):
        problems.append(f"{path}: {raw!r} was given; 'none' or a list of limits is accepted")
        return frozenset()
    for name in raw:
        if name not in PROPAGATED:
            problems.append(f"{path}: {name!r} is unknown; accepted are {join_names(PROPAGATED)}")
        elif name in limits and limits[name].soft is not None:
            problems.append(f"{path}: {name} is in limits as well, where no login may decide it")
    return frozenset(str(name) for name in raw)
