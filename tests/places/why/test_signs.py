# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host shows makes a verdict sure, or takes a reason away, and never another run's."""

from __future__ import annotations

import pytest
from mlhost_limits.core.values import UNLIMITED, Rlimit
from mlhost_limits.why.log_text import Words
from mlhost_limits.why.signs import Facts, Group, Line, Task, Use, find_signs
from mlhost_limits.why.verdict import FITS, POSSIBLE, SHOWN, Verdict, judge_words, weigh

KILL = (
    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,"
    "oom_memcg=/train,task_memcg=/train,task=python3,pid=4711,uid=1000"
)
OF_HOST = KILL.replace("CONSTRAINT_MEMCG", "CONSTRAINT_NONE").replace(
    "oom_memcg=/train,", "global_oom,"
)


def judge(text: str, facts: Facts) -> Verdict:
    verdict = judge_words(Words(text))
    assert verdict
    return weigh(
        verdict, find_signs(facts, [one.code for one in (verdict.reason, *verdict.others)])
    )


def log(text: str, age: float = 5.0) -> tuple[Line, ...]:
    return (Line(age, text),)


BASH = "bash: line 1:  4711 Killed                  python train.py"


@pytest.mark.parametrize(
    ("facts", "reason", "sure"),
    [
        (Facts(log=log(KILL), age=0.0, pids=frozenset({4711})), "cgroup-memory", SHOWN),
        (Facts(log=log(OF_HOST), age=0.0, pids=frozenset({4711})), "host-memory", SHOWN),
        # An hour ago the number was another's.
        (
            Facts(
                log=log(KILL, 3600.0),
                log_is_whole=True,
                age=0.0,
                pids=frozenset({4711}),
                has_oomd=False,
            ),
            "killed-by-hand",
            FITS,
        ),
        # Near in time, of another number: it may be seen from inside of a container.
        (Facts(log=log(KILL), age=0.0, pids=frozenset({87})), "cgroup-memory", POSSIBLE),
        (Facts(log=(), log_is_whole=True, age=0.0, has_oomd=False), "killed-by-hand", FITS),
        (Facts(log=(), log_is_whole=False, age=0.0, has_oomd=False), "cgroup-memory", POSSIBLE),
        (
            Facts(log=None, has_oomd=True, oomd="Killed /user.slice due to memory pressure"),
            "oomd",
            SHOWN,
        ),
        (Facts(groups=[Group("memory.max", "/train", 2**30, 2**29, 1)]), "cgroup-memory", SHOWN),
        (Facts(told={"OOMKilled": "true"}), "cgroup-memory", SHOWN),
    ],
)
def test_who_killed_it(facts: Facts, reason: str, sure: str) -> None:
    verdict = judge(BASH, facts)
    assert (verdict.reason.code, verdict.sure) == (reason, sure)


THREADS = "RuntimeError: can't start new thread"


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        (Facts(groups=[Group("pids.max", "/train", 64, 10, 3)]), "pids-max"),
        (Facts(uses={"kernel.threads-max": [Use(990, 1000, "all")]}), "threads-max"),
        (
            Facts(
                uid=1000,
                task=Task(9, "python", 1000, 1, {"nproc": Rlimit(50, 50)}, {"nproc": 50}),
            ),
            "nproc",
        ),
    ],
)
def test_which_bound_of_tasks_it_was(facts: Facts, reason: str) -> None:
    verdict = judge(THREADS, facts)
    assert (verdict.reason.code, verdict.sure) == (reason, SHOWN)


def test_nproc_does_not_bind_root() -> None:
    told = judge(THREADS, Facts(uid=0))
    assert "nproc" not in [one.code for one in (told.reason, *told.others)]


def test_a_request_larger_than_the_host_is_no_limit_of_the_process() -> None:
    text = "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 29.1 GiB for an array"
    memory = {"MemTotal": 2**33, "SwapTotal": 0, "overcommit": 0}
    assert judge(text, Facts(memory=memory, request=29 * 2**30)).reason.code == "overcommit"
    free = Task(9, "python", 0, 1, {one: Rlimit(UNLIMITED, UNLIMITED) for one in ("as", "data")})
    told = judge(text, Facts(memory={**memory, "MemTotal": 2**40}, request=29 * 2**30, task=free))
    assert told.others or told.reason.code == "overcommit"  # All is excluded: nothing is left out.
