# SPDX-License-Identifier: BSD-2-Clause
"""Read what confines a job of Slurm to memory and CPUs, as the job itself sees it: cgroups(7)."""

from __future__ import annotations

import re

from ..core.cgroup import count_cpus
from ..core.values import UNLIMITED, NamedTuple

CONFINES = "mlhost-limits-confines:"
"""What begins the part of a job's output that :func:`parse_confines` reads."""

_ENDLESS = 2**60
"""Version 1 writes no limit as the largest number of pages, 2**63 less one page."""

_ROW = re.compile(r"([a-z_.]+) (\S+) (/\S.*)")
_JOB = re.compile(r"/job_[0-9]+(/|$)")


class Size(NamedTuple):
    """What a job asks for: bytes of memory and CPUs; ``None`` for neither more nor less."""

    memory: int | None = None
    cpus: int | None = None


class Level(NamedTuple):
    """One cgroup that bounds a job: its folder, and the bytes or the CPUs that it leaves."""

    path: str
    most: int

    @property
    def is_jobs(self) -> bool:
        """Tell whether Slurm made it for the job."""
        return _JOB.search(self.path) is not None


class Confines(NamedTuple):
    """What confines a job; its own cgroup's bounds come first, without those that bound nothing.

    ``cpus`` is how many it may run on, and ``total`` the memory of the host; 0 where not known.
    """

    memory: tuple[Level, ...]
    cpu_levels: tuple[Level, ...]
    cpus: int
    total: int

    @property
    def lowest(self) -> Level:
        """Return the cgroup that leaves least memory."""
        return min(self.memory, key=lambda level: level.most, default=Level("", UNLIMITED))


def parse_confines(text: str) -> Confines:
    """Read what a job printed of itself: rows of a file's name, its value and its folder."""
    memory, cpus = [], []
    for line in text.splitlines():
        row = _ROW.fullmatch(line.strip())
        if row and row[1].startswith("cpuset."):
            cpus.append(Level(row[3], count_cpus(row[2])))
        elif row and row[2].isdigit() and int(row[2][:40]) < _ENDLESS:
            memory.append(Level(row[3], int(row[2])))
    allowed = re.search(r"^Cpus_allowed_list:\s*(\S+)", text, re.MULTILINE)
    total = re.search(r"^MemTotal:\s*([0-9]{1,40}) kB", text, re.MULTILINE)
    count = count_cpus(allowed[1]) if allowed else 0
    return Confines(tuple(memory), tuple(cpus), count, int(total[1]) * 1024 if total else 0)
