# SPDX-License-Identifier: GPL-3.0-or-later
"""Slurm drains a node for what root decides alone, and has it back only when that is mended."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlhost_limits import monitor as node_check
from mlhost_limits import node_health as node_health
from mlhost_limits.node.state_read import Verdict

OURS = "mlhost-limits: kernel: x"


class Slurm:
    """What Slurm says of a node, and what it was told."""

    def __init__(self) -> None:
        self.state = ("idle", "none")
        self.told: list[str] = []
        self.verdict: Verdict | BaseException = Verdict("pass")
        self.kept: Verdict | None = None

    def update(self, _node: str, *words: str) -> bool:
        self.told += words
        return True

    def look(self, _policy: str) -> node_check.NodeLook:
        if isinstance(self.verdict, BaseException):
            raise self.verdict
        return node_check.NodeLook([], self.verdict)

    def run(self, *, prolog: bool = False, drain_on_error: bool = False) -> int:
        names = {"SLURMD_NODENAME": "n1", **({"SLURM_JOB_ID": "7"} if prolog else {})}
        return int(node_health.main(names, drain_on_error))


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Slurm:
    made = Slurm()
    monkeypatch.setattr(node_health, "CLEAR", str(tmp_path / "clear"))
    monkeypatch.setattr(node_health, "_ask_state", lambda _node: made.state)
    monkeypatch.setattr(node_health, "_scontrol", made.update)
    monkeypatch.setattr(node_health, "read_verdict", lambda _policy: made.kept)
    monkeypatch.setattr(node_check, "look_at_node", made.look)
    return made


@pytest.mark.parametrize("prolog", [True, False])
def test_what_root_decides_drains(slurm: Slurm, prolog: bool) -> None:
    slurm.verdict = Verdict("fail", ("kernel: x", "kernel: y"), ("session:bob@su: z",))
    assert slurm.run(prolog=prolog) == 1
    assert slurm.told == ["state=drain", f"reason={OURS} (and 1 more)"]


TROUBLES = [
    Verdict("error", ("the check failed: no policy",)),
    OSError("no space left"),
    BlockingIOError("another run holds it"),
    MemoryError(),
    RecursionError("too deep"),
    KeyboardInterrupt(),
    SystemExit(1),
]


@pytest.mark.parametrize("trouble", TROUBLES, ids=repr)
@pytest.mark.parametrize(("prolog", "status"), [(True, 0), (False, 2)])
@pytest.mark.parametrize("state", [("idle", "none"), ("drained", OURS)])
def test_a_check_that_could_not_be_made_says_nothing_of_the_node(
    slurm: Slurm,
    trouble: Verdict | BaseException,
    prolog: bool,
    status: int,
    state: tuple[str, str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    slurm.verdict, slurm.state = trouble, state
    assert slurm.run(prolog=prolog) == status
    assert slurm.told == []
    told = capsys.readouterr()
    assert (told.err.count("\n"), told.out) == (1, "")
    assert told.err.startswith("mlhost-limits: the check failed")


def test_it_drains_where_that_is_asked_for(slurm: Slurm) -> None:
    slurm.verdict = Verdict("error", ("the check failed: no policy",))
    for prolog in (True, False):
        assert slurm.run(prolog=prolog, drain_on_error=True) == 2
    assert slurm.told[0] == "state=drain"
    slurm.told, slurm.verdict = [], BlockingIOError("another run holds it")
    assert slurm.run(drain_on_error=True) == 2
    assert slurm.told == []


@pytest.mark.parametrize(
    ("status", "told"), [("pass", ["state=resume"]), ("unknown", []), ("error", [])]
)
def test_only_what_is_seen_to_be_mended_gives_a_node_back(
    slurm: Slurm, status: str, told: list[str]
) -> None:
    slurm.state = ("drained", OURS)
    failures = () if status == "pass" else ("it cannot be seen",)
    slurm.verdict = Verdict(status, failures, ("session:bob@su: z",))
    slurm.run()
    assert slurm.told == told


def test_users_own_doing_is_a_line_and_no_more(
    slurm: Slurm, capsys: pytest.CaptureFixture[str]
) -> None:
    slurm.verdict = Verdict("pass", (), ("session:bob@su: nofile\x1b 5",))
    assert slurm.run() == 0
    assert slurm.told == []
    told = capsys.readouterr()
    assert told.err == "mlhost-limits: the node is not drained: session:bob@su: nofile? 5\n"


def test_a_prolog_believes_a_fresh_look_that_found_nothing(slurm: Slurm) -> None:
    slurm.verdict, slurm.kept = MemoryError(), Verdict("pass")
    assert slurm.run(prolog=True) == 0
    slurm.verdict, slurm.kept = Verdict("fail", ("kernel: x",)), Verdict("error", ("x",))
    assert slurm.run(prolog=True) == 1
