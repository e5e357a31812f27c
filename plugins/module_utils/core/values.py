# SPDX-License-Identifier: BSD-2-Clause
"""What all places share: limits, what a file states, users, and how named tuples are made.

``NamedTuple`` and ``Generic`` of typing have a price: they compile each annotation. A check makes a
hundred such classes each time it starts, and nobody asks for their types then.
"""

from __future__ import annotations

import re
from functools import lru_cache

from .quote import quote

__all__ = ("Bound", "Declaration", "Generic", "NamedTuple", "User")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Generic, NamedTuple
else:
    from collections import namedtuple
    from types import FunctionType

    _OF_ALL = ("__annotations__", "__module__", "__qualname__", "__dict__", "__weakref__")
    _LIKE = {}  # By the number of fields, what was compiled for it.

    class _Maker(type):
        """Makes a named tuple of a class: its annotations are the fields, their values defaults."""

        def __new__(mcs, name, bases, space):
            if not bases:
                return super().__new__(mcs, name, bases, space)
            fields = tuple(space.get("__annotations__", ()))
            defaults = {field: space[field] for field in fields if field in space}
            more = {key: value for key, value in space.items() if key not in (*fields, *_OF_ALL)}
            return _make(name, fields, defaults, {"__module__": space["__module__"], **more})

    def _make(name, fields, defaults, more):
        """Make a class as namedtuple does, from one of as many fields, whose names it replaces."""
        like = _LIKE.get(len(fields))
        if like is None:
            like = namedtuple("_Like", [f"field_{number}" for number in range(len(fields))])
            _LIKE[len(fields)] = like
        space = dict(vars(like))
        code = like.__new__.__code__.replace(co_varnames=("_cls", *fields))
        new = FunctionType(code, like.__new__.__globals__, "__new__", tuple(defaults.values()))
        new.__qualname__ = f"{name}.__new__"
        space.update({field: space.pop(own) for field, own in zip(fields, like._fields)})
        space.update(__new__=new, __repr__=_tell, _replace=_replace, __match_args__=fields)
        space.update(_fields=fields, _field_defaults=defaults, **more)
        return type(name, (tuple,), space)

    def _tell(self):
        stated = ", ".join(f"{field}={value!r}" for field, value in zip(self._fields, self))
        return f"{type(self).__name__}({stated})"

    def _replace(self, /, **given):
        made = self._make(map(given.pop, self._fields, self))
        if given:
            raise ValueError(f"Got unexpected field names: {list(given)!r}")
        return made

    class NamedTuple(metaclass=_Maker):
        """A tuple whose fields have names."""

    class Generic:
        """A class with a parameter, which is one and the same for all of them."""

        def __class_getitem__(cls, _parameter):
            return cls


class Declaration(NamedTuple):
    """One statement of one value.

    ``line`` counts from 1; 0 means that the statement is not a line of a file (a command line,
    the kernel's default), and less, with no ``path``, that a remedy would state it. ``text`` is
    the statement as written, without its line end; where a remedy edits the line, it is the whole
    line, blanks and comments too.
    ``value`` is in the kernel's unit, or the text where the value is not a number.
    """

    path: str
    line: int
    text: str
    value: int | str

    @property
    def place(self) -> str:
        """Return ``file:line``, the way compilers name a place."""
        return f"{self.path}:{self.line}" if self.line > 0 else self.path


class Bound(NamedTuple):
    """The line that wins one bound of one item, and those it shadows, strongest last."""

    winner: Declaration
    shadowed: tuple[Declaration, ...] = ()


class User(NamedTuple):
    """What pam_limits asks of a user.

    ``groups`` and ``gids`` hold every group that the system knows by name, the primary one too.
    """

    name: str
    uid: int
    gid: int
    groups: frozenset[str] = frozenset()
    gids: frozenset[int] = frozenset()


UNLIMITED = 2**64 - 1
"""No limit, as the kernel stores it (``RLIM64_INFINITY`` in ``linux/resource.h``).

Being an integer above every finite limit, it compares like any other value.
"""

UNLIMITED_WORDS = ("unlimited", "infinity", "-1")

_BINARY_UNITS = {"": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_TIME_UNITS = {"": 1, "s": 1, "min": 60, "h": 3600}
_COUNT_UNITS = {"": 1}
_QUANTITY = re.compile(r"(0|[1-9][0-9]{0,39}) ?([A-Za-z]*)")


class Rlimit(NamedTuple):
    """The pair ``getrlimit(2)`` returns, in the kernel's unit."""

    soft: int
    hard: int


class Item(NamedTuple):
    """One item of limits.conf(5).

    ``resource`` is the number ``setrlimit(2)`` takes, ``None`` where the item is not an rlimit.
    ``scale`` is kernel units per limits.conf unit (``process_limit()`` in pam_limits.c).
    ``unit`` is the kernel's: ``bytes``, ``seconds`` or empty for a count.
    ``label`` is the row of /proc/PID/limits (``proc_pid_limits()`` in fs/proc/base.c).
    """

    resource: int | None
    scale: int = 1
    unit: str = ""
    label: str = ""


ITEMS = {
    "cpu": Item(0, 60, "seconds", "Max cpu time"),
    "fsize": Item(1, 1024, "bytes", "Max file size"),
    "data": Item(2, 1024, "bytes", "Max data size"),
    "stack": Item(3, 1024, "bytes", "Max stack size"),
    "core": Item(4, 1024, "bytes", "Max core file size"),
    "rss": Item(5, 1024, "bytes", "Max resident set"),
    "nproc": Item(6, 1, "", "Max processes"),
    "nofile": Item(7, 1, "", "Max open files"),
    "memlock": Item(8, 1024, "bytes", "Max locked memory"),
    "as": Item(9, 1024, "bytes", "Max address space"),
    "locks": Item(10, 1, "", "Max file locks"),
    "sigpending": Item(11, 1, "", "Max pending signals"),
    "msgqueue": Item(12, 1, "bytes", "Max msgqueue size"),
    "nice": Item(13, 1, "", "Max nice priority"),
    "rtprio": Item(14, 1, "", "Max realtime priority"),
    "rttime": Item(15, 1, "", "Max realtime timeout"),
    "priority": Item(None),
    "maxlogins": Item(None),
    "maxsyslogins": Item(None),
    "nonewprivs": Item(None),
    "chroot": Item(None),
}

RLIMITS = tuple(name for name, item in ITEMS.items() if item.resource is not None)


def parse_quantity(value: object, unit: str) -> int:
    """Read a limit as a policy states it and return it in the kernel's unit.

    :param value: A whole number, a number with a unit (``8GiB``, ``10min``), or a word for
        "no limit". Decimal units (``KB``) and leading zeros are refused: people mean two things
        by them.
    :param unit: ``bytes``, ``seconds`` or empty, as in :class:`Item`.
    :raises ValueError: With what was seen and what is accepted.

    >>> parse_quantity("64KiB", "bytes")
    65536
    """
    text = "" if isinstance(value, bool) else str(value)
    if text in UNLIMITED_WORDS:
        return UNLIMITED
    units = {"bytes": _BINARY_UNITS, "seconds": _TIME_UNITS}.get(unit, _COUNT_UNITS)
    match = _QUANTITY.fullmatch(text)
    if match is None or match[2] not in units or not isinstance(value, (int, str)):
        raise ValueError(f"{quote(value)} is not a limit: accepted are {_accepted(units)}")
    number = int(match[1]) * units[match[2]]
    if number >= 2**63:
        raise ValueError(f"{quote(value)} is not a limit: the largest number is 2**63 - 1")
    return number


def _accepted(units: dict[str, int]) -> str:
    names = ", ".join(name for name in units if name)
    return "a whole number" + (f" (with {names})" if names else "") + " or 'unlimited'"


def format_pair(item: str, pair: Rlimit) -> str:
    """Return two bounds as people read them."""
    return ":".join(format_quantity(value, ITEMS[item].unit) for value in pair)


def format_quantity(value: int, unit: str = "") -> str:
    """Write a limit as a policy may state it: ``unlimited``, or the number with an exact unit."""
    if value >= UNLIMITED:
        return "unlimited"
    if unit == "bytes":
        for name, factor in sorted(_BINARY_UNITS.items(), key=lambda pair: -pair[1]):
            if name and factor > 1 and value >= factor and value % factor == 0:
                return f"{value // factor}{name}"
        return f"{value}B"
    return f"{value}s" if unit == "seconds" else str(value)


_LABEL_WIDTH = 26


@lru_cache(maxsize=1024)  # Thousands of processes share a few dozen sets of limits.
def parse_proc_limits(text: str) -> dict[str, Rlimit]:
    """Return every resource limit by its limits.conf name, in the kernel's unit.

    Format: ``proc_pid_limits()`` in the kernel's ``fs/proc/base.c``; a label of up to 25 columns,
    then soft, hard and unit. Sizes are in bytes.

    :param text: The whole file. Rows of limits this library does not know are skipped.
    :returns: The same mapping for the same text, so nobody may change it.
    :raises ValueError: If a row is missing or its values cannot be read.
    """
    rows = {line[: _LABEL_WIDTH - 1].rstrip(): line[_LABEL_WIDTH:] for line in text.splitlines()}
    return {name: _parse_row(ITEMS[name].label, rows) for name in RLIMITS}


def _parse_row(label: str, rows: dict[str, str]) -> Rlimit:
    values = rows.get(label, "").split()[:2]
    if len(values) < 2:
        raise ValueError(f"no row {label!r} in /proc/PID/limits")
    return Rlimit(*(_parse_value(value, label) for value in values))


def _parse_value(text: str, label: str) -> int:
    if text == "unlimited":
        return UNLIMITED
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{label}: {quote(text)} is not a number or 'unlimited'")
    return int(text)
