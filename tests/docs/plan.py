# SPDX-License-Identifier: GPL-3.0-or-later
"""Which steps a reader of the documents takes, in order, and how each is taken here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .markdown import (
    SHELL,
    Block,
    Command,
    expand_options,
    fill,
    find_blocks,
    find_commands,
    find_spans,
)
from .table import CHANGELOG, DOCUMENTS, FIRST, LAST, PROGRAMS, VALUES, Document, Way

TOP = Path(__file__).parents[2]
_LEFT_OUT = ("build", ".venv", ".git", ".github", "node_modules")


class Step(NamedTuple):
    """A command that is typed, or a block of Python that is run.

    ``text`` is as the document has it, ``script`` what is run here.
    """

    path: str
    line: int
    text: str
    script: str
    place: str
    way: Way
    shown: str

    @property
    def name(self) -> str:
        return f"{self.path}:{self.line} {self.text.splitlines()[0]}"


def find_documents() -> list[str]:
    """Return every Markdown file there is, in the order in which they are gone through."""
    paths = [path.relative_to(TOP) for path in TOP.rglob("*.md")]
    names = {str(path) for path in paths if not set(path.parts) & set(_LEFT_OUT)} - {CHANGELOG}
    ends = {*FIRST, *LAST}
    return [name for name in (*FIRST, *sorted(names - ends), *LAST) if name in names]


def read_blocks(path: str) -> list[Block]:
    """Return the blocks of a document.

    :raises ValueError: If one has no end.
    """
    try:
        return find_blocks((TOP / path).read_text(encoding="utf-8"))
    except ValueError as exc:
        raise ValueError(f"{path}: {exc}") from exc


def find_files(path: str) -> dict[str, str]:
    """Return the files that blocks of a document are, by the name in their first line."""
    blocks = [block for block in read_blocks(path) if block.language not in SHELL]
    return {block.file_name: f"{block.text}\n" for block in blocks if block.file_name}


def plan_all() -> list[Step]:
    return [step for path in find_documents() for step in plan_document(path)]


def plan_document(path: str) -> list[Step]:
    """Return the steps of a document in the order of its lines.

    :raises ValueError: If nothing is known of a word such as FILE.
    """
    document = DOCUMENTS.get(path, Document())
    found: list[Command | Block] = list(find_spans((TOP / path).read_text("utf-8"), PROGRAMS))
    for block in read_blocks(path):
        if block.language in SHELL:
            found += find_commands(block)
        elif block.language == "python" and not block.file_name:
            found.append(block)
    return [
        step
        for item in sorted(found, key=lambda item: item.line)
        for step in _plan_item(path, document, item)
    ]


def _plan_item(path: str, document: Document, item: Command | Block) -> Iterator[Step]:
    if isinstance(item, Block):
        yield _plan_python(path, document, item)
        return
    values = {**VALUES, **document.values}
    for text in expand_options(" ".join(item.text.split()) if item.is_span else item.text):
        key = name_command(text)
        way = document.ways.get(key) or find_stand_in(key) or Way()
        try:
            script = fill(way.instead or text, values) if way.runs else ""
        except ValueError as exc:
            raise ValueError(f"{path}:{item.line}: {exc}") from exc
        place = way.place or PROGRAMS.get(item.program, document.place)
        yield Step(path, item.line, key, script, place, way, item.shown)


def name_command(text: str) -> str:
    """Return a command on one line, as the table of documents names it."""
    return " ".join(text.replace("\\\n", " ").split())


def _plan_python(path: str, document: Document, block: Block) -> Step:
    script = f"python3 - <<'END_OF_BLOCK'\n{document.preamble}\n{block.text}\nEND_OF_BLOCK"
    text = f"a block of {len(block.text.splitlines())} lines"
    return Step(path, block.line, text, script, document.python, Way(), "")


def find_stand_in(command: str) -> Way | None:
    """Return what shows that a command of ours would start, where it runs too long to be run."""
    target = re.fullmatch(r"make ([\w-]+)", command)
    if target:
        return Way(instead=f"make -n {target[1]}", reason="a target, which is there")
    if re.match(r"pytest tests/", command):
        return Way(instead=f"{command} --collect-only", reason="tests, which are collected")
    module = re.match(r"python3? -m (tests\.(?!host\b)[\w.]+)", command)
    if module is None:
        return None
    options = re.findall(r" (--[\w-]+)", command)
    source = f"python3 -m {module[1]} --help" if options else f"python3 -c 'import {module[1]}'"
    return Way(instead=source, reason="a program, which knows these options", prints=tuple(options))
