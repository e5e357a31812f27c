# SPDX-License-Identifier: GPL-3.0-or-later
"""What the place of Podman answers, and for whom."""

from __future__ import annotations

from typing import Any

import pytest
from mlhost_limits.containers.policy import ContainerPolicy
from mlhost_limits.core.policy import CheckOptions, Policy, ProvisionOptions
from mlhost_limits.host.look import Look
from mlhost_limits.podman import check, explain, provision
from mlhost_limits.podman.place import _SHARE_OF_A_USER, Podman


@pytest.mark.parametrize(
    ("kind", "name", "called"),
    [
        ("new-container", "podman", ("new", "")),
        ("new-container", "podman/alice", ("new", "alice")),
        ("container", "podman/job", ("running", "container:podman/job")),
        ("container", "podman/alice/job", ("running", "container:podman/alice/job")),
        ("container", "docker/job", None),
        ("new-container", "docker", None),
        ("process", "podman", None),
    ],
)
def test_containers_of_podman_are_explained(
    monkeypatch: pytest.MonkeyPatch, kind: str, name: str, called: object
) -> None:
    monkeypatch.setattr(explain, "trace_podman", lambda user, _item, _look: ("new", user))
    monkeypatch.setattr(explain, "trace_running", lambda place, _item, _look: ("running", place))
    assert Podman().explain(kind, name, "nofile", Look()) == called


def test_the_codes_of_each_name() -> None:
    found = [(name, code) for name, codes in Podman().codes() for code in codes]
    assert ("new-container:podman", "podman-conf-line") in found
    assert ("container:podman/NAME", "podman-container-created") in found
    assert ("container:podman/NAME", "quadlet-line") in found


def test_a_user_s_containers_may_take_a_part_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "check_podman", lambda *words: words)
    asked = ContainerPolicy({})
    found: Any = Podman().check(asked, CheckOptions(time_limit=100.0), Look())
    assert found[:2] == (asked, "auto")
    assert found[3] == 100.0 * _SHARE_OF_A_USER
    assert 0 < _SHARE_OF_A_USER < 1


@pytest.mark.parametrize(
    ("sections", "rules"), [(None, ("a",)), (("podman",), ()), (("sessions",), ("a",))]
)
def test_sessions_are_made_before_containers_where_both_are_asked(
    monkeypatch: pytest.MonkeyPatch, sections: tuple[str, ...] | None, rules: tuple[str, ...]
) -> None:
    monkeypatch.setattr(provision, "prepare_podman", lambda *words: words)
    policy = Policy({"sessions": ["a"], "podman": ContainerPolicy({}, 5)})
    options = ProvisionOptions(sections, override=True)
    found: Any = Podman().prepare(policy, options, 7)
    assert found == (ContainerPolicy({}, 5), 7, False, True, rules)
    found = Podman().prepare(Policy({}), options, 7)
    assert found == (ContainerPolicy({}), 7, False, True, ())
