# SPDX-License-Identifier: BSD-2-Clause
"""Why a finding falls short: the one thing to change, what it beats, and what mends it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from typing import TypeVar

from .line_edit import edit_line, prepend, write_row
from .quote import decode, one_line
from .values import Declaration, NamedTuple

_SHELL = ("sh", "-c")
_APPENDS = re.compile(r"echo (.*) >> (/[^\s']+)")
ADD = "printf '%s\\n' ''"
"""How a command begins that adds lines to a file."""
RAISES = '[ "$(cat /proc/sys/'
"""How a command begins that raises a sysctl now, and changes no file."""


class Remedy(NamedTuple):
    """A way to put one thing right.

    ``text`` is a sentence without its end. ``commands`` run as root, in this order, and do what
    it says; there are none where a person must decide. ``then`` says what must happen before it
    counts (``log in again``), empty where it counts at once.
    """

    text: str
    commands: tuple[tuple[str, ...], ...] = ()
    then: str = ""

    def as_dict(self) -> dict[str, object]:
        """Return the remedy as plain data, for JSON."""
        return {
            "text": self.text,
            "commands": [list(words) for words in self.commands],
            "then": self.then,
        }

    @property
    def lines(self) -> list[str]:
        """Return the commands as a person types them."""
        return [
            words[2] if words[:2] == _SHELL and len(words) == 3 else shlex.join(words)
            for words in self.commands
        ]


def comment_out(
    at: Declaration, then: str = "", instead: str = "", mark: str = "# ", user: str = ""
) -> Remedy:
    """Make a line of a file ineffective, in place, so that the numbers of the others stay.

    :param at: The statement, with the whole line for its text.
    :param instead: Another way out, for the sentence.
    :param mark: What begins a comment.
    :param user: Whose file it is; empty for root's.
    """
    text = f"comment out {_name(at)}{', or ' if instead else ''}{instead}"
    return Remedy(text, edit_line(at, f"s/^/{mark}/", user), then)


def _name(at: Declaration) -> str:
    """Return ``FILE:LINE`` without the folder, or what stands for a line that no file has."""
    return one_line(decode(at.place).rpartition("/")[2]) or "it"


def replace_line(at: Declaration, text: str, then: str = "") -> Remedy:
    """Put another text in the place of a line, which is the text of the statement."""
    return Remedy(f'make {_name(at)} "{text}"', edit_line(at, write_row(text)), then)


def prepend_line(path: str, text: str, then: str = "") -> Remedy:
    """Add a line before all others of a file."""
    return Remedy(f'state "{text}"', prepend(path, text), then)


def append_line(path: str, text: str, then: str = "", is_ended: bool = False) -> Remedy:
    """Add a line to the end of a file, which is made where it is absent.

    An empty line comes before it: the last one of the file may lack its end.

    :param is_ended: That it does not is known, or will be seen by :func:`end_line_before`.
    """
    line = f"{'echo' if is_ended else ADD} {shlex.quote(text)} >> {shlex.quote(path)}"
    return Remedy(f'state it: "{text}" in {path}', ((*_SHELL, line),), then)


def end_line_before(words: tuple[str, ...], lacks_end: Callable[[str], bool]) -> tuple[str, ...]:
    """Return a command that adds a line, after an empty one where the last lacks its end."""
    match = _APPENDS.fullmatch(words[-1])
    if match is None or not lacks_end(match[2]):
        return words
    return (*words[:-1], f"{ADD} {match[1]} >> {match[2]}")


State = TypeVar("State")
_MOST = 12  # Things put right in thought, one after another.
_LONGEST_TEXT = 2000  # Characters of a line that data shows; a user may write millions.


class Cause(NamedTuple):
    """One thing that keeps a requirement from being met.

    ``code`` is stable and has an anchor in docs/causes.md. ``text`` is one sentence that names
    the place. ``at`` is the declaration at fault, ``None`` where it is not a line of a file;
    ``shadows`` are those that state enough and lose to it, the strongest last. ``writer`` is who
    else writes that file, empty where nobody is known to. ``verdict`` is of a run
    alone: whether no run survives it, or an estimate says so.
    """

    code: str
    text: str
    remedy: Remedy
    at: Declaration | None = None
    shadows: tuple[Declaration, ...] = ()
    writer: str = ""
    verdict: str = ""

    def as_dict(self) -> dict[str, object]:
        """Return the cause as plain data, for JSON."""
        return {
            "code": self.code,
            "text": self.text,
            "at": locate(self.at) if self.at and self.at.path else None,
            "shadows": [locate(one) for one in self.shadows],
            "writer": self.writer,
            "verdict": self.verdict,
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
        "text": decode(declaration.text.strip()[:_LONGEST_TEXT]),
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
    """Return ``FILE:LINE "TEXT"``, in one line that a terminal can bear.

    Of what no file states yet, the text alone.
    """
    text = one_line(" ".join(decode(declaration.text).split()))
    return f'{one_line(decode(declaration.place))} "{text}"'.lstrip()
