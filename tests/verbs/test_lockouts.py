# SPDX-License-Identifier: GPL-3.0-or-later
"""No change of limits goes without proof: sessions are opened before it, and after it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from . import library
from .cases import CASES, LOGINS
from .inside import Setting
from .node import Node

pytestmark = pytest.mark.root  # Mount namespaces are root's.

SESSIONS = CASES["sessions"].policy
KERNEL = CASES["kernel"].policy
OURS = "/etc/security/limits.d/90-mlhost.conf"
NOTES = "/run/stand-ins/sessions"


def prove(policy: dict[str, Any], closed: str = "", **given: Any) -> Any:
    """Provision with a stand-in for sessions, and return how that went and what it saw.

    :param closed: When sessions do not open: as :func:`note` writes it.
    """

    def note(wanted: Sequence[tuple[str, str]]) -> bool:
        who = "run" if os.getpid() == 100 else "rehearsal"
        seen = f"{who}: {'new' if os.path.exists(OURS) else 'old'} files"
        if wanted:
            with open(NOTES, "a", encoding="ascii") as file:
                file.write(f"{seen}\n")
        return seen != closed

    library.record_sessions(note)
    told = library.provision(policy=policy, **given)
    with open(NOTES, "a+", encoding="ascii") as file:
        file.seek(0)
        return {**told, "seen": file.read().splitlines()}


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_sessions_are_opened_before_a_change_of_limits_files_and_after(node: Node) -> None:
    told = node.run(lambda: prove(SESSIONS), LOGINS)
    assert not told["failed"]
    assert told["seen"] == ["run: old files", "rehearsal: new files", "run: new files"]


def test_sessions_are_opened_before_and_after_fs_nr_open_moves(node: Node) -> None:
    told = node.run(lambda: prove(KERNEL), LOGINS)
    assert not told["failed"]
    assert told["seen"] == ["run: old files", "run: old files"]


@pytest.mark.parametrize("turned", [False, True], ids=["in turn", "turned round"])
def test_they_are_opened_before_and_after_wherever_the_other_sections_stand(
    node: Node, turned: bool
) -> None:
    both = {**SESSIONS, **KERNEL, **CASES["shared_memory"].policy, **CASES["podman"].policy}

    def run() -> Any:
        if turned:
            library.turn_places_round()
        return prove(both)

    told = node.run(run, LOGINS)
    assert not told["failed"]
    assert told["seen"] == ["run: old files", "rehearsal: new files", "run: new files"]


def test_fs_nr_open_rises_before_a_nofile_may_reach_for_it(node: Node) -> None:
    """One run raises it and states a nofile that it refuses until then."""
    nofile = {"sessions": [{"users": ["*", "root"], "limits": {"nofile": 2000000}}]}

    def note(_wanted: Sequence[tuple[str, str]]) -> bool:
        with open("/proc/sys/fs/nr_open", encoding="ascii") as file, open(NOTES, "a") as notes:
            notes.write(f"{'new' if os.path.exists(OURS) else 'old'} files: {file.readline()}")
        return True

    def run(policy: dict[str, Any]) -> Any:
        library.record_sessions(note)
        return library.provision(policy=policy)

    refused = node.run(lambda: run(nofile), LOGINS)
    assert refused["failed"]
    assert "is above fs.nr_open 1048576" in refused["msg"]
    told = node.run(lambda: run({**nofile, "kernel": {"fs.nr_open": 2097152}}), LOGINS)
    assert not told["failed"], told["msg"]
    seen = (node.folder / NOTES.lstrip("/")).read_text().splitlines()
    assert seen == ["old files: 1048576", "new files: 2097152", "new files: 2097152"]


@pytest.mark.parametrize("name", ["shared_memory", "podman", "slurm"])
def test_what_touches_no_login_opens_none(node: Node, name: str) -> None:
    case = CASES[name]
    told = node.run(lambda: prove(case.policy, **case.given), case.before)
    assert told["changed"]
    assert told["seen"] == []


def test_in_an_image_no_session_is_opened(node: Node) -> None:
    told = node.run(lambda: prove(SESSIONS), Setting(booted=False))
    assert told["changed"]
    assert told["seen"] == []


def test_a_session_that_would_be_lost_is_seen_before_anything_is_written(node: Node) -> None:
    before = node.read()
    told = node.run(lambda: prove(SESSIONS, closed="rehearsal: new files"), LOGINS)
    assert told["msg"] == (
        "a session of root through sshd would not open any more (as the test wants it);"
        " nothing was written"
    )
    assert told["seen"] == ["run: old files", "rehearsal: new files"]
    assert node.read() == before


def test_a_session_that_is_lost_puts_every_file_back(node: Node) -> None:
    before = node.read()
    told = node.run(lambda: prove({**SESSIONS, **KERNEL}, closed="run: new files"), LOGINS)
    assert told["msg"] == (
        "a session of root through sshd would not open any more (as the test wants it);"
        " every file was put back"
    )
    assert node.read() == before


def test_where_no_session_opened_before_none_can_be_lost_and_that_is_said(node: Node) -> None:
    told = node.run(lambda: prove(SESSIONS, closed="run: old files"), LOGINS)
    assert not told["failed"]
    note = "before this run, a session of root through sshd did not open (as the test wants it)"
    assert note in told["notes"]


def test_libpam_itself_refuses_a_session_that_no_refusal_foresaw(node: Node) -> None:
    """Nothing stands for anything here: this is the real module, on files that lock alice out."""
    locking = {"sessions": [{"users": ["alice"], "limits": {"nofile": 900, "maxlogins": 0}}]}

    def lock() -> Any:
        library.refuse_nothing()
        return library.provision(policy=locking)

    before = node.read()
    told = node.run(lock, LOGINS)
    assert told["failed"]
    assert "a session of alice through sshd would not open any more" in told["msg"]
    assert node.read() == before
    refused = node.run(lambda: library.provision(policy=locking), LOGINS)
    assert refused["failed"]
    assert "would not open any more" not in refused["msg"]
    assert node.read() == before
