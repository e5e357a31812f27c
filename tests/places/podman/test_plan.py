# SPDX-License-Identifier: GPL-3.0-or-later
"""Our drop-in gives what the policy asks for, keeps what others state, and goes without a trace."""

from __future__ import annotations

import pytest
from mlhost_limits.containers.policy import ContainerPolicy
from mlhost_limits.core.plan import SectionPlan
from mlhost_limits.core.reader import Limit
from mlhost_limits.core.values import UNLIMITED, Rlimit
from mlhost_limits.podman.containers_conf import (
    DROP_INS,
    MAIN,
    OWN,
    order_files,
    read_conf,
    resolve,
)
from mlhost_limits.podman.plan import PodmanState, find_lost, plan_podman

C = "[containers]\n"
LATER = f"{DROP_INS}/95-site.conf"
POLICY = ContainerPolicy(
    {
        "nofile": Limit(65536, 1048576),
        "memlock": Limit(UNLIMITED, UNLIMITED),
        "stack": Limit(max=2**30),
    },
    8 * 2**30,
)
OURS = """\
# Managed by mlhost.limits: changes made here are overwritten.
[containers]
default_ulimits = [
  "memlock=-1:-1",
  "nofile=65536:1048576",
]
shm_size = "8589934592"
"""


def plan(files: dict[str, str], policy: ContainerPolicy = POLICY, **options: bool) -> SectionPlan:
    return plan_podman(policy, PodmanState(files), 1048576, **options)


def apply(files: dict[str, str], done: SectionPlan) -> dict[str, str]:
    """Return the files after a plan."""
    after = dict(files)
    for edit in done.edits:
        if edit.after is None:
            del after[edit.path]
        else:
            after[edit.path] = edit.after.decode("latin-1")
    return after


def effective(files: dict[str, str]) -> dict[str, tuple[int, int]]:
    stated = [read_conf(path, files[path]) for path in order_files(files)]
    return {item: tuple(one.limit) for item, one in resolve(stated).ulimits.items()}


def test_our_file_holds_what_is_asked_for() -> None:
    done = plan({})
    assert apply({}, done) == {OWN: OURS}
    assert (done.problems, done.shortfalls, done.notes) == ((), (), ())
    assert plan({OWN: OURS}).edits == ()


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        (ContainerPolicy({}, 65536), f'{OURS.splitlines()[0]}\n{C}shm_size = "65536"\n'),
        (ContainerPolicy({}, tasks=16384), f"{OURS.splitlines()[0]}\n{C}pids_limit = 16384\n"),
        (ContainerPolicy({}, tasks=UNLIMITED), f"{OURS.splitlines()[0]}\n{C}pids_limit = -1\n"),
        (ContainerPolicy({"core": Limit(0, 0)}),
         f'{OURS.splitlines()[0]}\n{C}default_ulimits = [\n  "core=0:0",\n]\n'),
    ],
)  # fmt: skip
def test_what_is_not_asked_for_is_not_stated(policy: ContainerPolicy, text: str) -> None:
    assert apply({}, plan({}, policy)) == {OWN: text}


def test_what_others_state_for_other_items_is_kept() -> None:
    files = {MAIN: C + 'default_ulimits = [\n "core=0",\n "nofile=7",\n]\n'}
    after = apply(files, plan(files))
    assert after[MAIN] == files[MAIN]
    assert f'  # {MAIN}:3\n  "core=0:0",\n' in after[OWN]
    assert effective(after) == {
        "nofile": (65536, 1048576),
        "memlock": (UNLIMITED, UNLIMITED),
        "core": (0, 0),
    }
    assert plan(after).edits == ()
    assert apply(after, plan(after, absent=True)) == files


@pytest.mark.parametrize(
    ("value", "beats"), [("9", True), ("0", True), ("500", False), ("-1", False)]
)
def test_a_later_bound_on_tasks_is_reported_and_silenced_where_asked(
    value: str, beats: bool
) -> None:
    files = {LATER: f"{C}pids_limit = {value}\n"}
    asked = ContainerPolicy({}, tasks=500)
    done = plan(files, asked)
    told = [f'{LATER}:2 "pids_limit = {value}" beats our "pids_limit = 500"'] if beats else []
    assert [str(one) for one in done.shortfalls] == told
    after = apply(files, plan(files, asked, override=True))
    silenced = f"#mlhost.limits# pids_limit = {value}\n" if beats else f"pids_limit = {value}\n"
    assert after[LATER] == f"{C}{silenced}"
    assert apply(after, plan(after, asked, absent=True)) == files


SITE = (
    C
    + 'default_ulimits = [\n  "nofile=1024:4096",\n  "cpu=60",\n]\nshm_size = "1g"\npids_limit = 9\n'
)


def test_a_later_file_is_reported_and_left() -> None:
    done = plan({LATER: SITE})
    assert [str(one) for one in done.shortfalls] == [
        f'{LATER}:3 ""nofile=1024:4096"," beats our "nofile=65536:1048576"',
        f'{LATER}:2 "default_ulimits = [" beats our "memlock=-1:-1"',
        f'{LATER}:6 "shm_size = "1g"" beats our "shm_size = "8589934592""',
    ]
    assert apply({LATER: SITE}, done)[LATER] == SITE


def test_a_later_file_is_made_ineffective_where_asked() -> None:
    done = plan({LATER: SITE}, override=True)
    after = apply({LATER: SITE}, done)
    assert all(one.neutralized for one in done.shortfalls)
    assert after[LATER].splitlines()[-1] == "pids_limit = 9"
    assert effective(after) == {
        "nofile": (65536, 1048576),
        "memlock": (UNLIMITED, UNLIMITED),
        "cpu": (60, 60),
    }
    assert plan(after, override=True).edits == ()
    assert apply(after, plan(after))[LATER] == SITE
    assert apply(after, plan(after, absent=True)) == {LATER: SITE}


@pytest.mark.parametrize(
    "text",
    [
        C + 'default_ulimits = ["nofile=70000:1048576", "memlock=-1", {append=true}]',
        C + 'default_ulimits = ["cpu=60", {append=true}]',
        C + 'shm_size = "9g"',
        C + 'shm_size = "8589934592"',
        C + "pids_limit = 9",
    ],
)
def test_a_later_file_that_gives_no_less_is_none_to_report(text: str) -> None:
    done = plan({LATER: text})
    assert done.shortfalls == ()
    assert apply({LATER: text}, done)[OWN] == OURS


def test_each_file_answers_for_its_own_lines() -> None:
    """One that states a size alone is not at fault for the list of another."""
    sized = f"{DROP_INS}/96-size.conf"
    files = {
        LATER: C + 'default_ulimits = ["nofile=10", {append=true}]\n',
        sized: C + 'shm_size = "1"\n',
    }
    assert [one.foreign.place for one in plan(files).shortfalls] == [f"{LATER}:2", f"{sized}:2"]


def test_each_limit_of_a_file_is_looked_at() -> None:
    files = {LATER: C + 'default_ulimits = ["memlock=5", {append=true}]\n'}
    (found,) = plan(files).shortfalls
    assert "memlock" in found.ours


def test_a_list_that_gives_enough_stays_where_a_size_beside_it_goes() -> None:
    lists = 'default_ulimits = [\n"nofile=70000:1048576",\n{append=true}\n]\n'
    files = {LATER: f'{C}{lists}shm_size = "1g"\n'}
    after = apply(files, plan(files, override=True))
    assert after[LATER] == f'{C}{lists}#mlhost.limits# shm_size = "1g"\n'


def test_what_lets_no_container_start_is_refused() -> None:
    done = plan_podman(POLICY, PodmanState({}), 65536)
    assert done.edits == ()
    assert done.problems == (
        "containers.podman.limits.nofile: 1048576 is above fs.nr_open 65536,"
        " so no container would start",
    )


def test_nothing_is_written_beside_what_cannot_be_read() -> None:
    done = plan({MAIN: "x ="})
    assert (done.edits, done.problems) == (
        (),
        (f"{MAIN}:1: no value; put it right first: nothing is written beside it",),
    )


def test_a_host_without_podman_is_told() -> None:
    done = plan_podman(POLICY, PodmanState({}, installed=False), None)
    assert done.notes == (f"{OWN}: takes effect once Podman is installed",)


SESSION = {"memlock": Rlimit(8 * 2**20, 8 * 2**20), "nofile": Rlimit(1024, 1048576)}


def test_users_whose_containers_would_not_start_are_told() -> None:
    (problem,) = find_lost("alice", {OWN: OURS}, SESSION)
    assert problem.startswith(
        "containers.podman: no container of alice would start: memlock unlimited"
    )
    assert "8MiB; raise that in sessions" in problem


@pytest.mark.parametrize(
    ("files", "session"),
    [
        ({OWN: OURS}, {}),
        ({OWN: C + 'default_ulimits = ["nofile=1024:1048576"]'}, SESSION),
        ({OWN: "x ="}, SESSION),
    ],
)
def test_users_who_lose_nothing_are_not(files: dict[str, str], session: dict[str, Rlimit]) -> None:
    assert list(find_lost("alice", files, session)) == []
