# SPDX-License-Identifier: GPL-3.0-or-later
"""What a policy says of jobs is read, and whatever would end slurmd or every job is refused."""

from __future__ import annotations

import pytest
from mlhost_limits.core.reader import LONGEST_WORD, Limit, PolicyError
from mlhost_limits.core.values import UNLIMITED
from mlhost_limits.schema import load_policy
from mlhost_limits.slurm.confines import Size
from mlhost_limits.slurm.policy import PROPAGATED, SlurmPolicy

L = "jobs.slurm.limits"
NAMES = ", ".join(PROPAGATED)


def read(slurm: object) -> SlurmPolicy | None:
    return load_policy({"jobs": {"slurm": slurm}}, "none").get("slurm")


def refusal(jobs: object) -> list[str]:
    with pytest.raises(PolicyError) as caught:
        load_policy({"jobs": jobs}, "none")
    return list(caught.value.problems)


def test_a_whole_section() -> None:
    policy = read(
        {
            "limits": {"nofile": {"soft": 65536, "hard": 131072}, "memlock": "unlimited"},
            "partitions": ["gpu", "cpu-long", "gpu"],
            "propagate": ["core"],
        }
    )
    limits = {"nofile": Limit(65536, 131072), "memlock": Limit(UNLIMITED, UNLIMITED)}
    assert policy == SlurmPolicy(limits, ("gpu", "cpu-long"), frozenset({"core"}))
    assert policy.kept_back == frozenset(PROPAGATED) - {"core"}


def test_without_a_word_logins_may_not_decide_the_limits_that_have_a_soft_bound() -> None:
    policy = read({"limits": {"nofile": 4096, "memlock": {"hard": "1GiB"}, "locks": 64}})
    assert policy
    assert policy.kept_back == {"nofile"}


def test_what_runs_owes_the_hard_limits_alone() -> None:
    policy = read({"limits": {"nofile": {"soft": 4096}, "memlock": "1GiB", "core": {"max": 0}}})
    assert policy
    assert policy.of_steps == {"nofile": Limit(hard=4096), "memlock": Limit(hard=2**30)}


def test_the_size_of_a_job() -> None:
    policy = read({"memory": "8GiB", "cpus": 4})
    assert policy == SlurmPolicy({}, size=Size(8 * 2**30, 4))
    assert read({"cpus": 2}) == SlurmPolicy({}, size=Size(None, 2))


@pytest.mark.parametrize(
    ("slurm", "problem"),
    [
        ({"memory": "1MiB"}, "jobs.slurm.memory: a job can ask for 64MiB or more"),
        ({"memory": "unlimited"}, "jobs.slurm.memory: a job can ask for 64MiB or more"),
        ({"cpus": 0}, "jobs.slurm.cpus: a job can ask for 1 to 65536"),
    ],
)
def test_a_size_that_no_job_can_ask_for(slurm: object, problem: str) -> None:
    assert refusal({"slurm": slurm}) == [problem]


def test_a_size_that_is_none() -> None:
    assert [one.partition(":")[0] for one in refusal({"slurm": {"memory": "x", "cpus": "y"}})] == [
        "jobs.slurm.memory",
        "jobs.slurm.cpus",
    ]


@pytest.mark.parametrize("propagate", ["none", []])
def test_logins_may_decide_nothing(propagate: object) -> None:
    policy = read({"propagate": propagate})
    assert policy == SlurmPolicy({}, (), frozenset())
    assert policy.kept_back == frozenset(PROPAGATED)


@pytest.mark.parametrize(
    ("jobs", "problems"),
    [
        ([], ["jobs: a list was given; a mapping is accepted"]),
        ({"pbs": {}}, ["jobs.pbs: is unknown; accepted are slurm"]),
        ({"slurm": {}}, ["jobs.slurm: states neither limits nor propagate, so nothing is required"]),
        ({"slurm": {"limits": {"cpu": 60, "rss": 1, "fd": 2}}}, [
            f"{L}.cpu: would end slurmd itself once it has used that much",
            f"{L}.rss: is set by Slurm to the memory of each job",
            f"{L}.fd: is unknown; accepted are data, stack, core, nproc, nofile, memlock, as, locks,"
            " sigpending, msgqueue, nice, rtprio, rttime"]),
        ({"slurm": {"limits": [], "propagate": "none"}}, [f"{L}: a list was given; a mapping is accepted"]),
        ({"slurm": {"limits": {"nofile": "unlimited"}}}, [
            f"{L}.nofile: 'unlimited' is above fs.nr_open, so systemd would ignore it; a number is accepted"]),
        ({"slurm": {"limits": {"nofile": {"soft": 64, "hard": 4096}}}}, [
            f"{L}.nofile: slurmd itself needs more; 1024 or above is accepted"]),
        ({"slurm": {"limits": {"stack": {"hard": "64KiB"}}}}, [
            f"{L}.stack: slurmd itself needs more; 1MiB or above is accepted"]),
        ({"slurm": {"limits": {"core": 0}, "partitions": "gpu"}}, [
            "jobs.slurm.partitions: 'gpu' was given; a list of names is accepted"]),
        ({"slurm": {"limits": {"core": 0}, "partitions": ["-x", 1, "a" * 300]}}, [
            "jobs.slurm.partitions: '-x' is not a name of a partition",
            "jobs.slurm.partitions: 1 is not a name of a partition",
            f"jobs.slurm.partitions: '{'a' * 300}' is not a name of a partition"]),
        ({"slurm": {"propagate": "all"}}, [
            "jobs.slurm.propagate: 'all' was given; 'none' or a list of limits is accepted"]),
        ({"slurm": {"limits": {"core": 0, "memlock": {"hard": "1GiB"}},
                    "propagate": ["core", "memlock", "locks"]}}, [
            "jobs.slurm.propagate: core is in limits as well, where no login may decide it",
            f"jobs.slurm.propagate: 'locks' is unknown; accepted are {NAMES}"]),
    ],
)  # fmt: skip
def test_what_is_refused(jobs: object, problems: list[str]) -> None:
    assert refusal(jobs) == problems


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("nofile", 1024),
        ("stack", 2**20),
        ("nproc", 64),
        ("as", 2**28),
        ("data", 2**28),
        ("core", 0),
    ],
)
def test_what_slurmd_itself_needs(name: str, least: int) -> None:
    policy = read({"limits": {name: least}})
    assert policy
    assert policy.limits == {name: Limit(least, least)}
    if least:
        problem = refusal({"slurm": {"limits": {name: least - 1}}})[0]
        assert problem.startswith(f"{L}.{name}: slurmd itself needs more; ")


def test_a_name_of_a_partition_may_be_so_long() -> None:
    policy = read({"limits": {"core": 0}, "partitions": ["a" * LONGEST_WORD]})
    assert policy
    assert policy.partitions == ("a" * LONGEST_WORD,)
    assert refusal({"slurm": {"limits": {"core": 0}, "partitions": ["a" * (LONGEST_WORD + 1)]}})


def test_of_nothing_steps_owe_nothing() -> None:
    policy = read({"limits": {"core": {"hard": 0}, "rtprio": {"soft": 0}}})
    assert policy
    assert policy.of_steps == {"core": Limit(hard=0), "rtprio": Limit(hard=0)}


def test_a_bound_that_is_only_checked_is_no_harm() -> None:
    policy = read({"limits": {"stack": {"max": "64KiB"}}})
    assert policy
    assert policy.limits == {"stack": Limit(max=65536)}
