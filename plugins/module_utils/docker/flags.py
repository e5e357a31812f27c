# SPDX-License-Identifier: BSD-2-Clause
"""Read the defaults of new containers that dockerd's own flags state."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ..core.values import RLIMITS, UNLIMITED, Declaration, Rlimit, format_quantity
from ..shared_memory.size import TOO_LARGE, parse_shm_size
from .daemon_json import Problem, StatedDefault, is_too_low
from .dockerd_flags import Flag

_NAMES = tuple(name for name in RLIMITS if name != "as")
_ULIMIT = r"([^=]*)=([-+]?[0-9]{1,40})(?::([-+]?[0-9]{1,40}))?"


def read_flag_defaults(flags: Iterable[Flag]) -> list[StatedDefault]:
    """Return the defaults that flags state, of each name the last one.

    What dockerd refuses states nothing; :func:`find_flag_problems` names it.
    """
    stated = {}
    for flag in flags:
        if flag.name == "default-ulimit":
            found = parse_ulimit(flag.value)
        elif flag.name == "default-shm-size":
            found = _parse_size(flag.value)
        else:
            continue
        if found:
            name, limit = found
            value = limit.hard if name == "shm_size" else ":".join(map(format_quantity, limit))
            stated[name] = StatedDefault(name, limit, declare_flag(flag, value))
    return list(stated.values())


def declare_flag(flag: Flag, value: int | str = "") -> Declaration:
    return Declaration(flag.path, flag.line, flag.text, value)


def parse_ulimit(text: str) -> tuple[str, Rlimit] | None:
    """Read ``nofile=1024:4096`` as dockerd does; ``None`` for what it refuses.

    Source: ``ParseUlimit`` of docker/go-units.
    """
    match = re.fullmatch(_ULIMIT, text, re.DOTALL)
    if match is None or match[1] not in _NAMES:
        return None
    soft = int(match[2])
    hard = soft if match[3] is None else int(match[3])
    if not all(-(2**63) <= bound < 2**63 for bound in (soft, hard)):
        return None
    if hard != -1 and (soft > hard or soft == -1):
        return None
    return match[1], Rlimit(soft % 2**64, hard % 2**64)


def _parse_size(text: str) -> tuple[str, Rlimit] | None:
    size = parse_shm_size(text)
    size = UNLIMITED if size == 0 else size
    return None if size is None else ("shm_size", Rlimit(size, size))


def find_flag_problems(flags: Iterable[Flag], nr_open: int) -> Iterator[Problem]:
    """Yield the flags that stop dockerd, or every container.

    :param nr_open: ``fs.nr_open`` of the host.
    """
    for flag in flags:
        at = declare_flag(flag)
        text = f"{at.place}: {at.text}"
        if flag.name == "default-ulimit" and parse_ulimit(flag.value) is None:
            yield Problem(f"{text} is not a limit, dockerd takes NAME=SOFT:HARD", "dockerd", at)
        elif flag.name == "default-shm-size" and parse_shm_size(flag.value) is None:
            yield Problem(f"{text} is not a size, dockerd takes one such as 8G", "dockerd", at)
    for default in read_flag_defaults(flags):
        fault = _find_fault(default, nr_open)
        if fault:
            place = f"{default.declaration.place}: {default.declaration.text}"
            text = f"{place}: {fault}: no container starts"
            yield Problem(text, "containers", default.declaration)


def _find_fault(default: StatedDefault, nr_open: int) -> str:
    soft, hard = default.limit
    if soft > hard:
        return f"soft {format_quantity(soft)} is above hard {hard}"
    if default.name == "nofile" and hard > nr_open:
        return f"is above fs.nr_open, {nr_open}"
    if default.name == "shm_size" and hard == TOO_LARGE:
        return "is too large"
    return "is too low" if is_too_low(default.name, default.limit) else ""
