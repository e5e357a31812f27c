# SPDX-License-Identifier: GPL-3.0-or-later
"""Our drop-in of crio.conf gives what is asked, keeps what others state, and goes to the byte."""

from __future__ import annotations

import pytest
from mlhost_limits.containers.policy import ContainerPolicy
from mlhost_limits.core.plan import SectionPlan
from mlhost_limits.core.reader import Limit
from mlhost_limits.core.values import UNLIMITED, Rlimit
from mlhost_limits.crio.crio_conf import DROP_INS, MAIN, OWN, read_all
from mlhost_limits.crio.plan import ENGINE, find_beating, find_refusals
from mlhost_limits.crio.policy import read_crio
from mlhost_limits.podman.containers_conf import resolve
from mlhost_limits.podman.plan import PodmanState, plan_podman

R = "[crio.runtime]\n"
LATER = f"{DROP_INS}/zz"
POLICY = ContainerPolicy(
    {"nofile": Limit(65536, 1048576), "memlock": Limit(UNLIMITED, UNLIMITED)}, tasks=16384
)
OURS = """\
# Managed by mlhost.limits: changes made here are overwritten.
[crio.runtime]
default_ulimits = [
  "memlock=-1:-1",
  "nofile=65536:1048576",
]
pids_limit = 16384
"""


def plan(files: dict[str, str], nr_open: int | None = 1048576, **how: bool) -> SectionPlan:
    return plan_podman(POLICY, PodmanState(files), nr_open, engine=ENGINE, **how)


def apply(files: dict[str, str], done: SectionPlan) -> dict[str, str]:
    after = {**files, **{one.path: (one.after or b"").decode("latin-1") for one in done.edits}}
    gone = {one.path for one in done.edits if one.after is None}
    return {path: text for path, text in after.items() if path not in gone}


def test_our_file_holds_what_is_asked_for_and_a_second_run_changes_nothing() -> None:
    done = plan({})
    assert apply({}, done) == {OWN: OURS}
    assert (done.problems, done.shortfalls, done.notes) == ((), (), ())
    assert plan({OWN: OURS}).edits == ()
    assert apply({OWN: OURS}, plan({OWN: OURS}, absent=True)) == {}


def test_what_others_state_for_other_items_is_repeated() -> None:
    """A list replaces the one before it, so that a container would lose it."""
    files = {MAIN: f'{R}default_ulimits = ["core=0:0", "nofile=5"]\n'}
    text = apply(files, plan(files))[OWN]
    assert '  # /etc/crio/crio.conf:2\n  "core=0:0",\n]\npids_limit' in text
    assert "nofile=5" not in text


def test_a_later_file_that_gives_less_is_told_and_silenced_where_that_is_asked() -> None:
    files = {LATER: f'{R}default_ulimits = ["nofile=5", "cpu=9"]\npids_limit = 5\n'}
    told = [str(one) for one in plan(files).shortfalls]
    assert len(told) == 3  # It leaves memlock out.
    assert f'{LATER}:3 "pids_limit = 5" beats our "pids_limit = 16384"' in told
    after = apply(files, plan(files, override=True))
    given = resolve(read_all(after))
    assert {item: tuple(one.limit) for item, one in given.ulimits.items()} == {
        "nofile": (65536, 1048576), "memlock": (UNLIMITED, UNLIMITED), "cpu": (9, 9)
    }  # fmt: skip
    assert given.tasks
    assert given.tasks.value == 16384
    assert apply(after, plan(after, absent=True)) == files


def test_nothing_is_written_beside_a_file_with_which_crio_does_not_start() -> None:
    files = {MAIN: f'{R}default_ulimits = ["memlock=unlimited"]\n'}
    (problem,) = plan(files).problems
    assert problem.startswith(f"{MAIN}:2: 'memlock=unlimited' is not a limit")


def test_more_than_fs_nr_open_is_refused() -> None:
    (problem,) = plan({}, 65536).problems
    assert problem.startswith("containers.crio.limits.nofile: 1048576 is above fs.nr_open 65536")


def test_more_than_a_crio_without_the_capability_has_is_refused() -> None:
    ceilings = {"memlock": Rlimit(65536, 8388608), "nofile": Rlimit(1024, 1048576)}
    (problem,) = find_refusals(POLICY, ceilings, {})
    assert problem == (
        "containers.crio.limits.memlock: unlimited is above crio's own hard limit, 8MiB, and crio lacks"
        " CAP_SYS_RESOURCE, so that no container would start"
    )
    assert list(find_refusals(POLICY, {}, {"config-dir": f"--config-dir={DROP_INS}/"})) == []


def test_a_crio_that_reads_another_folder_is_told() -> None:
    (problem,) = find_refusals(POLICY, {}, {"config-dir": "--config-dir=/opt/crio.d"})
    assert problem.endswith(f"crio was started with --config-dir=/opt/crio.d and reads no {OWN}")


@pytest.mark.parametrize(("name", "asked"), [("default-ulimits", POLICY), ("pids-limit", POLICY)])
def test_an_option_that_counts_more_is_told(name: str, asked: ContainerPolicy) -> None:
    (note,) = find_beating(asked, {name: f"--{name}=5"})
    assert note == f"crio was started with --{name}=5: {OWN} has no effect beside it"
    assert list(find_beating(ContainerPolicy({}), {name: f"--{name}=5"})) == []


def test_a_policy_asks_for_limits_and_tasks_and_no_size() -> None:
    problems: list[str] = []
    assert read_crio({"limits": {"nofile": 5}, "tasks": 9}, problems) == ContainerPolicy(
        {"nofile": Limit(5, 5)}, tasks=9
    )
    assert (read_crio({}, problems), problems) == (None, [])
    read_crio({"shm_size": "1GiB"}, problems)
    assert len(problems) == 1
