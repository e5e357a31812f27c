# SPDX-License-Identifier: GPL-3.0-or-later
"""A table of docs/supported.md takes new rows and keeps what a run did not look at."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.releases.table import update_table

PAGE = "text\n<!-- x -->\n{}<!-- /x -->\nmore\n"
FIRST = "| a | b |\n| --- | --- |\n| one | passed |\n"
SUPPORTED = Path(__file__).parents[2] / "docs" / "supported.md"


def test_an_empty_table_gets_its_columns_from_the_row() -> None:
    assert update_table(PAGE.format(""), "x", [{"a": "one", "b": "passed"}]) == PAGE.format(FIRST)


def test_a_row_is_replaced_where_it_stands_and_keeps_other_cells() -> None:
    page = update_table(PAGE.format(FIRST), "x", [{"a": "two", "b": "failed"}])
    page = update_table(page, "x", [{"a": "one", "c": "passed"}])
    assert page == PAGE.format(
        "| a | b | c |\n| --- | --- | --- |\n"
        "| one | passed | passed |\n| two | failed | not run |\n"
    )
    again = update_table(page, "x", [{"a": "one", "b": "failed"}])
    assert "| one | failed | passed |\n| two | failed | not run |" in again


def test_a_page_without_a_place_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^the page has no place for a table 'y'$"):
        update_table(PAGE, "y", [])


@pytest.mark.parametrize("name", ["releases", "controllers"])
def test_the_page_is_as_a_run_leaves_it(name: str) -> None:
    """A row without a change changes nothing, so nobody edited the tables by hand amiss."""
    page = SUPPORTED.read_text()
    assert update_table(page, name, []) == page
