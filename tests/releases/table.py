# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep a table of a Markdown page: rows of a run replace those of the same first cell."""

from __future__ import annotations

from collections.abc import Mapping

NOT_RUN = "not run"


def update_table(page: str, name: str, rows: list[Mapping[str, str]]) -> str:
    """Return a page with new rows between ``<!-- NAME -->`` and ``<!-- /NAME -->``.

    A row that is there keeps the cells that the new one does not have. Its place stays as well.

    :param rows: Cells by the name of their column; the first column says what the row is about.
    :raises ValueError: If the page has no such place.
    """
    before, table, after = split_page(page, name)
    known = {row[0]: row[1] for row in map(_name_row, _read_table(table))}
    for key, row in map(_name_row, rows):
        known[key] = {**known.get(key, {}), **row}
    return f"{before}{_format_table(list(known.values()))}{after}"


def split_page(page: str, name: str) -> tuple[str, str, str]:
    """Return what a page has up to ``<!-- NAME -->``, from there to ``<!-- /NAME -->``, and after.

    :raises ValueError: If the page has no such place.
    """
    opening, closing = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    before, found, rest = page.partition(opening)
    inside, ended, after = rest.partition(closing)
    if not (found and ended):
        raise ValueError(f"the page has no place for a table {name!r}")
    return before + opening, inside, closing + after


def _name_row(row: Mapping[str, str]) -> tuple[str, Mapping[str, str]]:
    return next(iter(row.values())), row


def _read_table(text: str) -> list[Mapping[str, str]]:
    lines = [line.strip(" |").split(" | ") for line in text.splitlines() if line.startswith("|")]
    return [dict(zip(lines[0], cells, strict=True)) for cells in lines[2:]]


def _format_table(rows: list[Mapping[str, str]]) -> str:
    columns = list(dict.fromkeys(column for row in rows for column in row))
    cells = [columns, ["---"] * len(columns)]
    cells += [[row.get(column, NOT_RUN) for column in columns] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in cells)
