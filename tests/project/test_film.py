# SPDX-License-Identifier: GPL-3.0-or-later
"""The film in the documentation is what was recorded, and stays small."""

from __future__ import annotations

import json
from xml.etree import ElementTree

from tests.film import CAST, FILM, LAST_WAIT, LONGEST_WAIT, draw


def test_the_film_is_of_the_recording() -> None:
    assert FILM.read_text() == draw(CAST.read_text())
    assert FILM.stat().st_size < 500_000


def test_a_line_is_text_and_no_markup_and_nobody_waits_long() -> None:
    events = [[0.5, "o", "FAIL <a> & b\n"], [100.0, "o", "\n"], [100.0, "o", "  ok\n"]]
    film = draw("\n".join(map(json.dumps, [{"version": 2}, *events])))
    rows = [row for row in ElementTree.fromstring(film).iter() if row.tag.endswith("}text")]
    assert [row.text for row in rows] == ["FAIL <a> & b", "  ok"]
    assert f"scroll {LONGEST_WAIT + 0.09 + LAST_WAIT:g}s" in film
