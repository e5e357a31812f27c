# SPDX-License-Identifier: GPL-3.0-or-later
"""When a limit is told, when the next look comes, and what is said."""

from __future__ import annotations

import pytest
from mlhost_limits.training.guard_levels import KINDS, SHM, Level, Trend, choose_rest, describe

GIB = 2**30


def level(used: int, limit: int = 1000, name: str = "descriptors") -> Level:
    return Level(name, used, limit, "RLIMIT_NOFILE")


def follow(*steps: tuple[float, int]) -> tuple[list[bool], Trend]:
    trend = Trend()
    return [trend.follow(level(used), now, 0.8) for now, used in steps], trend


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        ([(0, 799)], [False]),
        ([(0, 800)], [True]),
        ([(0, 800), (1, 900), (2, 999)], [True, False, False]),
        ([(0, 800), (1, 721), (2, 800)], [True, False, False]),
        ([(0, 800), (1, 719), (2, 800)], [True, False, True]),
        # What was gained in the last hundredth of a second would fill it.
        ([(0, 0), (0.01, 510)], [False, True]),
        ([(0, 0), (0.01, 490)], [False, False]),
        ([(0, 0), (0.001, 510)], [False, False]),
    ],
)
def test_a_limit_is_told_once_for_each_crossing(
    steps: list[tuple[float, int]], told: list[bool]
) -> None:
    assert follow(*steps)[0] == told


def test_a_rate_is_seen_at_once_and_forgotten_slowly() -> None:
    trend = follow((0, 0), (1, 100), (2, 100), (3, 100))[1]
    assert trend.rate == 25
    assert follow((0, 100), (1, 0))[1].rate == 0


@pytest.mark.parametrize("name", sorted(KINDS))
@pytest.mark.parametrize("used", [0, 100, 500, 790])
@pytest.mark.parametrize("rate", [0, 10, 1000, 50000])
def test_the_next_look_comes_before_the_forecast_and_costs_its_share(
    name: str, used: int, rate: int
) -> None:
    cost, share = 1e-4, 1e-3
    trend = Trend()
    trend.follow(level(used, name=name), 0, 0.8)
    trend.rate = rate
    rest = choose_rest([trend], 0.8, cost, share)
    assert rest >= 10 * cost
    if rate:
        assert rest <= max((800 - used) / rate / 4, 10 * cost)
    else:
        assert cost / share <= rest <= 1


def test_what_is_far_away_is_looked_at_once_a_second() -> None:
    far, told = Trend(), Trend()
    far.follow(level(5, 2**20), 0, 0.8)
    told.follow(level(999), 0, 0.8)
    assert choose_rest([far, told], 0.8, 1e-4, 1e-3) == (0.8 * 2**20 - 5) / 5e5 / 2
    assert choose_rest([told], 0.8, 1e-4, 1e-3) == 1
    assert choose_rest([], 0.8, 1e-2, 1e-3) == 10


@pytest.mark.parametrize(("cost", "rest"), [(0.02, 0.2), (1e-3, 0.01), (1e-5, 1e-3)])
def test_a_rise_takes_a_tenth_of_a_core_at_most(cost: float, rest: float) -> None:
    """However fast it is; and a millisecond lies between two looks."""
    trend = Trend()
    trend.follow(level(500), 0, 0.8)
    trend.rate = 1e9
    assert choose_rest([trend], 0.8, cost, 1e-3) == rest


@pytest.mark.parametrize(
    ("seen", "rate", "text"),
    [
        (
            Level("descriptors", 820, 1024, "RLIMIT_NOFILE"),
            1000.0,
            "descriptors: 820 of 1024 are used (80 %, limit RLIMIT_NOFILE), full in 0.2 s at this"
            ' rate, and then the next open fails with "Too many open files": close files or use'
            " fewer workers, or raise the limit (ulimit -n, LimitNOFILE=, --ulimit nofile)",
        ),
        (
            Level("memory", 13 * GIB, 16 * GIB, "/sys/fs/cgroup/a/memory.max"),
            0.0,
            "memory: 13.0 GiB of 16.0 GiB are used (81 %, limit /sys/fs/cgroup/a/memory.max), and"
            " then the kernel kills a process (exit -9): use fewer workers or a smaller batch, or"
            " raise the limit (MemoryMax=, --memory)",
        ),
        (
            Level("memory", 13 * GIB, 16 * GIB, "/sys/fs/cgroup/a/memory.high"),
            0.0,
            "memory: 13.0 GiB of 16.0 GiB are used (81 %, limit /sys/fs/cgroup/a/memory.high), and"
            " then the kernel slows every process down: use fewer workers or a smaller batch, or"
            " raise the limit (MemoryHigh=)",
        ),
        (
            Level("tasks", 2000, 2048, "/sys/fs/cgroup/pids.max"),
            0.1,
            "tasks: 2000 of 2048 are used (97 %, limit /sys/fs/cgroup/pids.max), and then the next"
            ' worker or thread fails with "Resource temporarily unavailable": start fewer workers or'
            " threads, or raise the limit (TasksMax=, --pids-limit)",
        ),
        (
            Level(SHM, 60 * 2**20, 64 * 2**20, SHM),
            0.0,
            "/dev/shm: 60.0 MiB of 64.0 MiB are used (93 %, limit /dev/shm), and then a worker ends"
            " with a bus error: use fewer workers, a smaller batch or less prefetch, or raise the"
            " limit (--shm-size, mount -o remount,size=)",
        ),
    ],
)
def test_the_sentence_names_the_limit_and_the_fix(seen: Level, rate: float, text: str) -> None:
    assert describe(seen, rate) == text


@pytest.mark.parametrize(
    "where",
    [
        *("RLIMIT_NOFILE", "RLIMIT_NPROC", "RLIMIT_AS", "vm.max_map_count", "kernel.threads-max"),
        *("kernel.pid_max", "/a/pids.max", "/a/memory.max", "/a/memory.high"),
        "/a/memory.limit_in_bytes",
    ],
)
def test_every_limit_that_is_read_has_a_way_to_raise_it(where: str) -> None:
    assert ", or raise the limit (" in describe(Level("tasks", 9, 10, where))


def test_a_limit_that_was_raised_needs_no_fix() -> None:
    text = describe(level(820, 1024), 9.0, [("pipe", 700), ("socket", 9)], 4096)
    assert text == (
        "descriptors: 820 of 1024 are used (80 %, limit RLIMIT_NOFILE), most are 700 pipe,"
        " 9 socket; the soft limit is raised to 4096"
    )


def test_a_look_that_began_before_the_last_one_undoes_nothing() -> None:
    told, trend = follow((2, 100), (1, 900))
    assert (told, trend.level) == ([False, False], level(100))
    assert follow((1, 100), (1, 900))[0] == [False, True]


def test_a_limit_that_was_raised_is_told_again() -> None:
    trend = Trend()
    trend.rearm(7)
    assert (trend.level, trend.find_left(0.8)) == (None, float("inf"))
    assert trend.follow(level(900), 0, 0.8)
    assert trend.find_left(0.8) == float("inf")
    trend.rearm(2000)
    assert trend.level == level(900, 2000)
    assert trend.find_left(0.8) == 700
    assert not trend.follow(level(1500, 2000), 60, 0.8)
    assert trend.follow(level(1600, 2000), 120, 0.8)


@pytest.mark.parametrize(
    ("name", "used"),
    [
        *(("descriptors", "4096 of 8192"), ("mappings", "4096 of 8192"), ("tasks", "4096 of 8192")),
        *(("memory", "4.0 KiB of 8.0 KiB"), ("address space", "4.0 KiB of 8.0 KiB")),
    ],
)
def test_bytes_are_told_with_their_unit(name: str, used: str) -> None:
    text = describe(Level(name, 4096, 8192, "RLIMIT_AS"))
    assert text.startswith(f"{name}: {used} are used (50 %")


@pytest.mark.parametrize(
    ("used", "limit", "rate", "told"),
    [
        (400, 1000, 10.0, ""),
        (401, 1000, 10.0, ", full in 60 s at this rate"),
        (1000, 1000, 10.0, ", full in 0 s at this rate"),
        (1100, 1000, 10.0, ", full in 0 s at this rate"),
        (400, 1000, 0.0, ""),
    ],
)
def test_when_a_limit_is_full_is_told_a_minute_ahead(
    used: int, limit: int, rate: float, told: str
) -> None:
    assert f"RLIMIT_NOFILE){told}, and then" in describe(level(used, limit), rate)


def test_a_limit_of_nothing_has_a_share_too() -> None:
    assert "0 of 0 are used (0 %" in describe(level(0, 0))
    assert "2 of 0 are used (200 %" in describe(level(2, 0))
