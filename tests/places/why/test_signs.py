# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host shows makes a verdict sure, or takes a reason away, and never another run's."""

from __future__ import annotations

from typing import Any

import pytest
from mlhost_limits.core.values import UNLIMITED, Rlimit
from mlhost_limits.why.facts import AGAINST, HINT, SURE, Facts, Group, Task, Use
from mlhost_limits.why.kills import Line
from mlhost_limits.why.log_text import Words
from mlhost_limits.why.signs import find_signs
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


UNIT = "/system.slice/train.service"
UNDER = f"{UNIT}/workers"
BASH = "bash: line 1:  4711 Killed                  python train.py"


@pytest.mark.parametrize(
    ("facts", "reason", "sure"),
    [
        (Facts(log=log(KILL), age=0.0, pids=frozenset({4711})), "cgroup-memory", SHOWN),
        (Facts(log=log(OF_HOST), age=0.0, pids=frozenset({4711})), "host-memory", SHOWN),
        # Two days ago the number was another's.
        (
            Facts(
                log=log(KILL, 2 * 86400.0),
                log_is_whole=True,
                age=0.0,
                pids=frozenset({4711}),
                has_oomd=False,
                here=True,
            ),
            "killed-by-hand",
            FITS,
        ),
        # Near in time, of another number: it may be seen from inside of a container.
        (Facts(log=log(KILL), age=0.0, pids=frozenset({87})), "cgroup-memory", POSSIBLE),
        (
            Facts(log=(), log_is_whole=True, age=0.0, has_oomd=False, here=True),
            "killed-by-hand",
            FITS,
        ),
        # Nobody knows that the log is of this host.
        (Facts(log=(), log_is_whole=True, age=0.0, has_oomd=False), "killed-by-hand", POSSIBLE),
        # The run's log went on after the kill, until a timeout.
        (
            Facts(
                log=log(KILL, 1800.0),
                log_is_whole=True,
                age=0.0,
                has_oomd=False,
                here=True,
                pids=frozenset({4711}),
            ),
            "cgroup-memory",
            POSSIBLE,
        ),
        (Facts(log=(), log_is_whole=False, age=0.0, has_oomd=False), "cgroup-memory", POSSIBLE),
        (Facts(log=None, oomd=f"Killed {UNDER} due to memory pressure", home=UNIT), "oomd", SHOWN),
        (Facts(log=None, oomd=f"Killed {UNDER} due to memory pressure"), "oomd", POSSIBLE),
        (
            Facts(log=None, oomd="Killed /user.slice due to memory pressure for /x", home=UNIT),
            "cgroup-memory",
            POSSIBLE,
        ),
        (Facts(told={"Result": "oom-kill", "MemoryMax": "1048576"}), "cgroup-memory", SHOWN),
        (Facts(told={"Result": "oom-kill", "MemoryMax": "infinity"}), "cgroup-memory", POSSIBLE),
        (
            Facts(home="/train", groups=[Group("memory.max", "/train", 2**30, 2**29, 1)]),
            "cgroup-memory",
            SHOWN,
        ),
        # A counter of a cgroup above it counts for all that ever were below that.
        (
            Facts(home="/a/train", groups=[Group("memory.max", "/a", 2**30, 2**29, 1)]),
            "cgroup-memory",
            POSSIBLE,
        ),
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
        (Facts(home="/train", groups=[Group("pids.max", "/train", 64, 10, 3)]), "pids-max"),
        (Facts(age=5.0, uses={"kernel.threads-max": [Use(990, 1000, "all")]}), "threads-max"),
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


def of_unit(lived: str, age: float) -> Facts:
    text = KILL.replace("task_memcg=/train", f"task_memcg={lived}")
    return Facts(
        log=log(text, age), log_is_whole=True, age=5.0, started=3600.0, home=UNIT, here=True
    )


@pytest.mark.parametrize(
    ("lived", "age", "is_shown"),
    [
        (UNIT, 50.0, True),
        (UNDER, 50.0, True),
        ("/system.slice/other-train.service", 50.0, False),
        (f"/user.slice/user-1000.slice/user@1000.service{UNIT}", 50.0, False),
        (f"{UNIT}x", 50.0, False),
        (UNIT, 30 * 86400.0, False),
    ],
)
def test_a_kill_is_a_units_by_its_whole_path_and_its_time(
    lived: str, age: float, is_shown: bool
) -> None:
    told = judge(BASH, of_unit(lived, age))
    assert (told.sure == SHOWN) is is_shown
    assert told.is_limit is not True or is_shown


@pytest.mark.parametrize(
    "lied",
    [
        KILL.replace("task=python3,pid=4711", "task=,pid=4711,uid=0,pid=999"),
        KILL.replace(
            "/train,task=python3,pid=4711", "/a,task=python3,pid=4711,uid=0,z,task=b,pid=9"
        ),
    ],
)
def test_a_name_that_looks_like_a_number_is_none(lied: str) -> None:
    told = judge(BASH, Facts(log=log(lied), age=5.0, pids=frozenset({4711})))
    assert told.sure == POSSIBLE


def test_a_cgroup_that_is_named_as_a_field_is_nobodys() -> None:
    lied = "/user.slice/a,task_memcg=/system.slice/train.service/b"
    assert judge(BASH, of_unit(lied, 50.0)).sure != SHOWN


def test_the_line_that_tells_of_the_kill_has_the_last_word() -> None:
    lines = (*log(KILL), Line(5.0, "Memory cgroup out of memory: Killed process 12 (python3)"))
    facts = Facts(log=lines, age=5.0, pids=frozenset({4711}))
    assert judge(BASH, facts).sure == POSSIBLE
    true = (lines[0], lines[1]._replace(text=lines[1].text.replace(" 12 ", " 4711 ")))
    assert judge(BASH, facts._replace(log=true)).sure == SHOWN


def test_nodes_that_are_full_are_not_the_host() -> None:
    told = judge(BASH, Facts(log=log(OF_HOST.replace("_NONE", "_CPUSET")), age=0.0,
                             pids=frozenset({4711})))  # fmt: skip
    assert told.sure == SHOWN
    assert "the memory nodes that it may use" in told.reason.text


LIVING = Task(9, "python", 1000, 1)


def test_what_a_counter_remembers_is_not_of_now() -> None:
    codes = ["cgroup-memory", "pids-max"]
    long_ago = [Group("memory.max", "/u", 2**30, 2**20, 3), Group("pids.max", "/u", 99, 2, 1)]
    signs = find_signs(Facts(task=LIVING, groups=long_ago, home="/u"), codes)
    assert [one.worth for one in signs] == [HINT, HINT]
    near = find_signs(Facts(task=LIVING, groups=[Group("memory.max", "/u", 100, 99, 3)]), codes)
    assert [(one.worth, one.reason is not None) for one in near] == [(SURE, True)]


def test_what_is_full_is_asked_for() -> None:
    uses = {
        "kernel.threads-max": [Use(32700, 500000, "x")],
        "kernel.pid_max": [Use(32700, 32768, "x")],
    }
    assert judge(THREADS, Facts(age=5.0, uses=uses)).reason.item == "kernel.pid_max"
    free = Rlimit(UNLIMITED, UNLIMITED)
    task = LIVING._replace(limits={"as": free, "data": Rlimit(9, 9)}, taken={"data": 9})
    assert judge("MemoryError", Facts(task=task)).reason.item == "data"


def test_what_is_full_now_was_not_nine_days_ago() -> None:
    words = "RuntimeError: DataLoader worker (pid 1) is killed by signal: Bus error"
    uses = {"shm_size": [Use(96, 100, "/dev/shm")]}
    assert judge(words, Facts(age=5.0, uses=uses)).sure == SHOWN
    assert judge(words, Facts(age=9 * 86400.0, uses=uses)).sure == POSSIBLE


@pytest.mark.parametrize(
    ("touched", "worth"),
    [("7ffd4b9647cc", SURE), ("7ffd4b960000", SURE), ("0", 0), ("7f7f51cf1ad8", 0)],
)
def test_a_fault_beside_the_stack_pointer_is_a_stack_that_was_full(
    touched: str, worth: int
) -> None:
    text = (
        f"deep[77]: segfault at {touched} ip 000056263aa62154 sp 00007ffd4b9647c0 error 6 in deep"
    )
    facts = Facts(age=2.0, pids=frozenset({77}), log=[Line(2.0, text)], here=True)
    assert [one.worth for one in find_signs(facts, ["stack"])] == [worth]
    assert not find_signs(facts._replace(pids=frozenset({78})), ["stack"])
    assert not find_signs(facts._replace(age=5000.0), ["stack"])


@pytest.mark.parametrize(
    ("told", "code", "worth"),
    [
        ({"ExecMainCode": "1", "ExecMainStatus": "137"}, "own-exit", HINT),
        ({"ExecMainCode": "2", "ExecMainStatus": "9"}, "own-exit", 0),
        ({"signals": "9"}, "killed-by-hand", SURE),
        ({"signals": ""}, "own-exit", HINT),
    ],
)
def test_a_manager_says_who_ended_a_run(told: dict[str, str], code: str, worth: int) -> None:
    signs = find_signs(Facts(told=told, here=True), ["killed-by-hand", "own-exit"])
    assert [(one.code, one.worth) for one in signs] == [(code, worth)]


def test_a_file_system_without_room_or_inodes_is_told_by_the_path() -> None:
    uses = {"disk-full": [Use(50, 100, "bytes of /data")], "inodes": [Use(9, 9, "inodes of /data")]}
    facts = Facts(uses=uses, age=5.0, here=True)
    assert [(one.code, one.worth) for one in find_signs(facts, ["disk-full", "inodes"])] == [
        ("inodes", SURE)
    ]


def bound(soft: int, taken: int, item: str = "nofile") -> Facts:
    """Return what is seen of a process that has taken so much of a limit."""
    limits = {item: Rlimit(soft, UNLIMITED)}
    return Facts(task=LIVING._replace(limits=limits, taken={item: taken}))


def host(item: str, used: int, most: int = 100000, **more: Any) -> Facts:
    return Facts(uses={item: [Use(used, most, "x")]}, here=True, **{"age": 5.0, **more})


def promise(mode: int, request: int, committed: int = 0) -> Facts:
    """Return what is seen of a host with 1000 bytes of memory, 500 of swap, that promises 800."""
    sizes = {"MemTotal": 1000, "SwapTotal": 500, "CommitLimit": 800, "Committed_AS": committed}
    return Facts(memory={"overcommit": mode, **sizes}, request=request, here=True, age=5.0)


@pytest.mark.parametrize(
    ("code", "facts", "worths"),
    [
        # From 95 % on it is reached, below half of it was not lately.
        ("nofile", bound(1000, 950), [SURE]),
        ("nofile", bound(1000, 949), []),
        ("nofile", bound(1000, 500), []),
        ("nofile", bound(1000, 499), [AGAINST]),
        ("nofile", bound(UNLIMITED, 949), [AGAINST]),
        ("memlock", bound(1000, 100, "memlock")._replace(request=850), [SURE]),
        ("memlock", bound(1000, 100, "memlock")._replace(request=849), [AGAINST]),
        ("address-space", bound(1000, 950, "as"), [SURE]),
        ("address-space", bound(1000, 949, "as"), []),
        ("threads-max", host("kernel.pid_max", 95000), [SURE]),
        ("threads-max", host("kernel.pid_max", 94999), []),
        ("threads-max", host("kernel.pid_max", 70001), []),
        ("threads-max", host("kernel.pid_max", 70000), [AGAINST]),
        ("shm-size", host("shm_size", 95000), [SURE]),
        ("shm-size", host("shm_size", 94999), []),
        ("shm-size", host("shm_size", 94999, request=1), [SURE]),
        ("disk-full", host("disk-full", 100000), [SURE]),
        ("disk-full", host("disk-full", 99000), [HINT]),
        ("disk-full", host("disk-full", 98999), []),
        ("file-max", host("fs.file-max", 95000), [SURE]),
        ("file-max", host("fs.file-max", 94999), []),
        ("file-max", host("fs.file-max", 0, 0), []),
        # What is full now was full ten minutes ago, and may have been before.
        ("shm-size", host("shm_size", 95000, age=600.0), [SURE]),
        ("shm-size", host("shm_size", 95000, age=601.0), [HINT]),
        ("shm-size", host("shm_size", 95000, age=None), [HINT]),
        # The kernel promises everything, all that it has, or no more than there is.
        ("overcommit", promise(1, 10**9), [AGAINST]),
        ("overcommit", promise(0, 1501), [SURE]),
        ("overcommit", promise(0, 1500), [AGAINST]),
        ("overcommit", promise(0, 0), []),
        ("overcommit", promise(2, 801), [SURE]),
        ("overcommit", promise(2, 800), []),
        ("overcommit", promise(2, 0, committed=700), []),
        ("overcommit", promise(2, 0, committed=750), [SURE]),
    ],
)  # fmt: skip
def test_what_a_bound_is_worth_by_how_much_of_it_is_taken(
    code: str, facts: Facts, worths: list[int]
) -> None:
    assert [one.worth for one in find_signs(facts, [code])] == worths


@pytest.mark.parametrize(
    ("age", "pids", "codes"),
    [
        (60.0, frozenset(), [HINT]),
        (61.0, frozenset(), []),
        (600.0, frozenset({4711}), [SURE]),
        (601.0, frozenset({4711}), []),
        (None, frozenset(), [HINT]),
        (None, frozenset({4711}), [HINT]),
    ],
)
def test_a_kill_is_of_the_run_by_its_time_and_for_longer_by_its_number(
    age: float | None, pids: frozenset[int], codes: list[int]
) -> None:
    """Where nobody knows when the run ended, no kill is surely its own."""
    facts = Facts(log=log(KILL, 0.0), age=age, pids=pids)
    assert [one.worth for one in find_signs(facts, ["cgroup-memory"])] == codes
