# SPDX-License-Identifier: BSD-2-Clause
"""A value that a configuration file states, with the place where it stands."""

from __future__ import annotations

from .named import NamedTuple


class Declaration(NamedTuple):
    """One statement of one value.

    ``line`` counts from 1; 0 means that the statement is no line of a file (a command line,
    the kernel's default). ``text`` is the statement as written, without its line end; where a
    remedy edits the line, it is the whole line, blanks and comments too.
    ``value`` is in the kernel's unit, or the text where the value is no number.
    """

    path: str
    line: int
    text: str
    value: int | str

    @property
    def place(self) -> str:
        """Return ``file:line``, the way compilers name a place."""
        return f"{self.path}:{self.line}" if self.line else self.path


class Bound(NamedTuple):
    """The line that wins one bound of one item, and those it shadows, strongest last."""

    winner: Declaration
    shadowed: tuple[Declaration, ...] = ()
