# SPDX-License-Identifier: BSD-2-Clause
"""Weigh what a site's own lines state, and keep what a policy can hold.

A value is adopted where it is what a boot, or the next start, makes of all files. The reader of
policies says itself what one cannot hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized

from .policy_shape import find_misshapes
from .quote import one_line
from .values import ITEMS, UNLIMITED, Declaration, NamedTuple, Rlimit, format_quantity

TYPE_CHECKING = False
if TYPE_CHECKING:
    Read = Callable[[object, list[str]], object]

_OF_OTHERS = ("/usr/lib/", "/usr/share/", "/lib/", "/run/")
"""Where packages and running programs keep what they state; the rest is the site's."""

_MOST = 20_000
"""Lines. Of each some 60 characters are written, and the file of a policy has 1 MiB at most."""


class Stated(NamedTuple):
    """One value of a policy as YAML has it, and the lines that state it."""

    value: object
    at: tuple[Declaration, ...]


class LeftOut(NamedTuple):
    """A line that the policy does not hold, or not quite as it was, and why."""

    at: Declaration
    reason: str


class Adopted(NamedTuple):
    """A section of a policy, whose leaves are :class:`Stated`, and what is not in it."""

    section: dict[str, object]
    left: list[LeftOut]


class Candidate(NamedTuple):
    """A value that a line states for a place in the policy; ``reason`` is why it cannot be held."""

    path: tuple[str, ...]
    value: object
    at: Declaration
    reason: str = ""


def settle(read: Read, section: str, candidates: Sequence[Candidate]) -> Adopted:
    """Return what counts: of one place in the policy the last candidate, if it is the site's.

    :param read: The reader of the section, which says what a policy cannot hold.
    :param section: Its key path, such as ``containers.docker``.
    :raises ValueError: If they are more than a policy can hold.
    """
    depth = section.count(".") + 1
    last = {one.path: one for one in candidates}
    adopted = Adopted({}, [])
    of_site = [one for one in candidates if is_of_site(one.at.path)]
    require_few(of_site, section)
    for one in of_site:
        winner = last[one.path]
        if winner is one:
            reason = one.reason or find_refusal(read, one.path[depth:], one.value)
        else:
            reason = describe_loss(winner.at)
        if reason:
            adopted.left.append(LeftOut(one.at, reason))
        else:
            _put(adopted.section, one.path, Stated(one.value, (one.at,)))
    return adopted


def require_few(stated: Sized, section: str) -> None:
    """Refuse what nobody could read back: ``check`` takes no file of such a length.

    :raises ValueError: If a site states more than a policy can hold.
    """
    if len(stated) > _MOST:
        told = f"the site's files have {len(stated)} lines about it, more than the {_MOST}"
        raise ValueError(f"{section}: {told} that adopt writes into one policy")


def is_of_site(path: str) -> bool:
    """Tell whether a file is the site's own, and no package's."""
    return not path.startswith(_OF_OTHERS)


def describe_loss(winner: Declaration) -> str:
    return f"has no effect: {winner.place} counts"


def find_refusal(read: Read, path: Sequence[str], value: object) -> str:
    """Return why no policy holds a value in this place, in its reader's own words; or nothing.

    :param read: The reader of the section; the path goes on from there.
    """
    raw: object = value
    for key in reversed(path):
        raw = {key: raw}
    found = find_misshapes(raw)
    read(raw, found)
    problems = map(one_line, found)
    return "; ".join(dict.fromkeys(problem.partition(": ")[2] for problem in problems))


def _put(section: dict[str, object], path: tuple[str, ...], leaf: Stated) -> None:
    for key in path[:-1]:
        section = section.setdefault(key, {})  # type: ignore[assignment]
    section[path[-1]] = leaf


def write_value(item: str, value: int | str) -> int | str:
    """Return a value in the kernel's unit as a policy states it."""
    if isinstance(value, str) or item == "priority":
        return value
    if value >= UNLIMITED:
        return "unlimited"
    if item == "nice":
        return 20 - value
    unit = ITEMS[item].unit if item in ITEMS else ""
    return format_quantity(value, unit) if unit else value


def write_limit(item: str, limit: Rlimit) -> object:
    """Return a limit as a policy states it: one value, or both bounds."""
    soft, hard = (write_value(item, bound) for bound in limit)
    return soft if soft == hard else {"soft": soft, "hard": hard}


def find_excess(item: str, highest: int, nr_open: int | None) -> str:
    """Return why no process can have a limit; or nothing."""
    if item == "nofile" and nr_open is not None and nr_open < highest < UNLIMITED:
        return f"is above fs.nr_open, {nr_open}, so no process can have it"
    return ""
