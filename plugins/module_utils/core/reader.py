# SPDX-License-Identifier: BSD-2-Clause
"""Read the parts that the sections of a policy share; every violation is collected, none raised."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from .quote import one_line
from .values import ITEMS, NamedTuple, format_quantity, parse_quantity


class Key(NamedTuple):
    """One key: the kind of its value, what it means, and what its kind leaves open.

    ``accepted`` are the items of limits, or the words of a choice. ``least`` and ``most`` bound a
    number. ``below`` are the keys of a mapping, or of each mapping of a list. A name in capitals
    stands for one of the user's own: of a sysctl, a unit, a package.
    """

    kind: str
    text: str
    accepted: tuple[str, ...] = ()
    least: int = 0
    most: int = 10**6
    below: Mapping[str, Key] = {}


BOUNDS = {
    "soft": Key("limit", "what a process begins with: set exactly, checked as a minimum"),
    "hard": Key("limit", "how far it may raise that itself: set exactly, checked as a minimum"),
    "max": Key("limit", "the highest hard limit that passes; only checked"),
}


LONGEST_WORD = 256  # A line of limits.conf past byte 1023 is another line to older builds of PAM.
_BOUNDS = tuple(BOUNDS)


class PolicyError(ValueError):
    """A policy, or what it asks of this host, is refused; ``problems`` says all that is wrong."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = [one_line(problem) for problem in problems]
        super().__init__("; ".join(self.problems))


class UnknownKey(str):
    """What is wrong with a key itself, so that no value makes it right."""


class Limit(NamedTuple):
    """What a policy says of one item, in the kernel's unit; ``None`` where it is silent.

    ``soft`` and ``hard`` are set exactly and checked as minima; ``max`` is only checked.
    ``text`` is the value of the one item that takes a path, chroot.
    """

    soft: int | None = None
    hard: int | None = None
    max: int | None = None
    text: str | None = None


def read_entries(
    path: str, raw: object, accepted: Iterable[str], problems: list[str]
) -> list[tuple[str, Mapping[str, object]]]:
    """Return the mappings of a list with their key paths, and report everything else."""
    if not isinstance(raw, list):
        problems.append(f"{path}: {name_kind(raw)} was given; a list of mappings is accepted")
        return []
    found: list[tuple[str, Mapping[str, object]]] = []
    for index, entry in enumerate(raw):
        here = f"{path}[{index}]"
        if isinstance(entry, dict):
            refuse_unknown(here, entry, accepted, problems)
            found.append((here, entry))
        else:
            problems.append(f"{here}: {name_kind(entry)} was given; a mapping is accepted")
    return found


def read_stated(
    path: str, raw: object, accepted: tuple[str, ...], problems: list[str]
) -> dict[str, Limit]:
    """Read the limits of a rule, which must state one: a rule without any is always met."""
    if raw == {}:
        problems.append(f"{path}: is empty, so nothing would be required")
    return read_limits(path, raw, accepted, problems)


def read_limits(
    path: str, raw: object, accepted: tuple[str, ...], problems: list[str]
) -> dict[str, Limit]:
    limits = {}
    for name, value in read_mapping(path, raw, accepted, problems).items():
        if name in accepted:
            limits[name] = _read_limit(f"{path}.{name}", name, value, problems)
    return limits


def _read_limit(path: str, name: str, raw: object, problems: list[str]) -> Limit:
    if name == "chroot":
        if not isinstance(raw, str) or not _is_chroot(raw):
            problems.append(
                f"{path}: {raw!r} was given; accepted is an absolute path without blanks, '#' and"
                " capitals, which pam_limits makes small"
            )
        return Limit(text=str(raw))
    if not isinstance(raw, dict):
        value = _read_value(path, name, raw, problems)
        return Limit(value, value)
    if ITEMS[name].resource is None:
        problems.append(f"{path}: has no soft and hard; one value is accepted")
    refuse_unknown(path, raw, _BOUNDS, problems)
    if not set(raw) & set(_BOUNDS):
        problems.append(f"{path}: states no bound; accepted are {join_names(_BOUNDS)}")
    soft, hard, high = (
        _read_value(f"{path}.{bound}", name, raw[bound], problems) if bound in raw else None
        for bound in _BOUNDS
    )
    limit = Limit(soft, hard, high)
    _refuse_disorder(path, limit, ITEMS[name].unit, problems)
    return limit


def _is_chroot(path: str) -> bool:
    small = not re.search(r"[\s#A-Z]", path)
    return path.startswith("/") and path.isprintable() and small and len(path) <= LONGEST_WORD


def _read_value(path: str, name: str, raw: object, problems: list[str]) -> int | None:
    """Read one bound; ``nice`` is written as in limits.conf(5), 19 to -20, and held as 20 - n."""
    if name in ("nice", "priority"):
        if isinstance(raw, int) and not isinstance(raw, bool) and -20 <= raw <= 19:
            return 20 - raw if name == "nice" else raw
        problems.append(f"{path}: {raw!r} is not a priority; accepted are -20 to 19")
        return None
    value = read_quantity(path, raw, ITEMS[name].unit, problems)
    if name == "nonewprivs" and value not in (0, 1, None):
        problems.append(f"{path}: {raw!r} was given; 0 or 1 is accepted")
    return value


def _refuse_disorder(path: str, limit: Limit, unit: str, problems: list[str]) -> None:
    bounds = (limit.soft, limit.hard, limit.max)
    stated = [(bound, value) for bound, value in zip(_BOUNDS, bounds) if value is not None]
    for (low, small), (high, large) in zip(stated, stated[1:]):
        if small > large:
            problems.append(
                f"{path}: {low} {format_quantity(small, unit)} is above"
                f" {high} {format_quantity(large, unit)}"
            )


def read_quantity(path: str, raw: object, unit: str, problems: list[str]) -> int | None:
    try:
        return parse_quantity(raw, unit)
    except ValueError as exc:
        problems.append(f"{path}: {exc}")
        return None


def read_mapping(
    path: str, raw: object, accepted: Iterable[str], problems: list[str]
) -> Mapping[str, object]:
    if not isinstance(raw, dict):
        problems.append(f"{path}: {name_kind(raw)} was given; a mapping is accepted")
        return {}
    refuse_unknown(path, raw, accepted, problems)
    return raw


def refuse_unknown(
    path: str, raw: Mapping[str, object], accepted: Iterable[str], problems: list[str]
) -> None:
    accepted = list(accepted)
    for key in raw:
        if key not in accepted:
            told = f"{path}.{key}: is unknown; accepted are {join_names(accepted)}"
            problems.append(UnknownKey(told))


def name_kind(value: object) -> str:
    names = {list: "a list", dict: "a mapping", str: "a text", type(None): "nothing"}
    return names.get(type(value), f"{value!r}")


def join_names(names: Iterable[str]) -> str:
    return ", ".join(names)
