# SPDX-License-Identifier: BSD-2-Clause
"""Read what ``nvidia-smi --query-… --format=csv,noheader,nounits`` prints, and judge it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from ..core.finding import FAIL, PASS, UNKNOWN, Finding, Observation, Requirement
from ..core.values import NamedTuple, format_quantity
from ..host.program import run_program
from .folder_rules import blame
from .policy import Training
from .verdict import be_tight

PLACE = "gpu"
GPU_FIELDS = (
    "index",
    "uuid",
    "name",
    "memory.total",
    "memory.used",
    "persistence_mode",
    "mig.mode.current",
)
PROCESS_FIELDS = ("gpu_uuid", "pid", "process_name", "used_gpu_memory")
_MEBIBYTE = 2**20
_HOW = "nvidia-smi"
_SHOWN = 5


class Gpu(NamedTuple):
    """One GPU; sizes in bytes. ``None`` where the driver does not say."""

    number: int
    uuid: str
    name: str
    memory: int | None
    used: int | None
    persistent: bool | None
    split: bool | None


class GpuProcess(NamedTuple):
    """A process that computes on a GPU; ``memory`` in bytes, ``None`` where it is not told."""

    uuid: str
    pid: int
    name: str
    memory: int | None


def parse_gpus(text: str) -> list[Gpu]:
    """Return the GPUs.

    :raises ValueError: If it is something else, such as the driver's own message.
    """
    found = []
    for row in _split(text, len(GPU_FIELDS)):
        if not row[0].isdecimal():
            raise ValueError(f"nvidia-smi says: {text.strip().splitlines()[0]}")
        memory, used = map(_read_size, row[3:5])
        found.append(Gpu(int(row[0]), row[1], row[2], memory, used, *map(_read_flag, row[5:7])))
    return found


def parse_processes(text: str) -> list[GpuProcess]:
    """Return the processes; rows that are not one are left out: they are messages of the driver."""
    return [
        GpuProcess(row[0], int(row[1]), row[2].rpartition("/")[2], _read_size(row[3]))
        for row in _split(text, len(PROCESS_FIELDS))
        if row[1].isdecimal()
    ]


def _split(text: str, fields: int) -> Iterator[list[str]]:
    """Yield the fields of each row; a name in the middle may hold commas of its own."""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if line.strip():
            surplus = max(0, len(cells) - fields)
            row = [*cells[:2], ", ".join(cells[2 : 3 + surplus]), *cells[3 + surplus :]]
            yield row + [""] * (fields - len(row))


def _read_size(text: str) -> int | None:
    return int(text) * _MEBIBYTE if text.isdecimal() else None


def _read_flag(text: str) -> bool | None:
    return {"Enabled": True, "Disabled": False}.get(text)


def choose_visible(gpus: Sequence[Gpu], visible: str | None) -> list[Gpu]:
    """Return the GPUs that CUDA_VISIBLE_DEVICES leaves; the first that is not one ends the list."""
    if visible is None:
        return list(gpus)
    chosen: list[Gpu] = []
    for word in map(str.strip, visible.split(",")):
        found = [
            one for one in gpus if word and (word == str(one.number) or _names(word, one.uuid))
        ]
        if len(found) != 1 or found[0] in chosen:
            break
        chosen.append(found[0])
    return chosen


def _names(word: str, uuid: str) -> bool:
    return word.startswith("GPU-") and uuid.startswith(word)


def judge_gpus(
    gpus: Sequence[Gpu], processes: Sequence[GpuProcess], number: int, memory: int | None
) -> Iterator[Finding]:
    """Yield whether there are enough GPUs, each with enough memory free, and ready.

    :param memory: The bytes that the run needs of each; ``None`` where nobody said.
    """
    wanted = Requirement(PLACE, "number", "value", number)
    seen = Observation(len(gpus), _HOW)
    if len(gpus) < number:
        names = ", ".join(f"{one.number} ({one.name})" for one in gpus) or "none"
        fix = "start fewer ranks, or run on a host with more"
        cause = blame("gpu-too-few", f"{number} GPUs are needed, and there are: {names}", fix)
        yield Finding(FAIL, wanted, seen, (cause,))
    else:
        yield Finding(PASS, wanted, seen)
    if memory is not None:
        ready = sorted(gpus, key=lambda one: -_find_free(one))[:number]
        for one in sorted(ready, key=lambda one: one.number):
            yield _judge_memory(one, processes, memory)
    if any(one.persistent is not None for one in gpus):
        yield _tell_persistence(gpus)


def _find_free(gpu: Gpu) -> int:
    return 0 if gpu.memory is None else gpu.memory - (gpu.used or 0)


def _judge_memory(gpu: Gpu, processes: Sequence[GpuProcess], memory: int) -> Finding:
    wanted = Requirement(f"{PLACE}:{gpu.number}", "free memory", "value", memory, unit="bytes")
    if gpu.memory is None or gpu.used is None or gpu.split:
        said = "is split by MIG" if gpu.split else "does not tell its memory"
        return Finding(UNKNOWN, wanted, Observation(None, _HOW, f"GPU {gpu.number} {said}"))
    free = _find_free(gpu)
    if free >= memory:
        return Finding(PASS, wanted, Observation(free, _HOW))
    has, wants = (format_quantity(size, "bytes") for size in (gpu.memory, memory))
    others = [one for one in processes if one.uuid == gpu.uuid]
    if gpu.memory < memory or not others:
        left = format_quantity(free, "bytes")
        text = f"GPU {gpu.number} ({gpu.name}) has {has}, {left} of it free; {wants} are needed"
        fix = "use a smaller batch, more GPUs, or offload"
        cause = blame("gpu-little-memory", text, fix)
        if gpu.memory >= memory:
            cause = be_tight(cause, "what holds the rest may have ended by then")
        return Finding(FAIL, wanted, Observation(free, _HOW), (cause,))
    told = ", ".join(f"{one.name} (pid {one.pid})" for one in others[:_SHOWN])
    text = f"GPU {gpu.number} is used by {told}"
    fix = "wait until they have ended, or choose other GPUs with CUDA_VISIBLE_DEVICES"
    return Finding(FAIL, wanted, Observation(free, _HOW), (blame("gpu-in-use", text, fix),))


def _tell_persistence(gpus: Sequence[Gpu]) -> Finding:
    """Tell whether the driver keeps GPUs that nobody uses: without, a start takes seconds more."""
    names = ", ".join(str(one.number) for one in gpus if one.persistent is False)
    seen = f"off on {names}: the first use of each takes seconds" if names else "on"
    return Finding(PASS, Requirement(PLACE, "persistence", "value"), Observation(seen, _HOW))


def leave_unknown(number: int, reason: str) -> Finding:
    """Say that no driver told anything."""
    wanted = Requirement(PLACE, "number", "value", number)
    return Finding(UNKNOWN, wanted, Observation(None, _HOW, reason))


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
        raise OSError("nvidia-smi is not installed: no NVIDIA GPU can be looked at")
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
