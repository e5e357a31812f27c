# SPDX-License-Identifier: GPL-3.0-or-later
"""Make a page of each code of a cause: its section of the docs, what a check printed of it, the fix."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from mlhost_limits.cause_codes import CODES

from tests.faults.examples import read_examples
from tests.faults.runs import RUNS

from .policy_page import format_table

DOCS = Path(__file__).parents[2] / "docs"
_HEAD = re.compile(r'^### <a id="([a-z0-9-]+)"></a>\1$', re.MULTILINE)
_END = re.compile(r"^#+ ", re.MULTILINE)
_SHOWN = re.compile(r"^(?:Shown by|Not shown on a host): .*(?:\n.+)*\n?", re.MULTILINE)
_LINK = re.compile(r"\]\(([a-z-]+\.md)?(#[a-z-]+)?\)")
_MARKUP = re.compile(r"[*_`<>\[\]]")
_FIX, _RUN, _DEEPER = "     fix  ", "     run  ", " " * 10
ORPHAN = "---\norphan: true\n---\n"
"""What keeps a page out of the menu."""


class Section(NamedTuple):
    """What the docs say of a code, and in which file."""

    page: str
    text: str


class Fix(NamedTuple):
    """What a block says is to be done, and whether it has commands for that."""

    text: str
    has_commands: bool = False


def read_sections(folder: Path = DOCS) -> dict[str, Section]:
    """Return the section of each code, by the code."""
    found = {}
    for path in sorted(folder.glob("causes*.md")):
        _head, *parts = _HEAD.split(path.read_text(encoding="utf-8"))
        for code, text in zip(parts[::2], parts[1::2]):
            found[code] = Section(path.name, _END.split(text, maxsplit=1)[0].strip())
    return found


def format_cause(code: str, section: Section, example: Mapping[str, Any] | None) -> str:
    """Return the page of one code, for the folder below."""
    place, sentence = CODES[code]
    where = f"`{place}`" if ":" in place else place
    text = _SHOWN.sub("", section.text).strip()
    return "\n".join(
        [
            ORPHAN,
            f"# {code}\n",
            f"*{sentence[0].upper()}{sentence[1:]}.* In {where}; one of"
            f" [these](../{section.page}#{code}), and of [all](index.md).\n",
            _LINK.sub(lambda link: f"](../{link[1] or section.page}{link[2] or ''})", text) + "\n",
            *(_format_example(example) if example else _format_lack(section)),
        ]
    )


def _format_example(example: Mapping[str, Any]) -> list[str]:
    name, lines = example["fault"], example["lines"]
    kind = "the run" if name in {run.name for run in RUNS} else "the fault"
    number, fixes = example["cause"], find_fixes(lines)
    fix = fixes[number]
    text = _MARKUP.sub(r"\\\g<0>", fix.text)
    how = "Run what stands behind `run` as root." if fix.has_commands else "No command does that."
    more = " Then go on with the causes below it." if number + 1 < len(fixes) else ""
    return [
        f"## Example\n\nWhat a check printed on a host with {kind} `{name}`:\n",
        "\n".join(["```text", *lines, "```"]) + "\n",
        f"## Fix\n\n{text[0].upper()}{text[1:]}. {how}{more}\n",
    ]


def find_fixes(lines: list[str]) -> list[Fix]:
    """Return what is to be done about each cause of a block."""
    fixes: list[Fix] = []
    kind = ""
    for line in lines:
        kind = kind if line.startswith(_DEEPER) else line[: len(_FIX)]
        if line.startswith(_FIX):
            fixes.append(Fix(line[len(_FIX) :]))
        elif kind == _FIX:
            fixes[-1] = Fix(f"{fixes[-1].text} {line.strip()}")
        elif line.startswith(_RUN):
            fixes[-1] = fixes[-1]._replace(has_commands=True)
    return fixes


def _format_lack(section: Section) -> list[str]:
    """Say why there is no example; none is made up."""
    said = _SHOWN.search(section.text)
    why = " ".join(said[0].split()).partition(": ")[2] if said else ""
    shown = f" {why}" if why and not why.startswith("`") else ""
    return [f"No check of ours on a host has printed it yet.{shown}\n"]


def format_index(examples: Mapping[str, Any]) -> str:
    """Return the page of all codes."""
    rows = [
        (f"[{code}]({code}.md)", text, f"`{place}`" if ":" in place else place)
        for code, (place, text) in CODES.items()
    ]
    shown = sum(code in examples for code in CODES)
    return "\n".join(
        [
            "# Every code\n",
            f"{len(CODES)} codes. The pages of {shown} show what a check printed on a host. On a"
            " host without these pages `mlhost-limits cause CODE` says what a code means.",
            *format_table(("code", "means", "in"), rows),
        ]
    )


def link_sections(text: str) -> str:
    """Return a page of sections with a link below each to the page of its own."""
    head, *parts = _HEAD.split(text)
    for number in range(0, len(parts), 2):
        code, section = parts[number : number + 2]
        end = _END.search(section)
        cut = end.start() if end else len(section)
        body = section[:cut].rstrip()
        parts[number + 1] = (
            f"{body}\n\n[An example and the fix](causes/{code}.md)\n\n{section[cut:]}"
        )
        parts[number] = f'### <a id="{code}"></a>{code}'
    return head + "".join(parts)


def write_pages(folder: Path) -> None:
    """Write the pages of all codes below a copy of the docs, and links to them into it."""
    examples = read_examples()
    (folder / "causes").mkdir()
    for code, section in read_sections(folder).items():
        page = format_cause(code, section, examples.get(code))
        (folder / "causes" / f"{code}.md").write_text(page, encoding="utf-8")
    (folder / "causes" / "index.md").write_text(format_index(examples), encoding="utf-8")
    for path in folder.glob("causes*.md"):
        path.write_text(link_sections(path.read_text(encoding="utf-8")), encoding="utf-8")
