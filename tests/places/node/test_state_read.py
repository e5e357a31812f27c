# SPDX-License-Identifier: GPL-3.0-or-later
"""A kept verdict counts while it is fresh, of the policy in force, and written by who may."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlhost_limits.node.state_read import (
    FRESH,
    Kept,
    Verdict,
    format_state,
    read_kept,
    read_verdict,
    stamp_policy,
)

FAILS = Verdict("fail", ("kernel: x", "kernel: y"))


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "policy.json"
    path.write_text("{}")
    return path


def keep(policy: Path, verdict: Verdict = FAILS, at: float = 1000.0) -> str:
    path = policy.with_name("state.json")
    path.write_text(format_state(verdict, stamp_policy(str(policy)), at))
    return str(path)


def test_a_verdict_is_read_as_it_was_kept(policy: Path) -> None:
    assert read_verdict(str(policy), keep(policy), 1000.0) == FAILS
    path = policy.with_name("now.json")
    path.write_text(format_state(FAILS, stamp_policy(str(policy))))
    assert read_verdict(str(policy), str(path)) == FAILS


@pytest.mark.parametrize(
    ("age", "counts"), [(0, True), (FRESH, True), (FRESH + 1, False), (-1, False)]
)
def test_it_counts_while_it_is_fresh(policy: Path, age: float, counts: bool) -> None:
    found = read_verdict(str(policy), keep(policy), 1000.0 + age)
    assert (found == FAILS) == counts


def test_one_of_another_policy_does_not_count(policy: Path) -> None:
    path = keep(policy)
    policy.write_text('{"kernel": {}}')
    assert read_verdict(str(policy), path, 1000.0) is None
    policy.unlink()
    assert read_verdict(str(policy), path, 1000.0) is None


@pytest.mark.parametrize("text", ["", "[]", "{}", "\xff", '{"at": "x", "policy": []}', "null"])
def test_what_is_no_verdict_does_not_count(policy: Path, text: str) -> None:
    path = keep(policy)
    Path(path).write_bytes(text.encode("latin-1"))
    assert read_verdict(str(policy), path, 1000.0) is None
    assert read_verdict(str(policy), f"{path}.none", 1000.0) is None
    assert read_kept(str(policy), path) == Kept()


KEY = ("kernel", "fs.file-max", "value")


def test_what_the_next_look_must_know_is_kept_however_old(policy: Path) -> None:
    path, stamp = policy.with_name("state.json"), stamp_policy(str(policy))
    kept = Kept(7.5, (KEY,), tuple(stamp))
    path.write_text(format_state(Verdict("error"), [], -1e9, kept))
    assert read_kept(str(policy), str(path)) == kept
    policy.rename(policy.with_name("gone"))
    assert read_kept(str(policy), str(path)) == kept
    policy.write_text("{} ")
    assert read_kept(str(policy), str(path)) == kept._replace(short=())


def test_what_another_wrote_is_not_believed(policy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = keep(policy)
    monkeypatch.setattr("os.geteuid", lambda: 4711)
    if Path(path).stat().st_uid:
        assert read_verdict(str(policy), path, 1000.0) is None
        assert read_kept(str(policy), path) == Kept()
