# SPDX-License-Identifier: GPL-3.0-or-later
"""What people and programs are told of a run that was watched."""

from __future__ import annotations

from typing import Any

import pytest
from mlhost_limits.watch.report import Watched, format_left
from mlhost_limits.watch.trends import End, Level, Rise, Trend
from mlhost_limits.watch.verdict import Seen, judge
from mlhost_limits.why.reasons import MEMLOCK, NOFILE


def watched(status: int | None, *used: int, looks: int = 9, **more: Any) -> Watched:
    """Return a run of 50 s, of which the open files were looked at every 10 s."""
    levels = [Level(NOFILE, one, 1000, "x", 7, NOFILE) for one in used]
    trends = [Trend(levels[0], 10.0)] if levels else []
    for number, level in enumerate(levels[1:], 2):
        trends[0].follow(level, number * 10.0)
    seen = Seen(10.0, End(60.0, 7, "python3", (), status), looks=looks, kills=0, trends=trends)
    seen = seen._replace(**more)
    return Watched(seen, *judge(seen), "train", 0, "0::/", lambda at: f"at {at:g}")


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(90, "2 min"), (89, "89 s"), (1, "1 s"), (0.9, "less than 1 s")],
)
def test_a_time_is_told_in_minutes_or_seconds(seconds: float, told: str) -> None:
    assert format_left(seconds) == told


@pytest.mark.parametrize(
    ("run", "lines"),
    [
        (watched(3 << 8), ["train ended with status 3 after 50 s", "no limit was near"]),
        (watched(11), ["train was ended by signal 11 after 50 s", "no limit: a bug ended it: "]),
        (watched(3 << 8, 800, 800, 800, 800, 800),
         ["train ended with status 3 after 50 s", "no limit is known to have ended it"]),
        (watched(3 << 8, 799, 799, 799, 799, 799),
         ["train ended with status 3 after 50 s", "no limit was near"]),
        (watched(3 << 8, looks=0), ["train ended with status 3 after 50 s",
                                    "unknown: it ended before anybody could look at it"]),
        (watched(1 << 8, 500, 900, 950, 990, 1000), ["train ended with status 1 after 50 s", "FIX"]),
    ],
)  # fmt: skip
def test_a_report_begins_with_the_end_and_what_is_known_of_it(
    run: Watched, lines: list[str]
) -> None:
    told = run.format_brief(["FIX"])
    assert len(told) > 2
    assert all(line.startswith(start) for line, start in zip(told, lines)), told


def test_what_grew_is_told_with_the_time_since_when() -> None:
    told = watched(1 << 8, 500, 600, 900, 950, 1000).format_brief([])
    assert told[-1].endswith(" seen x had 1000 of 1000 (nofile, 100%), it grew since at 10")
    told = watched(1 << 8, 900, 900, 900, 900, 900).format_brief([])
    assert told[-1].endswith(" seen x had 900 of 1000 (nofile, 90%)")


def test_of_many_limits_and_counters_the_first_and_the_last_four_are_told() -> None:
    near = [Trend(Level(MEMLOCK, 900, 1000, f"who{one}"), 0.0) for one in range(6)]
    rises = [Rise(float(one), "/file", one) for one in range(6)]
    told = watched(1 << 8, trends=near, rises=rises).format_brief([])
    whole = " ".join(told)
    assert [one for one in range(6) if f"who{one} had" in " ".join(told[2:])] == [0, 1, 2, 3]
    assert [one for one in range(6) if f"counted {one}" in whole] == [2, 3, 4, 5]


def test_a_limit_is_told_to_programs_with_the_points_before_the_end() -> None:
    plain = watched(1 << 8, 500, 600, 700, 800, 912).as_dict()
    (level,) = plain["limits"]
    assert level["percent"] == 91.2
    assert level["grew_since"] == "at 10"
    assert level["seconds_left"] == 8.5
    assert level["points"] == [[-50, 500], [-40, 600], [-30, 700], [-20, 800], [-10, 912]]
    plain = watched(1 << 8, 900, 900).as_dict()
    (level,) = plain["limits"]
    assert (level["grew_since"], level["seconds_left"]) == (None, None)
    (level,) = watched(9, trends=[Trend(Level(NOFILE, 1, 3, "x"), 10.126)]).as_dict()["limits"]
    assert (level["percent"], level["points"]) == (33.3, [[-49.87, 1]])


@pytest.mark.parametrize(
    ("status", "told"), [(None, (None, None)), (3 << 8, (3, None)), (9, (None, 9)), (0, (0, None))]
)
def test_an_end_has_a_status_or_a_signal(status: int | None, told: tuple[int | None, ...]) -> None:
    end = watched(status).as_dict()["end"]
    assert isinstance(end, dict)
    assert (end["status"], end["signal"]) == told


def test_of_many_ends_events_and_limits_the_report_has_32_and_60_points() -> None:
    near = [Trend(Level(MEMLOCK, 900, 1000, f"who{one}"), 0.0) for one in range(40)]
    rises = [Rise(float(one), "/file", one) for one in range(40)]
    ends = [End(59.0, one, "rank", (), 256) for one in range(100, 140)]
    plain = watched(1 << 8, trends=near, rises=rises, ends=ends).as_dict()
    sizes = [len(plain[key]) for key in ("limits", "events", "ended")]
    assert sizes == [32, 32, 32]
    run = watched(1 << 8, *range(100, 160), looks=9)
    (level,) = run.as_dict()["limits"]
    assert len(level["points"]) == 60
    assert run.as_dict()["version"] == 1
