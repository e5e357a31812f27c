# SPDX-License-Identifier: BSD-2-Clause
"""Why a finding falls short: the one thing to change, what it beats, and how to change it."""

from __future__ import annotations

from typing import NamedTuple

from .quote import one_line
from .remedy import Remedy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .declaration import Declaration


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
        "file": _decode(declaration.path),
        "line": declaration.line,
        "text": _decode(declaration.text.strip()),
    }


def cite(declaration: Declaration) -> str:
    """Return ``FILE:LINE "TEXT"``, in one line that a terminal can bear."""
    text = one_line(" ".join(_decode(declaration.text).split()))
    return f'{one_line(_decode(declaration.place))} "{text}"'


def _decode(text: str) -> str:
    """Return the text of a file that was read as latin-1, so that every byte survives."""
    try:
        return text.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return text
