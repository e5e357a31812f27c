# SPDX-License-Identifier: BSD-2-Clause
"""Why a finding falls short: the one thing to change, what it beats, and how to change it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from .named import NamedTuple
from .quote import decode, one_line
from .remedy import Remedy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .declaration import Declaration

State = TypeVar("State")
_MOST = 12  # Things put right in thought, one after another.


class Cause(NamedTuple):
    """One thing that keeps a requirement from being met.

    ``code`` is stable and has an anchor in docs/causes.md. ``text`` is one sentence that names
    the place. ``at`` is the declaration at fault, ``None`` where it is no line of a file;
    ``shadows`` are those that would do and lose to it, the strongest last. ``writer`` is who
    else writes that file, empty where nobody is known to.
    """

    code: str
    text: str
    remedy: Remedy
    at: Declaration | None = None
    shadows: tuple[Declaration, ...] = ()
    writer: str = ""

    def as_dict(self) -> dict[str, object]:
        """Return the cause as plain data, for JSON."""
        return {
            "code": self.code,
            "text": self.text,
            "at": locate(self.at) if self.at else None,
            "shadows": [locate(one) for one in self.shadows],
            "writer": self.writer,
            "remedy": self.remedy.as_dict(),
        }


class Outlook(NamedTuple):
    """Whether a requirement will be met later; each is pass, fail, unknown, or nothing where the
    question has no meaning. ``next_restart`` names what must be restarted, ``""`` for nothing."""

    next_session: str = ""
    next_restart: str = ""
    after_boot: str = ""


class Link(NamedTuple):
    """One link of the chain from the kernel to a process: what it gives, who says so, since when.

    ``changed`` is an ISO time or empty where it is not known.
    """

    name: str
    value: str
    source: str
    changed: str = ""


def locate(declaration: Declaration) -> dict[str, object]:
    """Return a declaration as plain data."""
    return {
        "file": decode(declaration.path),
        "line": declaration.line,
        "text": decode(declaration.text.strip()),
    }


def search(
    state: State, find_next: Callable[[State], tuple[Cause, State | None] | None]
) -> tuple[list[Cause], State]:
    """Put right in thought what is at fault first, and look again, until nothing is.

    :param find_next: Returns a cause, with the state as it is without it where that is known.
    :returns: The causes, what comes first first, and the last state.
    """
    causes: list[Cause] = []
    for _attempt in range(_MOST):
        found = find_next(state)
        if found is None:
            break
        causes.append(found[0])
        if found[1] is None:
            break
        state = found[1]
    return causes, state


def cite(declaration: Declaration) -> str:
    """Return ``FILE:LINE "TEXT"``, in one line that a terminal can bear."""
    text = one_line(" ".join(decode(declaration.text).split()))
    return f'{one_line(decode(declaration.place))} "{text}"'
