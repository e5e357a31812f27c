# SPDX-License-Identifier: GPL-3.0-or-later
"""README tells the figures that the benchmark measured, and no others."""

from __future__ import annotations

from tests.bench.readme import BEGIN, END, README, format_section


def test_the_table_of_figures_is_what_was_measured() -> None:
    told = README.read_text().partition(BEGIN)[2].partition(END)[0]
    assert told == format_section()
