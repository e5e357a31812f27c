# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan for daemon.json states what the policy asks, refuses what would stop Docker, and can
be taken back."""

from __future__ import annotations

import json

import pytest
from mlhost_limits.containers.policy import ContainerPolicy
from mlhost_limits.core.plan import SectionPlan
from mlhost_limits.core.reader import Limit
from mlhost_limits.core.values import UNLIMITED, Rlimit
from mlhost_limits.docker.dockerd_flags import CONFIG_PATH
from mlhost_limits.docker.plan import DockerState, plan_docker
from mlhost_limits.docker.record import Record, find_record_path, format_record

POLICY = ContainerPolicy(
    {"nofile": Limit(65536, 1048576), "memlock": Limit(UNLIMITED, UNLIMITED)}, 2**30
)
STATED = {
    "default-ulimits": {
        "nofile": {"Name": "nofile", "Hard": 1048576, "Soft": 65536},
        "memlock": {"Name": "memlock", "Hard": -1, "Soft": -1},
    },
    "default-shm-size": "1G",
}


def plan(
    content: bytes | None,
    policy: ContainerPolicy = POLICY,
    nr_open: int | None = 1048576,
    absent: bool = False,
    wait: str = "",
    record: bytes | None = None,
) -> SectionPlan:
    state = DockerState(content, wait=wait, record=record)
    return plan_docker(policy, state, nr_open, absent)


def after(content: bytes | None, planned: SectionPlan) -> bytes | None:
    assert not planned.problems
    for edit in planned.edits:
        assert edit.kind
        if edit.path == CONFIG_PATH:
            assert edit.before == content
            stated: bytes | None = edit.after
            return stated
    return content


@pytest.mark.parametrize("content", [None, b"", b"{}", b"{}\n", b" \n"])
def test_what_is_stated_where_nothing_was(content: bytes | None) -> None:
    stated = after(content, plan(content))
    assert json.loads(stated or b"") == STATED


def test_other_keys_keep_their_values_and_order() -> None:
    content = b'{"runtimes": {"nvidia": {"path": "x"}}, "default-ulimits": {"core": {"Name": "core", "Hard": 0, "Soft": 0}}}\n'
    merged = json.loads(after(content, plan(content)) or b"")
    assert list(merged) == ["runtimes", "default-ulimits", "default-shm-size"]
    assert set(merged["default-ulimits"]) == {"core", "nofile", "memlock"}


@pytest.mark.parametrize(
    "policy", [ContainerPolicy(), ContainerPolicy({"nofile": Limit(max=5)}, None)]
)
@pytest.mark.parametrize("content", [None, b"", b"{"])
def test_nothing_to_state_changes_nothing(content: bytes | None, policy: ContainerPolicy) -> None:
    assert plan(content, policy) == SectionPlan()


def test_tasks_are_a_note_since_no_key_states_them() -> None:
    done = plan(b"{}", ContainerPolicy({}, None, 500))
    (note,) = done.notes
    assert (done.edits, done.problems) == ((), ())
    assert note.startswith(
        "containers.docker.tasks: checked and not set, because daemon.json has no"
    )
    assert plan(b"{}", ContainerPolicy({}, None, 500), absent=True) == SectionPlan()


def test_an_item_that_is_only_bounded_above_is_not_set() -> None:
    policy = ContainerPolicy({"nofile": Limit(max=5), "core": Limit(0, 0)}, None)
    assert (policy.stated, policy.shm_size) == ({"core": Rlimit(0, 0)}, None)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"{", f"{CONFIG_PATH}:1:2: Expecting a property name in double quotes"),
        (b"[]", f"{CONFIG_PATH}:1:1: Expecting an object"),
        (b'{"a": "\xff"}', f"{CONFIG_PATH}: byte 7 is not UTF-8: write it as UTF-8"),
    ],
)
def test_a_file_that_docker_cannot_read_is_refused(content: bytes, problem: str) -> None:
    """Where something is to be written or given back, and nowhere else."""
    refused = SectionPlan(problems=(problem,))
    record = format_record(Record("{}", "{}", {"nofile": Rlimit(24, 24)})).encode()
    assert plan(content) == plan(content, absent=True, record=record) == refused
    assert plan(content, absent=True) == SectionPlan()


def test_a_nofile_that_no_container_can_have_is_refused() -> None:
    problem = "default-ulimits.nofile: 1048576 is above fs.nr_open, 1000: no container starts"
    assert plan(b"", nr_open=1000) == SectionPlan(problems=(problem,))
    assert plan(b"", nr_open=None).problems == ()


def test_docker_may_come_later() -> None:
    notes = (f"{CONFIG_PATH}: takes effect once Docker is installed",)
    assert plan(None, wait="Docker is installed").notes == notes


def test_what_stands_there_already_is_not_ours() -> None:
    """It takes no edit to state it, and its removal takes nothing away."""
    stated = after(b"{}", plan(b"{}"))
    assert plan(stated) == plan(stated, absent=True) == SectionPlan()


def test_a_doubt_is_a_note() -> None:
    """What may or may not let a container start is said, and stands in nobody's way."""
    content = b'{"default-ulimits": {"stack": {"Name": "stack", "Hard": 9, "Soft": 9}}}'
    doubt = "default-ulimits.stack: soft 9 may be too low for a container to start"
    assert plan(content).notes == (f"{CONFIG_PATH}:1: {doubt}",)


def test_the_record_is_written_first_and_removed_last_and_is_shown_to_nobody() -> None:
    path = find_record_path(CONFIG_PATH)
    record, file = plan(None).edits
    assert (record.path, file.path) == (path, CONFIG_PATH)
    assert (record.mode, record.hidden, file.mode, file.hidden) == (0o600, True, 0o644, False)
    last = plan(file.after, absent=True, record=record.after).edits[-1]
    assert (last.path, last.after, last.hidden) == (path, None, True)
