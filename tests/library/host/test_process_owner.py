# SPDX-License-Identifier: GPL-3.0-or-later
"""The owner of a process is who may have set its limits; of one that has ended, nobody knows."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from mlhost_limits.containers.cgroup import Container
from mlhost_limits.containers.read import RunningContainer, find_maker
from mlhost_limits.core.process_owner import MAKER
from mlhost_limits.host.look import read_process
from mlhost_limits.host.users import find_owner, name_owners, name_user

SU = Path("/usr/bin/su")


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming a user needs root")
def test_a_process_of_a_user_is_that_user_s() -> None:
    with subprocess.Popen(["sleep", "60"], user=65534) as sleeper:
        assert find_owner(read_process(sleeper.pid)) == name_user(65534)
        sleeper.kill()


def test_another_process_with_the_same_id_is_not_believed() -> None:
    mine = read_process(os.getpid())
    with pytest.raises(ProcessLookupError):
        find_owner(mine._replace(start=mine.start + 1))
    with pytest.raises(OSError, match="No such file"):
        find_owner(mine._replace(pid=2**22 + 1))


@pytest.mark.skipif(os.geteuid() != 0, reason="the process is root's")
def test_root_s_process_is_root_s_where_the_kernel_keeps_no_login(tmp_path: Path) -> None:
    folder = tmp_path / str(os.getpid())
    folder.mkdir()
    for name in ("status", "stat"):
        (folder / name).write_text(Path(f"/proc/self/{name}").read_text())
    (folder / "cgroup").write_text("0::/system.slice/x.service\n")
    process = read_process(os.getpid(), str(tmp_path))
    assert find_owner(process, str(tmp_path)) == ""
    (folder / "loginuid").write_text("65534")
    assert find_owner(process, str(tmp_path)) == name_user(65534)


@pytest.mark.parametrize(
    ("owners", "name"),
    [([], ""), (["", "bob"], ""), (["bob", "bob"], "bob"), (["bob", "al"], "2 users")],
)
def test_several_owners_have_one_name(owners: list[str], name: str) -> None:
    assert name_owners(owners) == name


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming a user needs root")
def test_a_container_is_of_whoever_runs_its_monitor() -> None:
    container = Container("podman", "a" * 64)
    mine = read_process(os.getpid())
    assert find_maker(RunningContainer(container, mine, 65534)) == name_user(65534)
    with subprocess.Popen(["/bin/sh", "-c", "sleep 60 & wait"], user=65534) as monitor:
        children = Path(f"/proc/{monitor.pid}/task/{monitor.pid}/children")
        while not (text := children.read_text().split()):
            pass
        first = read_process(int(text[0]))
        # Its owner seems to be root, as that of a program with the set-user-ID bit.
        assert find_maker(RunningContainer(container, first, 0)) == name_user(65534)
        os.kill(first.pid, 9)
        monitor.kill()
    gone = first._replace(pid=2**22 + 1)
    assert find_maker(RunningContainer(container, gone, 0)) == MAKER


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming a user needs root")
@pytest.mark.skipif(not SU.exists() or not SU.stat().st_mode & 0o4000, reason="su is not setuid")
def test_a_set_user_id_program_under_another_name_is_its_caller_s() -> None:
    """It has uid 0, the limits of who called it, and whatever name and words that user likes."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    (folder / "slurmstepd").symlink_to(SU)
    words = ["slurmstepd: [1.0]", "root"]
    program = str(folder / "slurmstepd")
    pipe = subprocess.PIPE
    with subprocess.Popen(words, executable=program, user=65534, stdin=pipe, stderr=pipe) as asks:
        assert asks.stderr
        asks.stderr.read(1)  # It asks for a password.
        process = read_process(asks.pid)
        assert (process.comm, process.uid) == ("slurmstepd", 0)
        assert find_owner(process) == name_user(65534)
        asks.kill()
    shutil.rmtree(folder)
