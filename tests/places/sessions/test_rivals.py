# SPDX-License-Identifier: GPL-3.0-or-later
"""What is kept of very many lines gives a user the same session as all of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from mlhost_limits.core.distribution import Dialect
from mlhost_limits.core.values import User
from mlhost_limits.sessions.limits_conf import LimitsLine
from mlhost_limits.sessions.pam_limits import LIMITS_CONF, read_lines, resolve_limits
from mlhost_limits.sessions.rivals import FEW, keep_rivals

ALICE = User("alice", 1001, 1001, frozenset({"alice", "ml"}), frozenset({1001, 1002}))
ROOT = User("root", 0, 0, frozenset({"root"}), frozenset({0}))
LINES = st.builds(
    "{} {} {} {}".format,
    st.sampled_from(("alice", "*", "@ml", "1000:", "bob", "root", "@root", ":0", "%ml")),
    st.sampled_from(("soft", "hard", "-", "Soft")),
    st.sampled_from(("nofile", "nproc", "maxlogins", "rttime", "nothing")),
    st.sampled_from(("1", "5", "x", "unlimited", "-1", "70000")),
)


def read(rows: list[str], dialect: Dialect) -> list[LimitsLine]:
    return list(read_lines({LIMITS_CONF: "\n".join(rows)}, dialect))


@given(
    st.lists(st.one_of(LINES, st.sampled_from(("bob -", "@ml -", "%1001: -"))), max_size=60),
    st.sampled_from((Dialect(), Dialect(1023, wildcard_root=False))),
    st.sampled_from((ALICE, ROOT)),
)
def test_a_session_is_predicted_as_from_all_lines(
    rows: list[str], dialect: Dialect, user: User
) -> None:
    lines = read(rows, dialect)
    kept = keep_rivals(lines, user, dialect, few=0)
    assert set(kept) <= set(lines)
    every, some = (resolve_limits(list(one), user, dialect) for one in (lines, kept))
    assert every.stopped_by == some.stopped_by
    assert {key: bound.winner for key, bound in every.bounds.items()} == {
        key: bound.winner for key, bound in some.bounds.items()
    }


def test_of_many_lines_of_one_kind_the_first_the_last_and_the_extreme_are_kept() -> None:
    rows = [f"* soft nofile {value}" for value in (*range(100, 200), 9999, *range(3, 203), 2)]
    rows += [f"bob soft nofile {value}" for value in range(5000)]
    kept = [int(line.fields[3]) for line in keep_rivals(read(rows, Dialect()), ALICE, Dialect())]
    assert kept[:20] == list(range(100, 120))
    assert kept[20] == 9999
    assert kept[-2:] == [202, 2]
    assert len(kept) <= 62


def test_of_equal_extremes_the_last_is_kept() -> None:
    rows = [f"* soft nofile {value}" for value in (*[100] * 50, 2, 9999, 2, 9999, *[100] * 50)]
    kept = {line.line for line in keep_rivals(read(rows, Dialect()), ALICE, Dialect(), few=50)}
    assert {51, 52, 53, 54} & kept == {53, 54}


def test_what_ends_the_reading_or_would_mean_root_elsewhere_is_kept() -> None:
    debian = Dialect(1023, wildcard_root=False)
    rows = ["bob soft nofile 5"] * FEW
    lines = read([*rows, "* soft nofile 5", "root -", *rows], debian)
    assert [line.line for line in keep_rivals(lines, ROOT, debian)] == [FEW + 1, FEW + 2]


def test_few_lines_are_all_kept() -> None:
    lines = read(["bob soft nofile 5"] * FEW, Dialect())
    assert keep_rivals(lines, ALICE, Dialect()) == tuple(lines)
