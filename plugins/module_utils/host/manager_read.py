# SPDX-License-Identifier: BSD-2-Clause
"""Ask the service manager what it has read: what it will start units with, right or wrong."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence

from ..core.values import RLIMITS, UNLIMITED, NamedTuple, Rlimit
from .program import run_program

_TIME_LIMIT = 10.0
_SPAN = re.compile(r"([0-9.]+)(us|ms|s|min)\b")
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}
_LIMITS = [f"Limit{name.upper()}{soft}" for name in RLIMITS for soft in ("", "Soft")]


class Shown(NamedTuple):
    """What the manager says of a unit.

    ``needs_reload``: that its files changed; it does not see a folder that is new to it.
    ``loaded_at``: when it last read all files, in seconds since the epoch, 0 where it does not say.
    """

    limits: dict[str, Rlimit]
    main_pid: int
    needs_reload: bool
    loaded_at: float


def show_unit(unit: str) -> Shown | None:
    """Return what the manager says of a unit; nothing where it is not asked or does not know."""
    names = ["LoadState", "MainPID", "NeedDaemonReload", *_LIMITS]
    told = _show([*(f"--property={name}" for name in names), "--", unit])
    loaded_at = read_loaded_at()
    if told.get("LoadState") not in ("loaded", "masked", "bad-setting", "error"):
        return None
    try:
        limits = {name: _read_pair(name, told) for name in RLIMITS}
        pid = int(told["MainPID"])
    except (KeyError, ValueError):
        return None
    return Shown(limits, pid, told.get("NeedDaemonReload") == "yes", loaded_at)


class Bounds(NamedTuple):
    """What a unit will be given of memory, in bytes, and of CPUs; ``None`` for all there is."""

    memory: int | None
    cpus: float | None


def show_bounds(unit: str) -> Bounds:
    """Return what a unit's cgroup will be given when it starts; no bound where nobody says."""
    told = _show(["--property=MemoryMax", "--property=CPUQuotaPerSecUSec", "--", unit])
    memory, quota = told.get("MemoryMax", ""), told.get("CPUQuotaPerSecUSec", "")
    parts = _SPAN.findall(quota)
    cpus = sum(float(number) * _SECONDS[name] for number, name in parts)
    return Bounds(int(memory) if memory.isdigit() else None, cpus or None)


def show_oomd(unit: str) -> tuple[bool, bool]:
    """Tell whether systemd-oomd may kill a unit for memory pressure, and for swap."""
    names = ("ManagedOOMMemoryPressure", "ManagedOOMSwap")
    told = _show([*(f"--property={name}" for name in names), "--", unit])
    pressure, swap = (told.get(name) == "kill" for name in names)
    return pressure, swap


def show_properties(unit: str, names: Sequence[str]) -> dict[str, str]:
    """Return some properties of a unit as systemctl shows them; nothing if it is silent."""
    return _show([*(f"--property={name}" for name in names), "--", unit])


def show_defaults() -> dict[str, Rlimit]:
    """Return what the system's manager gives units that state nothing; nothing if it is silent."""
    names = [f"Default{name}" for name in _LIMITS]
    told = _show([f"--property={name}" for name in names])
    found = {}
    for name in RLIMITS:
        try:
            found[name] = _read_pair(name, told, "DefaultLimit")
        except (KeyError, ValueError):
            continue
    return found


def read_loaded_at() -> float:
    """Return when the system's manager last read all files, in seconds since the epoch, or 0."""
    told = _show([f"--property=UnitsLoad{name}TimestampMonotonic" for name in ("", "Finish")])
    try:
        ticks = _read_load(told)
    except ValueError:
        return 0.0
    return time.time() - time.monotonic() + ticks / 1e6 if ticks else 0.0


def _read_load(told: Mapping[str, str]) -> int:
    """Return when the manager last read all files, in microseconds since boot.

    Managers before systemd 247 do not say when they read them again.
    """
    last = told.get("UnitsLoadTimestampMonotonic")
    return int(last) or int(told.get("UnitsLoadFinishTimestampMonotonic", "0")) if last else 0


def _read_pair(name: str, told: Mapping[str, str], start: str = "Limit") -> Rlimit:
    key = f"{start}{name.upper()}"
    return Rlimit(_read_bound(told[f"{key}Soft"]), _read_bound(told[key]))


def _read_bound(text: str) -> int:
    return UNLIMITED if text == "infinity" else int(text)


def _show(words: Sequence[str]) -> dict[str, str]:
    program = ["/usr/bin/systemctl", "show", "--no-pager", *words]
    code, text = run_program(program, _TIME_LIMIT, with_errors=False)
    lines = text.splitlines() if code >= 0 else []
    return dict(line.split("=", 1) for line in lines if "=" in line)
