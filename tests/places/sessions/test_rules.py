# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules of a policy compete for a user as lines of limits.conf do, and ``*`` is never root."""

from __future__ import annotations

import pytest
from mlhost_limits.core.reader import Limit
from mlhost_limits.core.values import User
from mlhost_limits.sessions.policy import SessionRule
from mlhost_limits.sessions.rules import (
    covers_everyone,
    find_domain,
    find_limits,
    find_samples,
    named_groups,
    named_users,
)

ROOT = User("root", 0, 0, frozenset({"root"}), frozenset({0}))
ALICE = User("alice", 1001, 2001, frozenset({"ml"}), frozenset({2001}))


def rule(users: str, **values: int) -> SessionRule:
    return SessionRule(tuple(users.split()), {item: Limit(value) for item, value in values.items()})


@pytest.mark.parametrize(
    ("rules", "user", "expected"),
    [
        ([rule("*", nofile=1)], ALICE, {"nofile": 1}),
        ([rule("*", nofile=1)], ROOT, {}),
        ([rule("* root", nofile=1)], ROOT, {"nofile": 1}),
        ([rule("@root", nofile=1)], ROOT, {}),
        ([rule("*", nofile=1), rule("*", nofile=2)], ALICE, {"nofile": 2}),
        ([rule("alice", nofile=1), rule("*", nofile=2)], ALICE, {"nofile": 1}),
        ([rule("@ml", nofile=1), rule("*", nofile=2)], ALICE, {"nofile": 1}),
        ([rule("@ml", nofile=1), rule("1000:", nofile=2)], ALICE, {"nofile": 2}),
        ([rule("* alice", nofile=1), rule("@ml", nofile=2)], ALICE, {"nofile": 1}),
        ([rule("alice", nofile=1), rule("*", core=2)], ALICE, {"nofile": 1, "core": 2}),
        ([rule("bob", nofile=1)], ALICE, {}),
        ([], ALICE, {}),
    ],
)
def test_what_a_user_is_owed(
    rules: list[SessionRule], user: User, expected: dict[str, int]
) -> None:
    assert {item: limit.soft for item, limit in find_limits(rules, user).items()} == expected


@pytest.mark.parametrize(
    ("rules", "user", "domain"),
    [
        ([rule("* root", nofile=1)], ROOT, "root"),
        ([rule("* root", nofile=1)], ALICE, "*"),
        ([rule("* @ml", nofile=1)], ALICE, "@ml"),
        ([rule("alice", nofile=1), rule("*", nofile=2)], ALICE, "alice"),
        ([rule("*", core=1)], ALICE, ""),
    ],
)
def test_for_whom_the_policy_asks_it(rules: list[SessionRule], user: User, domain: str) -> None:
    assert find_domain(rules, user, "nofile") == domain


RULES = [rule("* bob @ml 1000: %x"), rule("root bob @hpc @ml @:2001 :0")]


def test_who_is_named() -> None:
    assert named_users(RULES) == ["bob", "root"]
    assert named_groups(RULES) == ["ml", "hpc"]


def test_whose_sessions_were_opened_for_those_that_no_rule_names() -> None:
    places = ["session:carol@sshd", "session:bob@su", "session:alice@sshd", "kernel"]
    assert find_samples(RULES, places) == ["alice", "carol"]
    assert find_samples(None, places) == ["alice", "bob", "carol"]
    assert find_samples(RULES, ["kernel"]) == []


@pytest.mark.parametrize(
    ("users", "everyone"),
    [("*", True), ("1000:", True), ("@:5", True), ("bob @ml", False), ("", False)],
)
def test_rules_that_mean_users_they_do_not_name(users: str, everyone: bool) -> None:
    assert covers_everyone([rule(users)]) is everyone
