# SPDX-License-Identifier: GPL-3.0-or-later
"""One run works at a time; another waits, or says whom it waited for."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest
from mlhost_limits.write import lock
from mlhost_limits.write.lock import find_editor, find_package_run, only_run, wait_for_packages

HOLD = """
import fcntl, sys, time
file = open(sys.argv[1], "r+")
getattr(fcntl, sys.argv[2])(file, fcntl.LOCK_EX)
file.write("4711\\n"); file.flush()
print("held", flush=True)
time.sleep(float(sys.argv[3]))
open(sys.argv[1] + ".left", "w")
"""


def hold(path: Path, call: str, seconds: float) -> subprocess.Popen[str]:
    path.touch()
    words = [sys.executable, "-c", HOLD, str(path), call, str(seconds)]
    holder = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert holder.stdout
    assert holder.stdout.readline() == "held\n"
    return holder


def test_a_run_waits_for_another(tmp_path: Path) -> None:
    with hold(tmp_path / "lock", "flock", 0.5) as holder, only_run(str(tmp_path / "lock"), 60):
        assert (tmp_path / "lock.left").exists()
        assert holder.wait(60) == 0
    assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"


def test_a_run_that_waited_too_long_names_the_other(tmp_path: Path) -> None:
    with hold(tmp_path / "lock", "flock", 60) as holder:
        says = r"^another run \(pid 4711\) holds .*/lock; waited 0 s"
        with pytest.raises(OSError, match=says), only_run(str(tmp_path / "lock"), 0.1):
            pass
        holder.kill()


def test_a_killed_run_holds_nothing(tmp_path: Path) -> None:
    with hold(tmp_path / "lock", "flock", 60) as holder:
        holder.kill()
    with only_run(str(tmp_path / "lock"), 0):
        pass


def test_a_link_in_the_place_of_the_lock_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic link"), only_run(str(tmp_path / "lock"), 0):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_a_package_manager_at_work_is_seen(tmp_path: Path) -> None:
    with hold(tmp_path / "lock", "lockf", 60) as holder:
        assert find_package_run([str(tmp_path / "lock")]) == f"{tmp_path}/lock (pid {holder.pid})"
        holder.kill()
    assert find_package_run([str(tmp_path / "lock"), str(tmp_path / "none")]) == ""


def test_packages_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    said = iter(["dpkg (pid 5)", "dpkg (pid 5)", ""])
    monkeypatch.setattr(lock, "find_package_run", lambda: next(said))
    monkeypatch.setattr(lock.time, "sleep", lambda _seconds: None)
    wait_for_packages(5)
    assert next(said, "asked until the end") == "asked until the end"


def test_packages_that_take_too_long_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "find_package_run", lambda: "dpkg (pid 5)")
    monkeypatch.setattr(lock.time, "sleep", lambda _seconds: None)
    with pytest.raises(OSError, match=r"^dpkg \(pid 5\) is installing packages; waited 0 s"):
        wait_for_packages(0.01)


@pytest.mark.parametrize("trace", [".a.conf.swp", ".a.conf.swo", ".#a.conf"])
def test_an_open_editor_is_seen(tmp_path: Path, trace: str) -> None:
    path = str(tmp_path / "a.conf")
    assert find_editor(path) == ""
    (tmp_path / trace).symlink_to("alice@host.5:1")
    assert find_editor(path) == f"{tmp_path}/{trace}"


def test_the_lock_is_released_at_the_end(tmp_path: Path) -> None:
    with only_run(str(tmp_path / "lock")):
        pass
    with (tmp_path / "lock").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
