# SPDX-License-Identifier: BSD-2-Clause
"""Find the process that will run a training: its cgroup, its /dev/shm and what exempts it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cached_property

from ..core.cgroup import list_units
from ..core.values import NamedTuple
from ..docker.api_read import Container, read_containers
from ..docker.read import DockerRead
from ..host.door import read_kernel_text
from ..host.files import read_text
from ..host.look import Look, may_lock_memory, read_process, read_unit_pids
from ..host.manager_read import Bounds, show_bounds, show_oomd
from ..host.users import read_user
from ..kernel.use_read import pick_memory_size, read_meminfo, read_memory_size
from .causes import SLOWED, Room
from .cgroup_read import list_folders, move_to, read_cpuset, read_memory_levels, read_quotas
from .loader import format_size
from .policy import SELF
from .shm_read import find_folder
from .tasks import TaskRoom
from .tasks_read import find_lookers, find_task_rooms

_EARLYOOM = "earlyoom.service"
_OOMD = "systemd-oomd.service"
_PERCENT = re.compile(r"(?<= )-m ?([0-9]{1,3})(?:,[0-9]+)?(?= |$)")
_KIB = re.compile(r"(?<= )-M ?([0-9]{1,12})(?:,[0-9]+)?(?= |$)")
_SHARE = 10
"""Of each hundred bytes, what earlyoom leaves free where nobody says."""


class Killers(NamedTuple):
    """What is told beside the memory that is left, and what earlyoom takes away from it."""

    notes: tuple[str, ...] = ()
    room: Room | None = None


def find_killers(cgroup: str, mounts: str) -> Killers:
    """Return who would kill a process of a cgroup, in the order in which they come.

    Sources: systemd-oomd.service(8), earlyoom(1), memory.events in cgroup-v2.rst of the kernel.

    :param cgroup: /proc/PID/cgroup.
    :param mounts: /proc/self/mountinfo.
    """
    notes = [*_find_oomd(cgroup), *_find_killed(cgroup, mounts)]
    memory = read_meminfo()
    swap = memory.get("SwapTotal", 0)
    pids = read_unit_pids(_EARLYOOM)
    if not pids:
        slow = f"{format_size(swap)} of swap come first, and are slow"
        return Killers((slow, *notes) if swap else tuple(notes))
    kept = find_kept(_read_command(pids[0]), pick_memory_size("MemTotal", memory))
    if swap:
        told = f"earlyoom kills when {format_size(kept)} of memory are left and swap is nearly full"
        return Killers((told, *notes))
    told = f"earlyoom kills the largest process when {format_size(kept)} are left"
    free = max(pick_memory_size("MemAvailable", memory) - kept, 0)
    return Killers((told, *notes), Room("the host above earlyoom's bound", free, end=told))


def find_kept(command: str, memory: int) -> int:
    """Return how many bytes earlyoom leaves free, by its command line."""
    size = _KIB.search(command)
    if size:
        return int(size[1]) * 1024
    share = _PERCENT.search(command)
    return memory * (int(share[1]) if share else _SHARE) // 100


def _find_oomd(cgroup: str) -> Iterator[str]:
    if not read_unit_pids(_OOMD):
        return
    for unit in list_units(cgroup):
        pressure, swap = show_oomd(unit)
        if pressure:
            yield f"systemd-oomd kills {unit} when its memory pressure stays high"
        if swap:
            yield f"systemd-oomd kills {unit} when swap is nearly full"


def _find_killed(cgroup: str, mounts: str) -> Iterator[str]:
    """Yield that processes of a cgroup were killed: what memory.events counts, those below too."""
    for folder in list_folders(cgroup, mounts)[:1]:
        try:
            text = read_kernel_text(f"{folder}/memory.events")
        except OSError:
            continue
        killed = re.search(r"^oom_kill ([1-9][0-9]*)$", text, re.MULTILINE)
        if killed:
            yield f"the kernel has killed {killed[1]} of {folder} so far (memory.events)"


def _read_command(pid: int) -> str:
    try:
        return read_kernel_text(f"/proc/{pid}/cmdline").replace("\0", " ").strip()
    except OSError:
        return ""


_SERVICE, _SESSION, _CONTAINER = "service:", "session:", "container:docker/"
NEW_CONTAINER, JOB = "new-container:docker", "job:slurm"
_FIRST_PERSON = 1000
_CGROUPS = ("/sys/fs/cgroup", "/sys/fs/cgroup/systemd")
_SLURM_CPUS = "SLURM_CPUS_PER_TASK"


_RANKS = ("LOCAL_WORLD_SIZE", "SLURM_NTASKS_PER_NODE")


def read_own_ranks() -> dict[str, int]:
    """Return how many ranks of the run that this process is of are on this host.

    torchrun, and what is like it, states that to each, and Slurm to a job where it was asked for;
    nothing where nobody does.
    """
    told = os.environ.get(name_own_ranks(), "")
    return {"ranks_per_node": int(told)} if re.fullmatch("[1-9][0-9]{0,5}", told) else {}


def name_own_ranks() -> str:
    """Return the variable that states it: who starts ranks knows better than the job."""
    return next((name for name in _RANKS if os.environ.get(name)), _RANKS[0])


class Cpus(NamedTuple):
    """How many CPUs the ranks of a node have together, and who says so."""

    number: float
    why: str


class Runner:
    """The process that will run: where it exists, it is looked at; else what awaits it is."""

    def __init__(self, place: str, look: Look) -> None:
        self.place, self._look = place, look

    @property
    def label(self) -> str:
        """Return the place as a finding names it: a container by its name."""
        if self.place == SELF:
            return f"process:{SELF}"
        return f"{_CONTAINER}{self._container.name}" if self._container else self.place

    @cached_property
    def pid(self) -> int | None:
        """Return the process, or one that has what it will have; nothing before it starts."""
        if self.place == SELF:
            return os.getpid()
        if self.place.startswith(_SERVICE):
            return next(iter(read_unit_pids(self.place[len(_SERVICE) :])), None)
        return self._container.pid if self._container else None

    @cached_property
    def _container(self) -> Container | None:
        if not self.place.startswith(_CONTAINER):
            return None
        name = self.place[len(_CONTAINER) :]
        try:
            containers = read_containers(self._look.at(DockerRead).address)
        except (OSError, ValueError):
            return None
        found = (one for one in containers if one.name == name or one.id.startswith(name))
        return next(found, None)

    @property
    def absence(self) -> str:
        """Return the reason why a missing process cannot be judged, or nothing."""
        if self.place == JOB:
            return "what a job gets is not known before it runs; check in the job itself"
        if self.pid is None and self.place.startswith((_SERVICE, _CONTAINER)):
            return f"{self.place} is not running"
        return ""

    @cached_property
    def cgroup(self) -> str:
        """Return /proc/PID/cgroup, as it will be where the process is not there yet."""
        if self.pid is not None:
            return read_text(f"/proc/{self.pid}/cgroup") or ""
        return move_to(read_text("/proc/1/cgroup") or "", self._future_path)

    @property
    def _future_path(self) -> str:
        if self.place.startswith(_SESSION):
            user = read_user(self.user)
            return f"/user.slice/user-{user.uid}.slice" if user else "/user.slice"
        return "/system.slice"

    @property
    def _slice(self) -> str:
        return self._future_path.rpartition("/")[2]

    @cached_property
    def _future(self) -> Bounds | None:
        """Return what the slice of a user will be given, where nobody is logged in as that user."""
        if not self.user or any(os.path.isdir(top + self._future_path) for top in _CGROUPS):
            return None
        return show_bounds(self._slice)

    @property
    def user(self) -> str:
        """Return whose session it is; empty for anything else."""
        is_session = self.place.startswith(_SESSION)
        return self.place[len(_SESSION) :].rpartition("@")[0] if is_session else ""

    @staticmethod
    def knows(user: str) -> bool:
        """Tell whether this host has a user."""
        return read_user(user) is not None

    @cached_property
    def uid(self) -> int | None:
        """Return as whom it runs; nothing where that is not known before it starts."""
        if self.user:
            user = read_user(self.user)
            return user.uid if user else None
        try:
            return None if self.pid is None else read_process(self.pid).uid
        except OSError:
            return None

    @cached_property
    def is_nproc_free(self) -> bool:
        """Tell whether nproc does not bind it: the first user of the host may start any number.

        The root of a user namespace may not.
        """
        mapped = read_text(f"/proc/{self.pid or SELF}/uid_map") or ""
        return self.uid == 0 and mapped.split()[:2] == ["0", "0"]

    @cached_property
    def may_lock(self) -> bool:
        """Tell whether CAP_IPC_LOCK exempts it from memlock; Docker's default set lacks it."""
        if self.pid is not None:
            return may_lock_memory(self.pid)
        user = read_user(self.user) if self.user else None
        return bool(user and user.uid == 0)

    @property
    def loses_shm(self) -> bool:
        """Tell whether logind may remove its named files in /dev/shm at the last logout.

        It spares system users (logind.conf(5)); a file that is unlinked at once is no concern.
        """
        user = read_user(self.user) if self.user else None
        return bool(user and user.uid >= _FIRST_PERSON)

    def find_rooms(self) -> list[Room]:
        """Return the memory that is left for it: of each cgroup above it, and of the host.

        :raises OSError: If that cannot be told.
        """
        if self.absence:
            raise OSError(self.absence)
        levels = read_memory_levels(self.cgroup, read_text("/proc/self/mountinfo") or "")
        if levels is None:
            raise OSError("the limits of its cgroup cannot be read from here")
        host = Room("the host", read_memory_size("MemAvailable"))
        rooms = [
            Room(one.path, one.free, one.used, one.limit, SLOWED if one.is_high else "")
            for one in levels
        ]
        if self._future and self._future.memory is not None:
            rooms.append(Room(self._slice, self._future.memory, 0, self._future.memory))
        by_earlyoom = [self.killers.room] if self.killers.room else []
        rooms += [*by_earlyoom, host]
        memory, swap = read_memory_size("MemTotal"), read_meminfo().get("SwapTotal", 0)
        sizes = [memory if room.limit is None else room.limit for room in rooms]
        return [room._replace(most=size + swap) for room, size in zip(rooms, sizes)]

    def find_task_rooms(self) -> list[TaskRoom]:
        """Return how many tasks are left for it: of each cgroup above it, and of the host.

        :raises OSError: If that cannot be told.
        """
        if self.absence:
            raise OSError(self.absence)
        is_ours = self.cgroup == read_text("/proc/self/cgroup")
        lookers = len(find_lookers()) if is_ours else 0
        return find_task_rooms(self.cgroup, read_text("/proc/self/mountinfo") or "", lookers)

    @cached_property
    def killers(self) -> Killers:
        """Return who else would kill it for the memory that it takes."""
        return find_killers(self.cgroup, read_text("/proc/self/mountinfo") or "")

    def find_cpus(self, ranks: int) -> list[Cpus]:
        """Return everything that bounds its CPUs.

        :raises OSError: If that cannot be told.
        """
        if self.absence:
            raise OSError(self.absence)
        mounts = read_text("/proc/self/mountinfo") or ""
        told = os.environ.get(_SLURM_CPUS, "") if self.place == SELF else ""
        found = (
            [Cpus(int(told) * ranks, f"{_SLURM_CPUS}={told}")]
            if re.fullmatch("[0-9]{1,6}", told)
            else []
        )
        cpuset = None if self.pid else read_cpuset(self.cgroup, mounts)
        if self.pid:
            found.append(Cpus(len(os.sched_getaffinity(self.pid)), "affinity"))
        elif cpuset:
            found.append(Cpus(cpuset[1], f"cpuset of {cpuset[0]}"))
        else:
            found.append(Cpus(os.cpu_count() or 1, "the host's"))
        quotas = read_quotas(self.cgroup, mounts)
        if self._future and self._future.cpus is not None:
            found.append(Cpus(self._future.cpus, f"quota of {self._slice}"))
        return found + [Cpus(one.cpus, f"quota of {one.path}") for one in quotas]

    def find_shm(self) -> str:
        """Return the folder that it will see as /dev/shm.

        :raises OSError: If that cannot be told.
        """
        if self.absence and self.place != JOB:
            raise OSError(self.absence)
        return find_folder(SELF if self.pid in (None, os.getpid()) else str(self.pid))
