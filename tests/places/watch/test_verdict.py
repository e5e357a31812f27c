# SPDX-License-Identifier: GPL-3.0-or-later
"""What ended a run: a limit is blamed only where it was reached just before such an end."""

from __future__ import annotations

from typing import Any

import pytest
from mlhost_limits.watch.trends import CPU, End, Level, Rise, Trend
from mlhost_limits.watch.verdict import Seen, find_signal, judge
from mlhost_limits.why.kills import Line
from mlhost_limits.why.reasons import CGROUP, MAPPINGS, NOFILE, SHM, SPACE
from mlhost_limits.why.verdict import POSSIBLE, SHOWN

GROUP = "/sys/fs/cgroup/train"
OTHER = "/sys/fs/cgroup/other"
EXIT_1, EXIT_137 = 1 << 8, 137 << 8
AT = 100.0
OOM = (
    "oom-kill:constraint={0},nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/train,"
    "task_memcg=/train,task=python3,pid={1},uid=0"
)


def end(status: int | None, pid: int = 7, at: float = AT, **more: Any) -> End:
    return End(at, pid, "python3", (GROUP, "/sys/fs/cgroup"), status, **more)


def trend(code: str, *steps: tuple[float, int], limit: int = 1000, **more: Any) -> Trend:
    levels = [
        (at, Level(code, used, limit, more.get("who", "x"), more.get("pid", 7), code))
        for at, used in steps
    ]
    made = Trend(levels[0][1], levels[0][0])
    for at, level in levels[1:]:
        made.follow(level, at)
    return made


def ask(status: int, **more: Any) -> tuple[str, str]:
    seen = Seen(0.0, more.pop("end", end(status)), looks=9, **{"kills": 0, **more})
    verdict, _blame = judge(seen)
    return verdict.reason.code, verdict.sure


CLIMBED = trend(NOFILE, (90, 500), (98, 900), (99, 1000))
FULL_LONG = trend(NOFILE, (20, 500), (60, 1000), *((at, 1000) for at in range(61, 100)))


@pytest.mark.parametrize(
    ("status", "more", "told"),
    [
        (EXIT_1, {"trends": [CLIMBED]}, ("nofile", SHOWN)),
        (6, {"trends": [CLIMBED]}, ("nofile", SHOWN)),
        # The same level, and an end that it never makes.
        (9, {"trends": [CLIMBED]}, ("killed-by-hand", SHOWN)),
        (15, {"trends": [CLIMBED]}, ("killed-by-hand", POSSIBLE)),
        (11, {"trends": [CLIMBED]}, ("crash", POSSIBLE)),
        # It lived on with it, or it was long ago, or was only near.
        (EXIT_1, {"trends": [FULL_LONG]}, ("nofile", POSSIBLE)),
        (EXIT_1, {"trends": [trend(NOFILE, (50, 500), (60, 1000), (61, 5), (99, 5))]},
         ("exception", POSSIBLE)),
        (EXIT_1, {"trends": [trend(NOFILE, (80, 500), (93, 1000))]}, ("nofile", SHOWN)),
        (EXIT_1, {"trends": [trend(NOFILE, (80, 500), (93, 1000), (98, 5))]},
         ("nofile", POSSIBLE)),
        (EXIT_1, {"trends": [trend(NOFILE, (50, 500), (99, 950))]}, ("nofile", POSSIBLE)),
        (EXIT_1, {"trends": [trend(NOFILE, (50, 950), (99, 950))]}, ("exception", POSSIBLE)),
        # A busy host looked last long ago, and it was full then; or that is too long ago.
        (EXIT_1, {"trends": [trend(NOFILE, (30, 500), (70, 1000))]}, ("nofile", POSSIBLE)),
        (EXIT_1, {"trends": [trend(NOFILE, (30, 500), (70, 900))]}, ("exception", POSSIBLE)),
        (EXIT_1, {"trends": [trend(NOFILE, (30, 500), (39, 1000))]}, ("exception", POSSIBLE)),
        # Another process had it, and that one lives on.
        (EXIT_1, {"trends": [trend(NOFILE, (90, 500), (99, 1000), pid=8)]},
         ("exception", POSSIBLE)),
        (EXIT_1, {"trends": [trend(SPACE, (90, 500), (99, 960))]}, ("address-space", SHOWN)),
        (7, {"trends": [trend(SHM, (90, 500), (99, 1000), pid=8)]}, ("shm-size", SHOWN)),
        (7, {}, ("crash", SHOWN)),
        (11, {"trends": [trend("stack", (90, 500), (99, 970))]}, ("stack", SHOWN)),
        (11, {"trends": [trend("stack", (90, 500), (99, 700))]}, ("crash", SHOWN)),
        (24, {"trends": [trend(CPU, (90, 500), (99, 900))]}, ("cpu-time", SHOWN)),
        (24, {}, ("killed-by-hand", SHOWN)),
        (25, {"end": end(25, fsize=4096)}, ("fsize", SHOWN)),
        (25, {}, ("killed-by-hand", SHOWN)),
        (9, {"trends": [trend(CPU, (90, 500), (99, 1700), limit=2000)], "end": end(9, cpu=2)},
         ("cpu-time", SHOWN)),
        (9, {"trends": [trend(CPU, (90, 500), (99, 900), limit=2000)], "end": end(9, cpu=2)},
         ("killed-by-hand", SHOWN)),
        # A look comes 400 ms late at most.
        (9, {"trends": [trend(CPU, (90, 500), (99, 1600), limit=2000)], "end": end(9, cpu=2)},
         ("cpu-time", SHOWN)),
        (9, {"trends": [trend(CPU, (90, 500), (99, 1599), limit=2000)], "end": end(9, cpu=2)},
         ("killed-by-hand", SHOWN)),
        (9, {"trends": [trend(CPU, (90, 500), (99, 1700), limit=2000, pid=8)],
             "end": end(9, cpu=2)}, ("killed-by-hand", SHOWN)),
        (24, {"trends": [trend(CPU, (90, 500), (99, 800))]}, ("cpu-time", SHOWN)),
        (24, {"trends": [trend(CPU, (90, 500), (99, 799))]}, ("killed-by-hand", SHOWN)),
        (24, {"trends": [trend(CPU, (90, 500), (99, 900), pid=8)]}, ("killed-by-hand", POSSIBLE)),
        (EXIT_137, {}, ("exception", POSSIBLE)),
        (4, {}, ("crash", SHOWN)),
        (5, {}, ("killed-by-hand", SHOWN)),
        (8, {}, ("crash", SHOWN)),
        # What it was near counts from 80 % on, and a limit that it reached counts before another.
        (EXIT_1, {"trends": [trend(NOFILE, (50, 500), (99, 800))]}, ("nofile", POSSIBLE)),
        (EXIT_1, {"trends": [trend(NOFILE, (50, 500), (99, 799))]}, ("exception", POSSIBLE)),
        (EXIT_1, {"trends": [FULL_LONG, trend(MAPPINGS, (90, 500), (99, 1000))]},
         (MAPPINGS, SHOWN)),
    ],
)  # fmt: skip
def test_what_ended_a_process_by_its_own_limits(
    status: int, more: dict[str, Any], told: tuple[str, str]
) -> None:
    assert ask(status, **more) == told


@pytest.mark.parametrize(
    ("steps", "told"),
    [  # It ended at 100: 10 s after it reached the limit, or 3 s after it had less again.
        ([(80, 500), (90, 1000)], ("nofile", SHOWN)),
        ([(80, 500), (89, 1000)], ("nofile", POSSIBLE)),
        ([(80, 500), (97, 1000), (98, 5)], ("nofile", SHOWN)),
        ([(80, 500), (96, 1000), (98, 5)], ("nofile", POSSIBLE)),
        # Nobody has looked for a minute, and it was full then.
        ([(30, 500), (40, 1000)], ("nofile", POSSIBLE)),
        ([(30, 500), (39, 1000)], ("exception", POSSIBLE)),
        # It was near the limit, and has not been looked at for 10 s.
        ([(50, 500), (90, 950)], ("nofile", POSSIBLE)),
        ([(50, 500), (89, 950)], ("exception", POSSIBLE)),
    ],
)
def test_how_long_before_the_end_a_limit_counts(
    steps: list[tuple[float, int]], told: tuple[str, str]
) -> None:
    assert ask(EXIT_1, trends=[trend(NOFILE, *steps)]) == told


@pytest.mark.parametrize(
    ("log", "told"),
    [
        ([OOM.format("CONSTRAINT_MEMCG", 7)], ("cgroup-memory", SHOWN)),
        ([OOM.format("CONSTRAINT_NONE", 7)], ("host-memory", SHOWN)),
        ([OOM.format("CONSTRAINT_MEMCG", 8)], ("killed-by-hand", POSSIBLE)),
        ([], ("killed-by-hand", POSSIBLE)),
    ],
)
def test_the_kernels_log_names_who_was_killed(log: list[str], told: tuple[str, str]) -> None:
    lines = [Line(0.0, text) for text in log]
    rises = [Rise(AT, f"{GROUP}/memory.events", 1)]
    assert ask(9, kills=1, log=lines, rises=rises) == told


FULL = trend(CGROUP, (90, 500), (99, 980), pid=0, who=GROUP)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"rises": [Rise(AT, f"{GROUP}/memory.events", 1)], "trends": [FULL]},
         ("cgroup-memory", SHOWN)),
        ({"rises": [Rise(AT, f"{GROUP}/memory.events", 1)], "trends": [FULL], "shared": {GROUP}},
         ("cgroup-memory", POSSIBLE)),
        ({"rises": [Rise(AT, f"{GROUP}/memory.events", 1)]}, ("cgroup-memory", POSSIBLE)),
        # It was taken by 80 %, or by less; and 3 seconds before, or more.
        ({"rises": [Rise(AT, f"{GROUP}/memory.events", 1)],
          "trends": [trend(CGROUP, (90, 500), (99, 800), pid=0, who=GROUP)]},
         ("cgroup-memory", SHOWN)),
        ({"rises": [Rise(AT, f"{GROUP}/memory.events", 1)],
          "trends": [trend(CGROUP, (90, 500), (99, 799), pid=0, who=GROUP)]},
         ("cgroup-memory", POSSIBLE)),
        ({"rises": [Rise(97.0, f"{GROUP}/memory.events", 1)]}, ("cgroup-memory", POSSIBLE)),
        ({"rises": [Rise(96.9, f"{GROUP}/memory.events", 1)]}, ("host-memory", POSSIBLE)),
        ({"rises": [Rise(AT, f"{OTHER}/memory.events", 1)], "trends": [FULL]},
         ("host-memory", POSSIBLE)),
        ({"rises": [Rise(50.0, f"{GROUP}/memory.events", 1)], "trends": [FULL]},
         ("host-memory", POSSIBLE)),
    ],
)  # fmt: skip
def test_without_the_log_a_counter_counts_for_a_cgroup_of_the_runs_own(
    more: dict[str, Any], told: tuple[str, str]
) -> None:
    assert ask(9, kills=1, log=None, **more) == told


@pytest.mark.parametrize(
    ("rise", "told"),
    [
        (Rise(98.0, f"{GROUP}/pids.events", 3), ("pids-max", SHOWN)),
        (Rise(95.0, f"{GROUP}/pids.events", 3), ("pids-max", SHOWN)),
        (Rise(94.9, f"{GROUP}/pids.events", 3), ("exception", POSSIBLE)),
        (Rise(98.0, f"{OTHER}/pids.events", 3), ("exception", POSSIBLE)),
        (Rise(98.0, f"{GROUP}/memory.events", 3), ("exception", POSSIBLE)),
    ],
)
def test_refused_tasks_count_just_before_an_error(rise: Rise, told: tuple[str, str]) -> None:
    assert ask(EXIT_1, rises=[rise]) == told
    assert ask(9, rises=[rise]) == ("killed-by-hand", SHOWN)


@pytest.mark.parametrize(
    ("at", "told"),
    [(99.0, ("nofile", SHOWN)), (90.0, ("nofile", POSSIBLE)), (30.0, ("exception", POSSIBLE))],
)
def test_the_first_process_that_ended_at_a_limit_counts_for_a_while(
    at: float, told: tuple[str, str]
) -> None:
    full = trend(NOFILE, (at - 9, 500), (at - 1, 1000), pid=8)
    assert ask(EXIT_1, ends=[end(EXIT_1, 8, at)], trends=[full]) == told


@pytest.mark.parametrize(
    ("at", "sure"), [(99.0, SHOWN), (85.0, SHOWN), (84.9, POSSIBLE), (40.0, POSSIBLE)]
)
def test_a_rank_that_the_kernel_killed_counts_for_longer(at: float, sure: str) -> None:
    log = [Line(0.0, OOM.format("CONSTRAINT_MEMCG", 8))]
    told = ask(EXIT_1, ends=[end(9, 8, at)], kills=1, log=log)
    assert told == ("cgroup-memory", sure)


def test_a_process_whose_status_nobody_knows_is_not_explained() -> None:
    full = trend(NOFILE, (90, 500), (98, 1000), pid=8)
    assert ask(EXIT_1, ends=[end(None, 8, 99.0)], trends=[full]) == ("exception", POSSIBLE)


def test_what_was_never_looked_at_is_unknown() -> None:
    verdict, blame = judge(Seen(0.0, end(EXIT_1)))
    assert verdict.sure == POSSIBLE
    assert "too short to be looked at" in blame.note


def test_on_a_host_what_all_share_is_blamed_for_sure_only_where_the_signal_says_so() -> None:
    """Whoever fills /dev/shm would else be what everybody's programs died of."""
    trend = Trend(Level("shm-size", 0, 100, "/dev/shm"), 90.0)
    trend.follow(Level("shm-size", 100, 100, "/dev/shm"), 99.0)
    for status, is_alone, sure in (
        (256, True, SHOWN),
        (256, False, POSSIBLE),
        (7, False, SHOWN),
    ):
        end = End(100.0, 7, "python3", (), status)
        seen = Seen(0.0, end, trends=[trend], kills=0, looks=9, is_alone=is_alone)
        verdict, _blame = judge(seen)
        assert (verdict.reason.code, verdict.sure) == ("shm-size", sure)


@pytest.mark.parametrize(
    ("status", "more", "note"),
    [
        (11, {}, "process 7 (python3) was ended by signal 11, and no limit was near"),
        (3 << 8, {"trends": [trend(NOFILE, (50, 800), (99, 800))]},
         "process 7 (python3) ended with 3; x had 800 of 1000 (nofile, 80%) was the nearest limit"),
        (EXIT_1, {"trends": [trend(NOFILE, (50, 799), (99, 799))]},
         "process 7 (python3) ended with 1, and no limit was near"),
        (EXIT_1, {"trends": [FULL_LONG]},
         "x had 1000 of 1000 (nofile, 100%) before it ended, and it lived on for a while"),
        (EXIT_1, {"trends": [CLIMBED]}, "x had 1000 of 1000 (nofile, 100%) before it ended"),
        (9, {"kills": 1, "log": [Line(0.0, OOM.format("CONSTRAINT_MEMCG", 7))]},
         "kernel log: process 7 (python3) was killed for memory at the limit of /train"),
    ],
)  # fmt: skip
def test_a_note_says_what_was_seen(status: int, more: dict[str, Any], note: str) -> None:
    _verdict, blame = judge(Seen(0.0, end(status), looks=9, **{"kills": 0, **more}))
    assert blame.note == note


def test_what_is_only_possible_stands_beside_an_end_of_its_own() -> None:
    verdict, _blame = judge(Seen(0.0, end(EXIT_1), looks=9, kills=0, trends=[FULL_LONG]))
    assert [one.code for one in verdict.others] == ["exception"]
    assert verdict.is_limit is None
    assert verdict.number == 0, "No line was read."
    verdict, _blame = judge(Seen(0.0, end(EXIT_1), looks=9, kills=0))
    assert (verdict.others, verdict.is_limit, verdict.number) == ((), False, 0)


def test_a_status_that_was_not_told_is_no_signal() -> None:
    assert Seen(0.0, end(None)).status == 0
    assert find_signal(None) == 0
