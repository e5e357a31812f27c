# SPDX-License-Identifier: GPL-3.0-or-later
"""What the place of Slurm answers, and for whom."""

from __future__ import annotations

from typing import Any

import pytest
from mlhost_limits.core.policy import CheckOptions, Policy, ProvisionOptions
from mlhost_limits.host.look import Look
from mlhost_limits.slurm import check, explain, provision
from mlhost_limits.slurm.place import Slurm, Steps
from mlhost_limits.slurm.policy import SlurmPolicy


@pytest.mark.parametrize("name", ["slurm", "slurm/gpu", "slurm@ssh", "slurm/gpu@ssh"])
def test_a_job_is_explained(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(explain, "trace_slurm", lambda place, item, _look: [(place, item)])
    assert Slurm().explain("job", name, "nofile", Look()) == [(f"job:{name}", "nofile")]


@pytest.mark.parametrize(("kind", "name"), [("session", "slurm"), ("job", "other"), ("job", "")])
def test_what_is_not_a_job_of_slurm_is_left_to_others(kind: str, name: str) -> None:
    assert Slurm().explain(kind, name, "nofile", Look()) is None


def test_the_codes_of_each_name() -> None:
    found = [(name, code) for name, codes in Slurm().codes() for code in codes]
    assert ("job:slurm", "slurm-propagates") in found
    assert ("job:slurm", "slurm-unit-confines") in found
    assert any(name == "job:slurm@ssh" for name, _code in found)


@pytest.mark.parametrize(("canary", "asks"), [("auto", True), ("never", False)])
def test_no_job_is_run_where_none_shall_be(
    monkeypatch: pytest.MonkeyPatch, canary: str, asks: bool
) -> None:
    monkeypatch.setattr(check, "check_slurm", lambda *words: words)
    options = CheckOptions(canary=canary, users=("alice",))
    found: Any = Slurm().check(SlurmPolicy({}), options, Look())
    assert found[1:4] == (("alice",), asks, "quiet")


def test_steps_are_checked_of_the_same_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "check_steps", lambda asked, _look: [asked])
    problems: list[str] = []
    policy = Steps().read_policy({"cpus": 2}, problems)
    assert policy == Slurm().read_policy({"cpus": 2}, problems)
    assert policy
    assert (policy.size, problems) == ((None, 2), [])
    assert Steps().check(policy, CheckOptions(), Look()) == [policy]


@pytest.mark.parametrize("asked", [{}, {"slurm": SlurmPolicy({}, ("gpu",))}])
def test_a_host_is_made_as_the_policy_and_the_switches_say(
    monkeypatch: pytest.MonkeyPatch, asked: dict[str, SlurmPolicy]
) -> None:
    monkeypatch.setattr(provision, "prepare_slurm", lambda *words: words)
    options = ProvisionOptions(absent=True, switches={"slurm_conf": True})
    found: Any = Slurm().prepare(Policy(asked), options, 7)
    assert found == (asked.get("slurm", SlurmPolicy({})), 7, (False, True, True), False)
