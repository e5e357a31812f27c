# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep what checks really printed of each cause, for the docs: a block of a report by its code.

``python -m tests.faults.examples build/faults.json`` takes them out of a run and into examples.json.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from .codes import read_sections
from .judge import find_short
from .shell import Look

FILE = Path(__file__).with_name("examples.json")
Example = dict[str, Any]
"""The lines of a block, which of its causes is meant, and where it is kept the fault it is of."""

_WHY, _FIX, _DEEPER = "     why  ", "     fix  ", " " * 10


def find_examples(look: Look) -> dict[str, Example]:
    """Return by each code the block that says it: where it is the first cause, or the only one."""
    best: dict[str, tuple[int, int, list[str]]] = {}
    blocks = [(block, list_reasons(block)) for block in _split(look.report)]
    for cause in (cause for finding in find_short(look.findings) for cause in finding["causes"]):
        text = _squeeze(cause["text"])
        for block, reasons in blocks:
            if text in reasons:
                found = (reasons.index(text), len(reasons), block)
                old = best.get(cause["code"], found)  # Of those that are as good, the first.
                best[cause["code"]] = min(old, found, key=lambda one: one[:2])
    return {code: {"cause": one, "lines": block} for code, (one, _count, block) in best.items()}


def _split(report: Iterable[str]) -> Iterator[list[str]]:
    """Yield each verdict with the lines that belong to it."""
    block: list[str] = []
    for line in report:
        if block and not line.startswith("     "):
            yield block
            block = []
        block.append(line)
    yield block


def list_reasons(block: list[str]) -> list[str]:
    """Return what a block gives as reasons, each without its blanks; of a note, what it says."""
    kind, found = "", [block[0].replace("note", "", 1)]
    for line in block[1:]:
        kind = kind if line.startswith(_DEEPER) else line[: len(_WHY)]
        if line.startswith(_WHY):
            found.append(line[len(_WHY) :])
        elif kind == _WHY or (len(found) == 1 and kind != _FIX):
            found[-1] += line
    is_note = block[0].startswith("note")
    return [_squeeze(one) for one in (found[:1] if is_note else found[1:])]


def _squeeze(text: str) -> str:
    """Return a text without its blanks: lines are broken anywhere."""
    return re.sub(r"\s", "", text)


def keep(results: Iterable[dict[str, Any]], kept: dict[str, Example]) -> dict[str, Example]:
    """Return what is kept, with what a run has shown; the first fault that the docs name counts.

    Where a run did not make that one, what is kept of it stays.
    """
    found = dict(kept)
    ranks = {section.code: list(section.faults) for section in read_sections()}
    for result in results:
        for code, example in result.get("examples", {}).items():
            names = ranks.get(code, [])
            old = found.get(code, {}).get("fault", "")
            if _rank(result["name"], names) <= _rank(old, names) or old == result["name"]:
                found[code] = {"fault": result["name"], **example}
    return dict(sorted(found.items()))


def _rank(fault: str, names: list[str]) -> int:
    return names.index(fault) if fault in names else len(names) + (not fault)


def read_examples() -> dict[str, Example]:
    """Return all that is kept."""
    return dict(json.loads(FILE.read_text(encoding="utf-8"))) if FILE.exists() else {}


def write_examples(examples: dict[str, Example]) -> None:
    text = json.dumps(examples, indent=1, ensure_ascii=False)
    FILE.write_text(text + "\n", encoding="utf-8")


def main() -> int:
    kept = read_examples()
    for name in sys.argv[1:]:
        kept = keep(json.loads(Path(name).read_text(encoding="utf-8"))["faults"], kept)
    write_examples(kept)
    print(f"{len(kept)} codes have an example")
    return 0


if __name__ == "__main__":
    sys.exit(main())
