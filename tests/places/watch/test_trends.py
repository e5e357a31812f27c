# SPDX-License-Identifier: GPL-3.0-or-later
"""How a limit is followed over minutes: since when it grows, when it is full, when that is told."""

from __future__ import annotations

import pytest
from mlhost_limits.watch.trends import History, Level, Trend
from mlhost_limits.why.reasons import MAPPINGS, MEMLOCK, NOFILE, SHM


def follow(*steps: tuple[float, int], limit: int = 1000, code: str = NOFILE) -> Trend:
    first, *others = (
        (now, Level(code, used, limit, "process 1 (x)", 1, code)) for now, used in steps
    )
    trend = Trend(first[1], first[0])
    for now, level in others:
        trend.follow(level, now)
    return trend


@pytest.mark.parametrize(
    ("code", "limit", "used", "full"),
    [
        (NOFILE, 1000, 989, False),
        (NOFILE, 1000, 990, True),
        (NOFILE, 64, 61, False),
        (NOFILE, 64, 62, True),
        (NOFILE, 2, 0, True),
        (MEMLOCK, 65536, 62000, False),
        (MEMLOCK, 65536, 62300, True),
        (MEMLOCK, 1000, 949, False),
        (MEMLOCK, 1000, 950, True),
        (SHM, 1000, 969, False),
        (SHM, 1000, 970, True),
        (MAPPINGS, 1000, 979, False),
        (MAPPINGS, 1000, 980, True),
        ("fsize", 1000, 989, False),
        ("fsize", 1000, 990, True),
    ],
)
def test_a_limit_is_full_where_one_thing_more_may_not_fit(
    code: str, limit: int, used: int, full: bool
) -> None:
    assert Level(code, used, limit, "x").is_full is full


@pytest.mark.parametrize(
    ("steps", "since", "left"),
    [
        ([(0, 500), (10, 500), (20, 500)], None, None),
        ([(0, 500), (10, 600), (20, 700)], 0, 30),
        ([(0, 900), (10, 100), (20, 200)], 10, 80),
        # A little less in between, as when garbage is collected, is no end of a rise.
        ([(0, 500), (10, 600), (20, 595), (30, 700)], 0, 45),
        ([(0, 500), (10, 505), (20, 509)], None, None),
        ([(0, 700), (10, 400), (20, 100)], None, None),
        # Less by a twentieth is no fall yet, and of two lows the first one counts.
        ([(0, 100), (10, 1000), (20, 950)], 0, 50 / (850 / 20)),
        ([(0, 500), (10, 520), (20, 500), (30, 600)], 0, 120),
        # A fiftieth of the limit is a rise.
        ([(0, 500), (10, 520)], 0, 240),
        # So close to each other, only the first point is kept.
        ([(0, 500), (0.01, 600)], 0, 0.04),
        ([(0, 500), (10, 600), (10.01, 550)], None, None),
        ([(0, 500), (10, 100), (10.01, 200)], 10, 0.08),
        ([(0, 500), (0, 600)], 0, None),
        # It stands, or goes down, since a minute; or it has more than it may.
        ([(0, 100), (10, 900), (80, 890)], 0, None),
        ([(0, 500), (10, 1100)], 0, 0),
    ],
)
def test_a_rise_begins_after_the_last_fall(
    steps: list[tuple[float, int]], since: float | None, left: float | None
) -> None:
    trend = follow(*steps)
    assert trend.since == since
    assert trend.left == (None if left is None else pytest.approx(left))


def test_one_thing_more_is_a_rise_of_a_small_limit() -> None:
    assert follow((0, 5), (10, 6), limit=10).since == 0
    assert follow((0, 10), (10, 10), limit=10).since is None


def test_most_was_taken_when_it_was_seen_last() -> None:
    assert follow((0, 500), (10, 900), (20, 900), (30, 700)).peak_at == 20


def test_only_the_last_minute_counts_for_what_is_left() -> None:
    trend = follow(*((float(second), 100 + second) for second in range(0, 300, 10)), (310, 880))
    assert trend.left is not None
    assert trend.left < 15


def test_when_most_was_taken_it_had_grown_since() -> None:
    trend = follow((0, 10), (10, 500), (20, 1000), (21, 4))
    assert trend.since is None
    assert trend.grew_since == 0
    assert trend.peak.used == 1000


def test_full_counts_from_its_beginning_and_anew_after_a_while() -> None:
    assert follow((0, 10), (5, 1000), (8, 1000)).full_at == 5
    assert follow((0, 10), (5, 1000), (6, 4)).full_at == 5
    assert follow((0, 1000), (6, 4), (20, 1000)).full_at == 20
    assert follow((10, 1000), (12, 4), (14, 1000)).full_at == 10
    assert follow((0, 1000), (2, 4), (5, 1000)).full_at == 0


def test_a_limit_that_was_raised_begins_anew() -> None:
    trend = follow((0, 500), (5, 1000))
    trend.follow(Level(NOFILE, 1000, 4000, "process 1 (x)", 1, NOFILE), 6)
    assert trend.full_at is None
    assert trend.since is None


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        ([(0, 100), (60, 700)], False),
        ([(0, 100), (60, 810)], True),
        ([(0, 810), (60, 810)], False),  # It stands.
        ([(0, 800), (60, 790)], False),
        ([(0, 780), (3000, 801)], False),  # That takes hours.
        ([(0, 700), (900, 810)], True),
        ([(0, 100), (60, 800)], True),
        ([(0, 799), (3600, 899)], False),
        ([(0, 800), (3600, 900)], True),  # An hour.
        ([(0, 760), (10, 810)], True),
        ([(0, 761), (10, 810)], False),  # That is how it goes up and down.
    ],
)
def test_what_grows_and_is_near_is_told(steps: list[tuple[float, int]], told: bool) -> None:
    assert follow(*steps).must_tell() is told


def test_it_is_told_once_until_it_is_far_again() -> None:
    trend = follow((0, 100), (60, 810))
    assert [trend.must_tell(), trend.must_tell()] == [True, False]
    for now, used in ((70, 600), (80, 850)):
        trend.follow(Level(NOFILE, used, 1000, "process 1 (x)", 1, NOFILE), now)
        told = trend.must_tell()
    assert told


def test_a_limit_of_which_seven_tenths_stay_taken_is_not_told_again() -> None:
    trend = follow((0, 100), (60, 810))
    assert trend.must_tell()
    for now, used in ((70, 700), (80, 850)):
        trend.follow(Level(NOFILE, used, 1000, "process 1 (x)", 1, NOFILE), now)
        assert not trend.must_tell()


def test_points_are_kept_twice_as_far_apart_where_they_grow_too_many() -> None:
    steps = [(number * 0.03125, number) for number in range(61)]
    assert len(follow(*steps[:60]).points) == 60
    trend = follow(*steps)
    assert trend.points == steps[::2]
    for number in range(61, 65):
        level = Level(NOFILE, number, 1000, "process 1 (x)", 1, NOFILE)
        trend.follow(level, number * 0.03125)
    assert trend.points[-2:] == [(62 * 0.03125, 62), (64 * 0.03125, 64)]


def test_of_a_long_run_the_ring_stays_small() -> None:
    trend = follow(*((second / 10, second % 900) for second in range(20000)))
    assert len(trend.points) <= 60
    assert trend.points[-1][0] - trend.points[0][0] > 250
    assert trend.points[0][0] > 1000


def test_a_history_forgets_who_ended_long_ago() -> None:
    history = History()
    history.follow(Level(NOFILE, 600, 1000, "process 1 (x)", 1), 0.0)
    history.follow(Level(NOFILE, 700, 1000, "process 2 (y)", 2), 500.0)
    history.forget(650.0, 600.0)
    assert [one.level.pid for one in history.list_near()] == [2]


def test_what_has_been_full_for_long_is_not_full_anew_however_seldom_anybody_looks() -> None:
    full = Level("shm-size", 100, 100, "/dev/shm")
    trend = Trend(full, 0.0)
    for at in range(10, 100, 10):
        trend.follow(full, float(at))
    assert trend.full_at == 0.0
    trend.follow(full._replace(used=10), 100.0)
    trend.follow(full, 110.0)
    assert trend.full_at == 110.0


def test_what_goes_up_and_down_near_its_limit_is_no_alarm() -> None:
    """As a user with 185 to 189 of 200 tasks."""
    trend = Trend(Level("nproc", 185, 200, "user 7"), 0.0)
    for step in range(1, 400):
        trend.follow(Level("nproc", 185 + step % 5, 200, "user 7"), step * 0.05)
        assert not trend.must_tell()
    for step in range(12):
        trend.follow(Level("nproc", 188 + step, 200, "user 7"), 20.0 + step)
    assert trend.must_tell()


def look(history: History, *levels: tuple[int, int]) -> None:
    for pid, used in levels:
        history.follow(Level(NOFILE, used, 1000, f"process {pid} (x)", pid), 0.0)


def test_a_closer_look_is_for_what_lives_and_has_three_tenths_of_its_limit() -> None:
    history = History()
    look(history, (1, 300), (2, 299), (3, 600), (4, 600))
    look(history, (3, 200))
    history.end(4)
    assert [one.level.pid for one in history.near] == [1]
    history.forget(700.0, 600.0)
    assert history.near == []


def test_of_a_process_that_has_ended_what_was_half_full_is_kept() -> None:
    history = History()
    look(history, (1, 500), (2, 499))
    history.end(1)
    history.end(2)
    history.end(2)
    assert [one.level.pid for one in history.trends.values()] == [1]
    assert [one.level.pid for one in history.list_near()] == [1]


def test_what_is_forgotten_is_not_missed_when_its_process_ends() -> None:
    history = History()
    look(history, (1, 100))
    history.follow(Level(MEMLOCK, 600, 1000, "process 1 (x)", 1), 500.0)
    history.forget(600.0, 600.0)
    assert len(history.trends) == 2
    history.forget(601.0, 600.0)
    history.end(1)
    assert [one.level.code for one in history.trends.values()] == [MEMLOCK]


def test_the_first_limit_that_will_be_full_is_the_soonest() -> None:
    history = History()
    assert history.find_soonest() is None
    look(history, (1, 400), (2, 400), (3, 400))
    for pid, used in ((1, 500), (2, 600), (3, 400)):
        history.follow(Level(NOFILE, used, 1000, f"process {pid} (x)", pid), 10.0)
    assert history.find_soonest() == pytest.approx(20.0)


@pytest.mark.parametrize(("second", "points"), [(0.019, 1), (0.02, 2), (0.021, 2)])
def test_two_points_are_a_fiftieth_of_a_second_apart(second: float, points: int) -> None:
    assert len(follow((0, 500), (second, 600)).points) == points
    assert len(follow((0, 500), (second, 500)).points) == 1
