# SPDX-License-Identifier: GPL-3.0-or-later
"""Of a long file nothing is left out that decides anything."""

from __future__ import annotations

import pytest
from mlhost_limits.systemd.limits import Statement, read_unit_limits
from mlhost_limits.systemd.model import Files
from mlhost_limits.systemd.unit_file import Source
from mlhost_limits.systemd.unread import leave_out_beaten

PATH = "/etc/systemd/system/a.service"
ENOUGH = "LimitNOFILE=65536\n"


def read(text: str) -> list[Statement]:
    statements: list[Statement] = read_unit_limits("service", Source(PATH, text), []).statements
    return statements


def thin(text: str) -> str:
    main = leave_out_beaten(Files(Source(PATH, text))).main
    assert main is not None
    return str(main.text)


def test_the_last_fifty_stay_in_their_lines() -> None:
    text = "[Service]\n" + "".join(f"LimitNOFILE={1000 + number}\n" for number in range(200))
    assert read(thin(text)) == read(text)[-50:]
    assert len(thin(text)) < len(text) / 2


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("", ENOUGH * 40, id="few lines follow"),
        pytest.param("", "LimitNOFILE=64k9\n" * 200, id="systemd ignores what follows"),
        pytest.param("", "[Unit]\n" + ENOUGH * 200, id="another section follows"),
        pytest.param("", "LimitCORE=0\n" * 200, id="another key follows"),
        pytest.param("ExecStart=/bin/true \\\n", ENOUGH * 40, id="a continued line precedes"),
        pytest.param("LimitNOFILE=1 \\\n", " 2\n" + ENOUGH * 40, id="is part of a line"),
    ],
)
def test_a_line_that_may_count_stays(before: str, after: str) -> None:
    text = f"[Service]\n{before}LimitNOFILE=4096\n{after}"
    kept = thin(text)
    assert kept.split("\n")[: 3 if before else 2] == text.split("\n")[: 3 if before else 2]
    assert read(kept)[:1] == read(text)[:1]


def test_a_continued_line_is_left_whole() -> None:
    text = "[Service]\nLimitNOFILE=\\\n4096\n" + ENOUGH * 60
    assert thin(text).startswith("[Service]\nLimitNOFILE=\\\n4096\n")


@pytest.mark.parametrize(
    ("rows", "gone"),
    [
        (["LimitNOFILE=5"] * 50, 0),
        (["LimitNOFILE=5"] * 52, 2),
        (["LimitNOFILE=many", *["LimitNOFILE=5"] * 50], 1),
        (["LimitNOFILE=5", *["LimitNOFILE=5", "LimitNPROC=5"] * 25], 0),
        (["Nice=5"] * 60, 0),
    ],
)
def test_every_file_loses_what_fifty_later_lines_beat(rows: list[str], gone: int) -> None:
    source = Source(PATH, "\n".join(["[Service]", *rows]))
    left = Source(PATH, "\n".join(["[Service]", *[""] * gone, *rows[gone:]]))
    files = leave_out_beaten(Files(source, (source,), source, (source,)))
    assert files == Files(left, (left,), left, (left,))
    assert leave_out_beaten(Files(None)) == Files(None)
