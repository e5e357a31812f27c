# SPDX-License-Identifier: GPL-3.0-or-later
"""Which of the documented codes of causes some fault has shown.

Codes are read where people read them, in the docs, so that faults and causes do not know each other.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

DOCS = Path(__file__).parents[2] / "docs"
_OF_RUNS = ("causes-training.md", "causes-workspace.md")  # A host is not broken by them.
_ANCHOR = re.compile(r'^### <a id="([a-z0-9-]+)"></a>\1$', re.MULTILINE)
_SHOWN = re.compile(r"^Shown by: (.*)$", re.MULTILINE)
_NEVER = re.compile(r"^Not shown on a host: .", re.MULTILINE)


class Section(NamedTuple):
    """What the docs say of a code: the faults that show it, or that none does and why."""

    code: str
    faults: tuple[str, ...]
    excused: bool


def read_sections() -> list[Section]:
    """Return what the docs say of every code that is about a host."""
    found = []
    for page in sorted(set(DOCS.glob("causes*.md")) - {DOCS / name for name in _OF_RUNS}):
        _head, *parts = _ANCHOR.split(page.read_text(encoding="utf-8"))
        for code, text in zip(parts[::2], parts[1::2]):
            names = [
                name for line in _SHOWN.findall(text) for name in re.findall("`([^`]+)`", line)
            ]
            found.append(Section(code, tuple(names), bool(_NEVER.search(text))))
    return found


def find_codes(findings: Iterable[dict[str, Any]]) -> set[str]:
    """Return the codes of all causes that a check named."""
    return {cause["code"] for finding in findings for cause in finding["causes"]}


def count_codes(shown: Collection[str]) -> dict[str, Any]:
    """Return how many of the documented codes were shown, and those that were not."""
    codes = [section.code for section in read_sections()]
    never = [code for code in codes if code not in shown]
    return {"codes": len(codes), "codes_shown": len(codes) - len(never), "codes_never_shown": never}


def find_broken_words(shown: Mapping[str, Collection[str]]) -> list[str]:
    """Return where the docs name a fault for a code that it did not show.

    :param shown: By the names of faults that were made, the codes that each has shown.
    """
    return [
        f"{section.code} by {name}"
        for section in read_sections()
        for name in section.faults
        if name in shown and section.code not in shown[name]
    ]


def find_unexcused(never: Collection[str]) -> list[str]:
    """Return the codes that were not shown, and of which the docs do not say why."""
    return [one.code for one in read_sections() if one.code in never and not one.excused]
