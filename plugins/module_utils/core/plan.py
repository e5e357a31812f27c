# SPDX-License-Identifier: BSD-2-Clause
"""What a plan is: the edits of files, what stands in their way, and how it comes into effect."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from .edit import Edit, neutralize, restore
from .values import Declaration, NamedTuple


class Shortfall(NamedTuple):
    """A foreign line that beats ours with less than the policy asks for."""

    foreign: Declaration
    ours: str
    neutralized: bool

    def __str__(self) -> str:
        verb = "was beating" if self.neutralized else "beats"
        return f'{self.foreign.place} "{self.foreign.text.strip()}" {verb} our "{self.ours}"'


class SectionPlan(NamedTuple):
    """What one section of a policy changes on a host; ``problems`` forbid every change."""

    edits: tuple[Edit, ...] = ()
    problems: tuple[str, ...] = ()
    shortfalls: tuple[Shortfall, ...] = ()
    notes: tuple[str, ...] = ()


class Section(NamedTuple):
    """The plan of one section, and how it comes into effect.

    ``restarts`` are the units that must be restarted for it, ``settle`` does what is allowed of
    that and returns why something does not run any more; ``None`` where nothing is to be done.
    ``find_old`` lists, after the writing, what goes on with less than the policy asks for.
    """

    plan: SectionPlan = SectionPlan()
    restarted: tuple[str, ...] = ()
    restart_required: tuple[str, ...] = ()
    settle: Callable[[], str] | None = None
    running: tuple[tuple[str, str, str], ...] = ()
    """Running values that ``settle`` changes: what, before, after."""
    find_old: Callable[[], Iterable[str]] = tuple
    in_effect: tuple[str, ...] = ()
    """The sections of a check that can be met now."""
    sysctls: tuple[tuple[str, str, str], ...] = ()
    """The kernel's values that change before any file is written: key, before, after."""
    nr_open: int | None = None
    """The lowest fs.nr_open that will be in force; ``None`` where the place has no say in it."""


def plan_edits(before: Mapping[str, str], after: Mapping[str, str | None]) -> tuple[Edit, ...]:
    """Return one edit for each file whose text differs; files are held as latin-1.

    :param after: The wanted text by path; ``None`` for a file that shall be gone.
    """
    return tuple(
        Edit(path, _encode(before.get(path)), _encode(after[path]))
        for path in sorted(after)
        if before.get(path) != after[path]
    )


def _encode(text: str | None) -> bytes | None:
    return None if text is None else text.encode("latin-1")


def restore_all(files: Mapping[str, str]) -> dict[str, str]:
    """Return the files with every line that we made ineffective effective again."""
    return {path: restore(text) for path, text in files.items()}


def neutralise_all(files: Mapping[str, str], lines: Iterable[Declaration]) -> dict[str, str]:
    """Return the files with these lines made ineffective."""
    numbers: dict[str, set[int]] = {}
    for declaration in lines:
        numbers.setdefault(declaration.path, set()).add(declaration.line)
    return {
        path: neutralize(text, numbers[path]) if path in numbers else text
        for path, text in files.items()
    }
