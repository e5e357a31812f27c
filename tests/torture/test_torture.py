# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs that are killed, refused by the kernel or disturbed by others lose nothing.

`make torture` breaks a run at every point; here it is every 36th.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from .faults import FIGURES, torture
from .world import FOREIGN, World

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mount namespaces are root's")

SHARE = slice(None, None, 36)
STRIDE = 20


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_broken_run_leaves_old_files_or_new_ones() -> None:
    figures = torture(STRIDE, SHARE)
    print(f"torture: {', '.join(f'{figures[name]} {name}' for name in FIGURES)}")
    assert figures["fault_points"] >= 50
    assert not any(figures[name] for name in FIGURES if name != "fault_points"), figures


def test_of_two_runs_at_once_one_waits(world: World) -> None:
    """Together they do what one does, whichever comes first."""
    alone = world.run().said
    wanted = world.read()
    world.reset(FOREIGN)
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda _: world.run(), range(2)))
    assert [result.status for result in results] == [0, 0], results
    said = sorted((result.said for result in results), key=lambda one: bool(one["changed"]))
    assert said == [{"changed": False, "files": []}, alone]
    assert world.read() == wanted
    assert not world.find_leftovers()


# Just before the first file of the host is swapped; the copies of the rehearsal go before.
DELAYED = (
    *("strace", "--output=/dev/null", "--trace=renameat2"),
    *("--trace-path=/etc/sysctl.d/99-late.conf", "-e", "inject=renameat2:delay_enter=3000000"),
)


@pytest.mark.parametrize("name", ["security/limits.conf", "docker/daemon.json"])
def test_what_somebody_writes_during_a_run_stays(world: World, name: str) -> None:
    """The run stops with a reason, every other file is as it was, and the next run goes on."""
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(world.run, "present", DELAYED)
        path = world.etc / name
        wait_for_temporary(path.parent)
        path.with_name("upgrade").write_bytes(FOREIGN[name] + b"\n")
        path.with_name("upgrade").rename(path)
        result = run.result()
    assert result.said == {
        "failed": f"/etc/{name}: was changed by somebody else while this run was at work"
    }
    assert world.read() == {**FOREIGN, name: FOREIGN[name] + b"\n"}
    assert world.run().status == 0


def wait_for_temporary(folder: Path) -> None:
    deadline = time.monotonic() + 60
    while not list(folder.glob(".mlhost-*")):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_file_in_an_editor_is_left_alone(world: World) -> None:
    """What the editor saves later would undo our change, or ours what is in it."""
    (world.etc / "security/.limits.conf.swp").write_bytes(b"")
    result = world.run()
    assert result.said == {
        "refused": [
            "/etc/security/limits.conf: is open in an editor (/etc/security/.limits.conf.swp);"
            " close it first"
        ]
    }
    (world.etc / "security/.limits.conf.swp").unlink()
    assert world.read() == FOREIGN
