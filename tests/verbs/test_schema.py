# SPDX-License-Identifier: GPL-3.0-or-later
"""A policy is read as it was meant or refused, with every violation and its key path at once."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mlhost_limits.containers.policy import ContainerPolicy
from mlhost_limits.core.policy import Policy
from mlhost_limits.core.profiles import DEFAULT_PROFILE, PROFILES
from mlhost_limits.core.reader import Limit, PolicyError
from mlhost_limits.core.values import UNLIMITED
from mlhost_limits.kernel.policy import KernelValue, normal_key
from mlhost_limits.processes.policy import ProcessRule
from mlhost_limits.schema import load_policy, merge
from mlhost_limits.sessions.policy import SessionRule

from tests.reference.sections import list_sections

KNOWN = ", ".join(list_sections())
UNITS = "accepted are a whole number (with B, KiB, MiB, GiB, TiB) or 'unlimited'"
COUNT = "accepted are a whole number or 'unlimited'"
DOMAIN = "is not a domain; accepted are a user, '*', '@group', and uid or gid ranges as in limits.conf(5)"
ITEMS = (
    "cpu, fsize, data, stack, core, rss, nproc, nofile, memlock, as, locks, sigpending, msgqueue,"
    " nice, rtprio, rttime"
)
ALL_ITEMS = f"{ITEMS}, priority, maxlogins, maxsyslogins, nonewprivs, chroot"
CHROOT = (
    "accepted is an absolute path without blanks, '#' and capitals, which pam_limits makes small"
)
EXACT = "'exact' stands alone and takes a number or one line of ASCII"


def session(*, users: object = ("*",), **limits: object) -> dict[str, object]:
    users = list(users) if isinstance(users, tuple) else users
    return {"sessions": [{"users": users, "limits": limits}]}


def docker(**section: object) -> dict[str, object]:
    return {"containers": {"docker": section}}


def refusal(policy: object, profile: str = "none") -> list[str]:
    with pytest.raises(PolicyError) as caught:
        load_policy(policy, profile)
    assert str(caught.value) == "; ".join(caught.value.problems)
    return list(caught.value.problems)


def test_the_profile_for_training() -> None:
    nofile, memlock = Limit(65536, 1048576, 4194304), Limit(UNLIMITED, UNLIMITED)
    assert load_policy(None, DEFAULT_PROFILE)._replace(stated={}) == Policy(
        {
            "sessions": (SessionRule(("*", "root"), {"nofile": nofile, "memlock": memlock}),),
            "kernel": {
                "fs.file-max": KernelValue(2097152),
                "fs.nr_open": KernelValue(1048576),
                "vm.max_map_count": KernelValue(262144),
            },
            "docker": ContainerPolicy({"nofile": nofile, "memlock": memlock}, 8 * 2**30),
        }
    )


@pytest.mark.parametrize("profile", [name for name in PROFILES if name != "none"])
def test_every_profile_is_a_policy(profile: str) -> None:
    assert load_policy(None, profile) != Policy()


def test_every_section_is_read() -> None:
    policy = {
        "sessions": [
            {"users": ["alice", "@ml", "1000:", ":5", "@:5", "zo\xeb"], "limits": {"core": 0}}
        ],
        "kernel": {
            "fs.file-max": {"min": 5, "max": "8GiB"},
            "net/ipv4/conf/eth0.1/forwarding": {"exact": 1},
            "net.ipv4.tcp_rmem": {"exact": "4096\t131072  6291456"},
            "vm.max_map_count": {"max": 9},
        },
        "containers": {
            "docker": {"limits": {"nofile": {"max": 5}, "core": "unlimited"}, "shm_size": "1GiB"}
        },
        "processes": [
            {"user": "slurm", "limits": {"nofile": {"soft": 1, "hard": 2, "max": 3}}},
            {"unit": "slurmd.service", "limits": {"memlock": "unlimited"}},
        ],
        "shared_memory": {"size": "8GiB"},
    }
    assert load_policy(policy, "none")._replace(stated={}) == Policy(
        {
            "sessions": (
                SessionRule(
                    ("alice", "@ml", "1000:", ":5", "@:5", "zo\xeb"), {"core": Limit(0, 0)}
                ),
            ),
            "kernel": {
                "fs.file-max": KernelValue(5, 8 * 2**30),
                "net.ipv4.conf.eth0/1.forwarding": KernelValue(exact="1"),
                "net.ipv4.tcp_rmem": KernelValue(exact="4096 131072 6291456"),
                "vm.max_map_count": KernelValue(maximum=9),
            },
            "docker": ContainerPolicy(
                {"nofile": Limit(max=5), "core": Limit(UNLIMITED, UNLIMITED)}, 2**30
            ),
            "processes": (
                ProcessRule("user", "slurm", {"nofile": Limit(1, 2, 3)}),
                ProcessRule("unit", "slurmd.service", {"memlock": Limit(UNLIMITED, UNLIMITED)}),
            ),
            "shared_memory": 8 * 2**30,
        }
    )


@pytest.mark.parametrize(
    ("item", "value", "limit"),
    [
        ("nofile", 5, Limit(5, 5)),
        ("nofile", {"soft": 5}, Limit(soft=5)),
        ("nofile", {"hard": 5}, Limit(hard=5)),
        ("nofile", {"max": 5}, Limit(max=5)),
        ("nofile", {"soft": 5, "hard": 5, "max": 5}, Limit(5, 5, 5)),
        ("memlock", "-1", Limit(UNLIMITED, UNLIMITED)),
        ("memlock", {"soft": "64KiB", "hard": "unlimited"}, Limit(65536, UNLIMITED)),
        ("cpu", "10min", Limit(600, 600)),
        ("nice", -5, Limit(25, 25)),
        ("nice", {"soft": 0, "hard": -20}, Limit(20, 40)),
        ("priority", -20, Limit(-20, -20)),
        ("maxlogins", 3, Limit(3, 3)),
        ("maxlogins", "unlimited", Limit(UNLIMITED, UNLIMITED)),
        ("nonewprivs", 1, Limit(1, 1)),
        ("chroot", "/srv/jail", Limit(text="/srv/jail")),
    ],
)
def test_what_a_limit_means(item: str, value: object, limit: Limit) -> None:
    assert load_policy(session(**{item: value}), "none").get("sessions")[0].limits == {item: limit}


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        ({}, "policy: is empty, so nothing would be required; leave it out"),
        ({"sessions": []}, "policy: is empty, so nothing would be required"),
        ({"sessions": None}, "policy: is empty, so nothing would be required"),
        ({"kernel": {}}, "policy: is empty, so nothing would be required"),
        (docker(), "policy: is empty, so nothing would be required"),
        (docker(limits={}), "policy: is empty, so nothing would be required"),
        ([], "policy: a list was given; a mapping is accepted"),
        ("x", "policy: a text was given; a mapping is accepted"),
        (5, "policy: 5 was given; a mapping is accepted"),
        ({"sessions": {}}, "sessions: a mapping was given; a list of mappings is accepted"),
        ({"sessions": ["x"]}, "sessions[0]: a text was given; a mapping is accepted"),
        ({"sessions": [None]}, "sessions[0]: nothing was given; a mapping is accepted"),
        (session(), "sessions[0].limits: is empty, so nothing would be required"),
        ({"sessions": [{"users": ["*"]}]}, "sessions[0].limits: nothing was given; a mapping is accepted"),
        ({"sessions": [{"users": ["*"], "limits": [1]}]}, "sessions[0].limits: a list was given; a mapping is accepted"),
        (session(users="*", core=0), "sessions[0].users: '*' was given; a list of domains is accepted"),
        (session(users=[], core=0), "sessions[0].users: [] was given; a list of domains is accepted"),
        ({"sessions": [{"limits": {"core": 0}}]}, "sessions[0].users: None was given; a list of domains is accepted"),
        *(
            (session(users=[user], core=0), f"sessions[0].users: {user!r} {DOMAIN}")
            for user in ("", "a b", "a#b", "#a", "%ml", "a:b", ":", "@", "@:", "**", "a\0b", "a\x07", 5, None, ["a"])
        ),
        (session(nofiles=5), f"sessions[0].limits.nofiles: is unknown; accepted are {ALL_ITEMS}"),
        (session(nofile="64K"), f"sessions[0].limits.nofile: '64K' is not a limit: {COUNT}"),
        (session(nofile=65536.0), f"sessions[0].limits.nofile: 65536.0 is not a limit: {COUNT}"),
        (session(nofile=True), f"sessions[0].limits.nofile: True is not a limit: {COUNT}"),
        (session(nofile=[5]), f"sessions[0].limits.nofile: [5] is not a limit: {COUNT}"),
        (session(memlock={"soft": "5KB"}), f"sessions[0].limits.memlock.soft: '5KB' is not a limit: {UNITS}"),
        (session(nofile={"Soft": 5, "hard": 5}), "sessions[0].limits.nofile.Soft: is unknown; accepted are soft, hard, max"),
        (session(nofile={}), "sessions[0].limits.nofile: states no bound; accepted are soft, hard, max"),
        (session(nofile={"soft": 6, "hard": 5}), "sessions[0].limits.nofile: soft 6 is above hard 5"),
        (session(nofile={"hard": 6, "max": 5}), "sessions[0].limits.nofile: hard 6 is above max 5"),
        (session(nofile={"soft": 6, "max": 5}), "sessions[0].limits.nofile: soft 6 is above max 5"),
        (session(memlock={"soft": "unlimited", "hard": "1GiB"}), "sessions[0].limits.memlock: soft unlimited is above hard 1GiB"),
        (session(nice=-21), "sessions[0].limits.nice: -21 is not a priority; accepted are -20 to 19"),
        (session(nice="5"), "sessions[0].limits.nice: '5' is not a priority; accepted are -20 to 19"),
        (session(priority=True), "sessions[0].limits.priority: True is not a priority; accepted are -20 to 19"),
        (session(maxlogins={"soft": 1}), "sessions[0].limits.maxlogins: has no soft and hard; one value is accepted"),
        (session(nonewprivs=2), "sessions[0].limits.nonewprivs: 2 was given; 0 or 1 is accepted"),
        (session(chroot="srv"), f"sessions[0].limits.chroot: 'srv' was given; {CHROOT}"),
        (session(chroot="/a b"), f"sessions[0].limits.chroot: '/a b' was given; {CHROOT}"),
        (session(chroot="/Srv"), f"sessions[0].limits.chroot: '/Srv' was given; {CHROOT}"),
        (session(chroot="/a\0"), f"sessions[0].limits.chroot: '/a\\x00' was given; {CHROOT}"),
        (session(chroot={"soft": "/x"}), f"sessions[0].limits.chroot: {{'soft': '/x'}} was given; {CHROOT}"),
        ({"kernel": []}, "kernel: a list was given; a mapping is accepted"),
        ({"kernel": {"file-max": 5}}, "kernel.file-max: 'file-max' is not a sysctl; accepted are names as fs.file-max"),
        ({"kernel": {5: 5}}, "kernel.5: 5 is not a sysctl; accepted are names as fs.file-max"),
        ({"kernel": {"../etc/x": 5}}, "kernel.../etc/x: '../etc/x' is not a sysctl; accepted are names as fs.file-max"),
        ({"kernel": {"fs.file-max": "many"}}, f"kernel.fs.file-max: 'many' is not a limit: {UNITS}"),
        ({"kernel": {"fs.file-max": "unlimited"}}, "kernel.fs.file-max: a sysctl has no 'unlimited'; a whole number is accepted"),
        ({"kernel": {"fs.file-max": {"min": -1}}}, "kernel.fs.file-max: a sysctl has no 'unlimited'; a whole number is accepted"),
        ({"kernel": {"fs.file-max": {}}}, "kernel.fs.file-max: is empty; accepted are min, max, exact"),
        ({"kernel": {"kernel.sem": [250]}}, "kernel.kernel.sem: 1 numbers were given; 2 to 16 are accepted"),
        ({"kernel": {"kernel.sem": [250, "x"]}}, f"kernel.kernel.sem[1]: 'x' is not a limit: {UNITS}"),
        ({"kernel": {"kernel.sem": [1, -1]}}, "kernel.kernel.sem: a sysctl has no 'unlimited'; whole numbers are accepted"),
        ({"kernel": {"kernel.sem": {"min": [1, 2], "max": 3}}}, "kernel.kernel.sem: a 'min' of several numbers stands alone"),
        ({"kernel": {"fs.file-max": {"minimum": 5}}}, "kernel.fs.file-max.minimum: is unknown; accepted are min, max, exact"),
        ({"kernel": {"fs.file-max": {"min": 6, "max": 5}}}, "kernel.fs.file-max: min 6 is above max 5"),
        *(
            ({"kernel": {"kernel.x": {"exact": value}}}, f"kernel.kernel.x: {EXACT}")
            for value in (True, 1.5, [1], {"a": 1}, "", "a\nb", "\xe9", "a\0b")
        ),
        ({"kernel": {"kernel.x": {"exact": 1, "min": 1}}}, f"kernel.kernel.x: {EXACT}"),
        (
            {
                "services": {"units": {"slurmd.service": {"nofile": 65536}}},
                "jobs": {"slurm": {"limits": {"nofile": 65536}}},
            },
            "services.units.slurmd.service: jobs.slurm.limits states it as well;"
            " one of them is accepted",
        ),
        ({"shared_memory": 5}, "shared_memory: 5 was given; a mapping is accepted"),
        ({"shared_memory": {"size": 0}}, "shared_memory.size: a size above 0 is accepted"),
        ({"containers": []}, "containers: a list was given; a mapping is accepted"),
        ({"containers": {"lxd": {}}},
         "containers.lxd: is unknown; accepted are containerd, docker, podman, crio"),
        ({"containers": {"lxd": None}, "kernel": {"a.b": 1}},
         "containers.lxd: is unknown; accepted are containerd, docker, podman, crio"),
        ({"containers": {"docker": 5}}, "containers.docker: 5 was given; a mapping is accepted"),
        (docker(shm="1GiB"), "containers.docker.shm: is unknown; accepted are limits, shm_size, tasks"),
        (docker(shm_size="1G"), f"containers.docker.shm_size: '1G' is not a limit: {UNITS}"),
        (docker(shm_size=0), "containers.docker.shm_size: a size above 0 is accepted"),
        (docker(shm_size="unlimited"), "containers.docker.shm_size: a size above 0 is accepted"),
        (docker(limits={"nofile": {"soft": 5}}), "containers.docker.limits.nofile: Docker needs soft and hard, or one value"),
        (docker(limits={"nofile": "unlimited"}), "containers.docker.limits.nofile: 'unlimited' lets no container start; a number is accepted"),
        (docker(limits={"as": 5}), f"containers.docker.limits.as: is unknown; accepted are {ITEMS.replace(' as,', '')}"),
        ({"processes": {"user": "x"}}, "processes: a mapping was given; a list of mappings is accepted"),
        *(
            (
                {"processes": [{**chosen, "limits": {"core": 0}}]},
                "processes[0]: exactly one of user, name, unit is needed, as a text",
            )
            for chosen in ({}, {"user": "a", "name": "b"}, {"user": 5}, {"unit": None})
        ),
        ({"processes": [{"user": "x", "limits": {}}]}, "processes[0].limits: is empty, so nothing would be required"),
        ({"processes": [{"user": "x", "limits": {"chroot": "/x"}}]}, f"processes[0].limits.chroot: is unknown; accepted are {ITEMS}"),
    ],
)  # fmt: skip
def test_what_is_refused(policy: object, problem: str) -> None:
    assert refusal(policy) == [problem]


def test_an_unknown_profile_is_refused() -> None:
    assert refusal(None, "trainig") == [
        "profile: 'trainig' is unknown; accepted are dataloader, deepspeed-zero3-offload, inference,"
        " kubernetes-node, multi-node, none, simpletuner, slurm-node, training, transformers, trl,"
        " webdataset, workstation, each with @1 for that version of it"
    ]


@pytest.mark.parametrize(
    ("policy", "paths"),
    [
        ({"containers": {"docker": {"limits": {"fd": None}}}}, ["containers.docker.limits.fd"]),
        ({"containers": {"docker": {"task": None, "ulimit": None}}},
         ["containers.docker.task", "containers.docker.ulimit"]),
        ({"containers": {"lxd": None, "docker": {"task": None}}},
         ["containers.lxd", "containers.docker.task"]),
        ({"services": {"logind": {"ipc": None}}}, ["services.logind.ipc"]),
        ({"services": {"units": {"a.service": {"nofile": 4, "fd": None}}}},
         ["services.units.a.service.fd"]),
        ({"training": {"wokers": None}}, ["training.wokers"]),
        ({"kernel": {"nofile": None}}, ["kernel.nofile"]),
        ({"services": {"units": {"docker": None}}}, ["services.units.docker"]),
        ({"services": {"units": {"train.timer": None}}}, ["services.units.train.timer"]),
        ({"services": {"units": {"a b": None, "c.d": None}}},
         ["services.units.a b", "services.units.c.d"]),
        ({"shared_memory": {"sise": None}}, ["shared_memory.sise"]),
    ],
)  # fmt: skip
def test_an_unknown_key_that_would_remove_is_refused_at_any_depth(
    policy: dict[str, object], paths: list[str]
) -> None:
    assert [one.partition(":")[0] for one in refusal(policy)] == paths


@pytest.mark.parametrize(
    "policy",
    [
        {"containers": {"docker": None, "podman": {"limits": {"nofile": None}}}},
        {"services": {"logind": {"remove_ipc": None}}},
        {"kernel": {"fs.file-max": None}},
    ],
)
def test_a_known_key_without_a_value_removes_it(policy: dict[str, object]) -> None:
    load_policy(policy, "training")


def test_an_unknown_key_is_refused_whatever_it_holds() -> None:
    assert refusal({"sesions": None}) == [
        one for one in refusal({"sesions": 1}) if "sesions" in one
    ]


def test_the_empty_profile_alone_is_refused() -> None:
    assert refusal(None) == ["policy: is empty, so nothing would be required"]


def test_every_violation_is_told_at_once_in_the_order_of_the_policy() -> None:
    policy = {
        "sessions": [
            {"users": "bob", "limits": {"nofile": "x"}, "user": 1},
            {"users": ["a b"], "limits": {"nofile": {"soft": 2, "hard": 1}}},
        ],
        "kernel": {"fs.file-max": -5, "x": 1},
        "containers": {"docker": {"limits": {"nofile": "unlimited"}, "shm_size": 0}},
        "processes": [{"limits": {"core": None}}],
        "more": 1,
    }
    assert [problem.partition(": ")[0] for problem in refusal(policy)] == [
        "policy.more",
        "sessions[0].user",
        "sessions[0].users",
        "sessions[0].limits.nofile",
        "sessions[1].users",
        "sessions[1].limits.nofile",
        "kernel.fs.file-max",
        "kernel.x",
        "containers.docker.limits.nofile",
        "containers.docker.shm_size",
        "processes[0].limits.core",
        "processes[0]",
    ]


@pytest.mark.parametrize("value", [{"a": {}}, ["a"], {"a": ["b"]}])
def test_what_is_nested_too_deeply_is_refused(value: object) -> None:
    for _ in range(100_000):
        value = {"a": value} if isinstance(value, dict) else [value]
    assert refusal({"x": value, "kernel": {"fs.x": 1}})
    assert refusal(session(users=[value], nofile=value))


@pytest.mark.parametrize(
    ("base", "over", "merged"),
    [
        ({"a": 1, "b": 2}, {"b": 3, "c": 4}, {"a": 1, "b": 3, "c": 4}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"c": 3}}, {"a": {"b": 1, "c": 3}}),
        ({"a": {"b": 1}}, {"a": None}, {}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": None}}, {"a": {"c": 2}}),
        ({"a": {"b": 1}}, {"a": 5}, {"a": 5}),
        ({"a": 5}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({"a": [1]}, {"a": [2]}, {"a": [2]}),
        ({"a": {"min": 1}}, {"a": {"exact": 5}}, {"a": {"exact": 5}}),
        ({"a": {"min": 1}}, {"a": {"max": 5}}, {"a": {"min": 1, "max": 5}}),
        ({}, {"a": None, "b": {"c": None}}, {"b": {}}),
    ],
)
def test_a_policy_is_merged_over_its_profile(base: object, over: object, merged: object) -> None:
    assert merge(base, over) == merged


def test_merging_leaves_the_profiles_alone() -> None:
    before = repr(PROFILES)
    load_policy(
        {"kernel": {"fs.nr_open": None}, "containers": {"docker": {"shm_size": None}}}, "training"
    )
    assert repr(PROFILES) == before


@pytest.mark.parametrize("key", ["fs.file-max", "fs/file-max", "/fs/file-max"])
def test_a_sysctl_meets_that_of_the_profile_however_it_is_spelt(key: str) -> None:
    assert load_policy({"kernel": {key: 5}}, "training").get("kernel")[
        "fs.file-max"
    ] == KernelValue(5)
    assert "fs.file-max" not in load_policy({"kernel": {key: None}}, "training").get("kernel")


def test_an_exact_value_takes_the_place_of_a_minimum() -> None:
    policy = load_policy({"kernel": {"fs.nr_open": {"exact": 2097152}}}, "training")
    assert policy.get("kernel")["fs.nr_open"] == KernelValue(exact="2097152")


@pytest.mark.parametrize(
    ("key", "normal"),
    [
        ("fs.file-max", "fs.file-max"),
        ("fs/file-max", "fs.file-max"),
        ("/fs/file-max", "fs.file-max"),
        ("net/ipv4/conf/eth0.100/forwarding", "net.ipv4.conf.eth0/100.forwarding"),
        ("net.ipv4.conf.eth0/100.forwarding", "net.ipv4.conf.eth0/100.forwarding"),
        ("x", "x"),
    ],
)
def test_the_spelling_of_a_sysctl(key: str, normal: str) -> None:
    assert normal_key(key) == normal
    assert normal_key(normal) == normal


WORDS = st.sampled_from(
    [
        "sessions",
        "users",
        "limits",
        "nofile",
        "memlock",
        "nice",
        "chroot",
        "soft",
        "hard",
        "max",
        "kernel",
    ]
    + [
        "fs.file-max",
        "min",
        "exact",
        "containers",
        "docker",
        "shm_size",
        "processes",
        "user",
        "unit",
        "*",
        "64KiB",
    ]
)
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=9), WORDS)
TREES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(WORDS | st.text(max_size=5), inner, max_size=5)
    ),
    max_leaves=25,
)


@given(TREES, st.sampled_from(sorted(PROFILES)))
@example({"kernel": {"exact": float("nan")}}, "none")
def test_anything_is_a_policy_or_refused(tree: object, profile: str) -> None:
    problems: list[str] = []
    try:
        assert load_policy(tree, profile) != Policy()
    except PolicyError as exc:
        problems = exc.problems or ["no reason"]
    assert all(re.match(r"[^ ].*: ", problem, re.DOTALL) for problem in problems)
