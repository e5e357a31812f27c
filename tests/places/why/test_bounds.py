# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host's log and its counters are worth for one reason, and where that changes."""

from __future__ import annotations

import pytest
from mlhost_limits.core.values import Rlimit
from mlhost_limits.why.ask import raise_group
from mlhost_limits.why.facts import AGAINST, DOUBT, HINT, SURE, Facts, Group, Sign, Task, Use
from mlhost_limits.why.kills import Line
from mlhost_limits.why.reasons import REASONS
from mlhost_limits.why.signs import find_signs
from mlhost_limits.why.verdict import FITS, POSSIBLE, SHOWN, Verdict, weigh

LIVING = Task(9, "python", 1000, 1)
MANY = (Line(100.0, "VFS: file-max limit 1024 reached"),)
REFUSED = (Line(100.0, "cgroup: fork rejected by pids controller in /a"),)
OTHER = (Line(100.0, "usb 1-1: new device"),)
KILL = (
    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),oom_memcg=/train,"
    "task_memcg=/train,task=python3,pid=4711,uid=1000"
)


def pids(most: int, used: int, hits: int = 0) -> tuple[Group, ...]:
    return (Group("pids.max", "/a", most, used, hits),)


@pytest.mark.parametrize(
    ("code", "facts", "worths"),
    [
        ("file-max", Facts(log=MANY, age=100.0), [SURE]),
        ("file-max", Facts(log=MANY, age=300.0), [HINT]),
        ("file-max", Facts(log=MANY), [HINT]),
        ("file-max", Facts(log=OTHER, age=100.0), []),
        ("pids-max", Facts(log=REFUSED, age=100.0), [HINT]),
        ("pids-max", Facts(log=REFUSED, age=300.0), []),
        ("pids-max", Facts(log=REFUSED), []),
        ("pids-max", Facts(log=REFUSED * 3, age=100.0), [HINT]),
        ("pids-max", Facts(log=OTHER, age=100.0), []),
        ("pids-max", Facts(log=OTHER, age=100.0, log_is_whole=True, here=True), [AGAINST]),
        ("pids-max", Facts(log=REFUSED, age=300.0, log_is_whole=True, here=True), []),
        ("pids-max", Facts(groups=pids(100, 95), age=5.0), [SURE]),
        ("pids-max", Facts(groups=pids(100, 94), age=5.0), []),
        (
            "pids-max",
            Facts(groups=pids(100, 5, 1), age=5.0, log=(), log_is_whole=True, here=True),
            [HINT],
        ),
        ("cgroup-memory", Facts(task=LIVING, groups=[Group("memory.max", "/u", 100, 95, 0)]),
         [SURE]),
        ("cgroup-memory", Facts(task=LIVING, groups=[Group("memory.max", "/u", 100, 94, 0)]), []),
        (
            "cgroup-memory",
            Facts(task=LIVING, groups=[*pids(9, 1), Group("memory.max", "/u", 100, 95, 0)]),
            [SURE],
        ),
        ("host-memory", Facts(told={"Result": "oom-kill", "MemoryMax": "infinity"}), [HINT]),
        ("host-memory", Facts(told={"Result": "oom-kill", "MemoryMax": "7"}), []),
        ("cgroup-memory", Facts(told={"Result": "oom-kill", "MemoryMax": "7"}), [SURE]),
        ("cgroup-memory", Facts(told={"Result": "oom-kill", "MemoryMax": "7"}, oomd="x"), []),
        # A kill that the log has says more than the unit's result.
        (
            "cgroup-memory",
            Facts(
                told={"Result": "oom-kill", "MemoryMax": "7"},
                log=(Line(0.0, KILL),),
                age=0.0,
                pids=frozenset({4711}),
            ),
            [SURE],
        ),
        # Of the run's own cgroup it is a kill while it ran, and a minute around that.
        *(
            (
                "cgroup-memory",
                Facts(log=(Line(age, KILL),), age=100.0, started=200.0, home="/train"),
                worths,
            )
            for age, worths in ((40.0, [SURE]), (39.0, []), (260.0, [SURE]), (261.0, []))
        ),
        ("cgroup-memory", Facts(log=(Line(5.0, KILL),), started=20.0, home="/train"), [SURE]),
        ("cgroup-memory", Facts(log=(Line(5.0, KILL),), home="/train"), [HINT]),
        (
            "address-space",
            Facts(
                task=LIVING._replace(
                    limits={"as": Rlimit(1000, 1000)}, taken={"as": 100}
                ),
                request=850,
            ),
            [SURE],
        ),
        ("address-space", Facts(task=LIVING._replace(limits={"as": Rlimit(20, 20)})), []),
        ("overcommit", Facts(memory={"overcommit": 2}, here=True, age=5.0), []),
        ("threads-max", Facts(uses={"kernel.pid_max": [Use(9, 9, "x")]}, here=True), [HINT]),
        ("nproc", Facts(uid=0, here=True), [AGAINST]),
    ],
)  # fmt: skip
def test_what_a_sign_is_worth(code: str, facts: Facts, worths: list[int]) -> None:
    assert [one.worth for one in find_signs(facts, [code])] == worths


@pytest.mark.parametrize(
    ("age", "worth"),
    [(86500.0, DOUBT), (86501.0, AGAINST), (-501.0, AGAINST), (-500.0, DOUBT)],
)
def test_a_kill_of_the_day_before_the_end_may_be_of_the_run(age: float, worth: int) -> None:
    facts = Facts(log=(Line(age, KILL),), log_is_whole=True, age=100.0, here=True)
    assert [one.worth for one in find_signs(facts, ["cgroup-memory"])] == [worth]


def test_a_fault_counts_for_ten_minutes() -> None:
    text = "deep[77]: segfault at 7ffd4b9647cc ip 00 sp 00007ffd4b9647c0 error 6 in deep"
    for age, number in ((600.0, 1), (601.0, 0)):
        facts = Facts(age=age, pids=frozenset({77}), log=[Line(0.0, text)], here=True)
        assert len(find_signs(facts, ["stack"])) == number


def test_a_kill_is_told_with_the_limit_that_it_was_at() -> None:
    facts = Facts(log=(Line(0.0, KILL),), age=0.0)
    (sign,) = find_signs(facts, ["cgroup-memory"])
    assert sign.text.endswith("for memory at the limit of /train")


TWO = Verdict(REASONS["nofile"], POSSIBLE, "", 0, (REASONS["file-max"],))


@pytest.mark.parametrize(
    ("signs", "codes", "sure", "notes"),
    [
        ([], ["nofile", "file-max"], POSSIBLE, ()),
        ([Sign("file-max", SURE, "a"), Sign("nofile", SURE, "b"), Sign("file-max", SURE, "c")],
         ["file-max"], SHOWN, ("a", "c")),
        ([Sign("file-max", HINT, "a"), Sign("nproc", AGAINST, "b")],
         ["file-max", "nofile"], POSSIBLE, ("a",)),
        ([Sign("nofile", AGAINST, "b")], ["file-max"], FITS, ("b",)),
        ([Sign("nproc", AGAINST, "b")], ["nofile", "file-max"], POSSIBLE, ()),
        ([Sign("nofile", DOUBT, "b")], ["file-max", "nofile"], POSSIBLE, ()),
        ([Sign("nofile", AGAINST, "a"), Sign("file-max", AGAINST, "b")],
         ["nofile", "file-max"], POSSIBLE, ("a", "b")),
    ],
)  # fmt: skip
def test_what_signs_make_of_two_reasons(
    signs: list[Sign], codes: list[str], sure: str, notes: tuple[str, ...]
) -> None:
    told = weigh(TWO, signs)
    assert [one.code for one in (told.reason, *told.others)] == codes
    assert (told.sure, told.notes) == (sure, notes)


@pytest.mark.parametrize(
    ("kind", "path", "limit", "is_named", "has_commands"),
    [
        ("unit", "/sys/fs/cgroup/system.slice/a.service", 2**30, True, True),
        ("unit", "/sys/fs/cgroup/system.slice/a.service", None, True, False),
        ("unit", "/sys/fs/cgroup/user.slice/user@7.service/a.service", 2**30, True, False),
        ("container", f"/sys/fs/cgroup/system.slice/docker-{'a' * 64}.scope", 2**30, False, True),
        ("job", "/sys/fs/cgroup/slurm", 2**30, False, False),
        ("unit", "", 2**30, False, False),
    ],
)
def test_a_cgroup_gets_more_from_who_made_it(
    kind: str, path: str, limit: int | None, is_named: bool, has_commands: bool
) -> None:
    remedy = raise_group(kind, path, limit)
    assert (f"the cgroup is {path}" in remedy.text and bool(path)) is is_named
    assert bool(remedy.commands) is has_commands
