# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs that fail, with what each dies of, and what they wrote when they did."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
CASES = HERE / "cases"
RECORDED = HERE / "recorded"
OF_GUEST = "host"
"""The group that needs a whole host."""


class Case(NamedTuple):
    """A program that fails. ``expected`` is the code of the reason, known because it was made so.

    ``pair`` is the case with the same words, or nearly, and another reason. ``ask`` is where
    somebody would say that it ran.
    """

    group: str
    name: str
    expected: str
    program: str
    pair: str = ""
    ask: str = ""


def list_cases() -> list[Case]:
    """Return every case, in the order of the files."""
    return [case for path in sorted(CASES.glob("*.sh")) for case in _read(path)]


def _read(path: Path) -> Iterator[Case]:
    for part in re.split(r"^### ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        head, _newline, program = part.partition("\n")
        name, expected, *more = head.split()
        said = dict(one.split("=", 1) for one in more)
        text = program.strip() + "\n"
        yield Case(path.stem, name, expected, text, said.get("pair", ""), said.get("ask", ""))


def read_recorded(group: str) -> dict[str, dict[str, Any]]:
    """Return what was recorded of a group, by name of the case."""
    path = RECORDED / f"{group}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write_recorded(group: str, recorded: dict[str, dict[str, Any]]) -> None:
    """Write what was recorded of a group, in the order of its cases, facts on a line each."""
    RECORDED.mkdir(exist_ok=True)
    names = [case.name for case in list_cases() if case.group == group]
    kept = {name: dict(recorded[name]) for name in names if name in recorded}
    facts = {f"<facts of {name}>": made.pop("facts") for name, made in kept.items()}
    marked = {name: {**made, "facts": f"<facts of {name}>"} for name, made in kept.items()}
    text = json.dumps(marked, indent=1, ensure_ascii=False)
    for mark, one in facts.items():
        text = text.replace(f'"{mark}"', json.dumps(one, ensure_ascii=False))
    (RECORDED / f"{group}.json").write_text(text + "\n", encoding="utf-8")
