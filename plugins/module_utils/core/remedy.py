# SPDX-License-Identifier: BSD-2-Clause
"""What to do about a cause, as a sentence and as commands that carry it out to the letter."""

from __future__ import annotations

import shlex

from .line_edit import edit_line, prepend, write_row
from .named import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .declaration import Declaration

_SHELL = ("sh", "-c")


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
    text = f"comment that line out{', or ' if instead else ''}{instead}"
    return Remedy(text, edit_line(at, f"s/^/{mark}/", user), then)


def replace_line(at: Declaration, text: str, then: str = "") -> Remedy:
    """Put another text in the place of a line, which is the text of the statement."""
    return Remedy(f'make it "{text}"', edit_line(at, write_row(text)), then)


def prepend_line(path: str, text: str, then: str = "") -> Remedy:
    """Add a line before all others of a file."""
    return Remedy(f'state "{text}"', prepend(path, text), then)


def append_line(path: str, text: str, then: str = "") -> Remedy:
    """Add a line to the end of a file, which is made where it is absent."""
    line = f"echo {shlex.quote(text)} >> {shlex.quote(path)}"
    return Remedy(f'state it: "{text}" in {path}', ((*_SHELL, line),), then)
