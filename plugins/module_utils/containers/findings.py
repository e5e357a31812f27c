# SPDX-License-Identifier: BSD-2-Clause
"""Judge a container: its limits, the size of its /dev/shm, how many tasks its cgroups allow."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from ..core.finding import Finding, Observation, Requirement, judge, judge_limits, require_limits
from ..core.report import START
from ..core.values import NamedTuple
from .policy import SHM, TASKS, ContainerPolicy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.values import Rlimit
    from ..systemd.tasks import Level

NEVER = "no container was started (canary: never)"


class ContainerLimits(NamedTuple):
    """What a container has.

    ``shm_size`` is in bytes; ``None`` where /dev/shm is not a mount, ``UNLIMITED`` where its tmpfs
    has no size: statfs(2) says 0 blocks then. ``levels`` are the cgroups that bound its tasks, its
    own first.
    """

    limits: dict[str, Rlimit]
    shm_size: int | None
    levels: tuple[Level, ...] = ()


class Canary(NamedTuple):
    """What a new container gets, or why it is not known.

    ``refusal`` is the engine's own message where it does not start containers: a finding.
    ``reason`` says why nothing could be measured: unknown. Both are empty after a measurement.
    ``leftovers`` names what could not be taken away.
    """

    found: ContainerLimits | None
    refusal: str = ""
    reason: str = ""
    leftovers: str = ""


def require_container(place: str, asked: ContainerPolicy) -> list[Requirement]:
    """Return what a policy demands of a container."""
    return [*require_limits(place, asked.limits), *_require_others(place, asked)]


def _require_others(place: str, asked: ContainerPolicy) -> Iterator[Requirement]:
    if asked.shm_size is not None:
        yield Requirement(place, SHM, "value", asked.shm_size, unit="bytes")
    if asked.tasks is not None:
        yield Requirement(place, TASKS, "value", asked.tasks)


def judge_container(
    place: str, asked: ContainerPolicy, seen: ContainerLimits, how: str
) -> list[Finding]:
    """Return the findings of a container that was seen; of its tasks the lowest bound counts."""
    findings = judge_limits(place, asked.limits, seen.limits, how)
    seen_of = {SHM: _observe_shm(seen.shm_size, how), TASKS: _observe_tasks(seen.levels)}
    return [*findings, *(judge(one, seen_of[one.item]) for one in _require_others(place, asked))]


def _observe_shm(size: int | None, how: str) -> Observation:
    return Observation(size, how, "" if size is not None else "it has no /dev/shm of its own")


def _observe_tasks(levels: Sequence[Level]) -> Observation:
    lowest = min(levels, key=lambda level: level.most, default=None)
    if lowest is None:
        return Observation(None, "", "its cgroup bounds no tasks that can be read")
    return Observation(lowest.most, lowest.path)


def judge_container_unknown(place: str, asked: ContainerPolicy, reason: str) -> list[Finding]:
    """Return the findings of a container that could not be seen."""
    seen = Observation(None, "", reason)
    return [judge(wanted, seen) for wanted in require_container(place, asked)]


def judge_start(place: str, refusal: str, how: str = "canary container") -> Finding:
    """Return the finding that no container starts."""
    wanted = Requirement(place, START, "value", exact="a container that starts")
    return judge(wanted, Observation(refusal, how))


def judge_canary(place: str, asked: ContainerPolicy, canary: Canary, how: str) -> list[Finding]:
    """Return the findings of a new container: what it has, that none starts, or that it is open."""
    if canary.refusal:
        return [judge_start(place, canary.refusal)]
    if canary.found is None:
        return judge_container_unknown(place, asked, canary.reason)
    return judge_container(place, asked, canary.found, how)


_ADDRESS = 0x400000
_HEADERS = 120  # The ELF header's 64 bytes and one program header's 56.
_SLEEP = (120).to_bytes(8, "little") + bytes(8)  # A struct timespec; longer than the time limit.
_CODE = {
    # nanosleep(timespec after the code, NULL); exit(0)
    "x86_64": (62, bytes.fromhex("488d3d0e00000031f66a23580f056a3c5831ff0f05")),
    "aarch64": (
        183,
        bytes.fromhex("00010010010080d2a80c80d2010000d4000080d2a80b80d2010000d41f2003d5"),
    ),
}


def refuse_machine(machine: str) -> str:
    """Return why no container can be tried on a machine; nothing where one can."""
    return "" if machine in _CODE else f"there is no canary program for {machine}"


def build_program(machine: str) -> bytes:
    """Return a static ELF program that sleeps for two minutes and exits: elf(5).

    :param machine: As ``uname -m`` names it: ``x86_64`` or ``aarch64``.
    """
    number, code = _CODE[machine]
    size = _HEADERS + len(code) + len(_SLEEP)
    file_header = struct.pack(
        "<16sHHIQQQIHHHHHH",
        *(b"\x7fELF\x02\x01\x01", 2, number, 1, _ADDRESS + _HEADERS),
        *(64, 0, 0, 64, 56, 1, 0, 0, 0),
    )
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, _ADDRESS, _ADDRESS, size, size, 0x10000)
    return file_header + segment + code + _SLEEP
