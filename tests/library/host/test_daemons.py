# SPDX-License-Identifier: GPL-3.0-or-later
"""A daemon is who its unit says: a name, a title or a control group of a user's proves nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from mlhost_limits.host.daemons import is_daemon, is_in_unit, is_roots

UNIT = "0::/system.slice/slurmd.service"


def write(
    proc: Path,
    uids: str = "0\t0\t0\t0",
    program: str = "slurmd",
    cgroup: str = UNIT,
    mode: int = 0o755,
    owner: int = 0,
) -> None:
    folder = proc / "7"
    folder.mkdir()
    (folder / "status").write_text(f"Name:\tslurmd\nUid:\t{uids}\nGid:\t0\n")
    (folder / "cgroup").write_text(f"{cgroup}\n")
    (proc / program).touch()
    (proc / program).chmod(mode)
    os.chown(proc / program, owner, 0)
    (folder / "exe").symlink_to(proc / program)


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files away")
@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({}, True),
        ({"program": "slurmd-wrapped"}, True),
        ({"cgroup": "1:name=systemd:/system.slice/slurmd.service"}, True),
        ({"cgroup": "0::/hpc.slice/hpc-jobs.slice/slurmd.service"}, True),
        ({"uids": "1000\t1000\t1000\t1000"}, False),
        ({"uids": "1000\t0\t0\t0"}, False),
        ({"program": "passwd"}, False),
        ({"program": "xslurmd"}, False),
        ({"owner": 1000}, False),
        ({"mode": 0o777}, False),
        ({"cgroup": "0::/user.slice/user-1000.slice/user@1000.service/slurmd.service"}, False),
        ({"cgroup": "0::/machine.slice/slurmd.service"}, False),
        ({"cgroup": "0::/system.slice/docker-0.scope/slurmd.service"}, False),
        ({"cgroup": "0::/system.slice/other.service"}, False),
        ({"cgroup": "0::/"}, False),
    ],
)
def test_who_is_believed(tmp_path: Path, change: dict[str, Any], wanted: bool) -> None:
    write(tmp_path, **change)
    assert is_daemon(7, "slurmd", ("slurmd.service",), str(tmp_path)) is wanted


@pytest.mark.root
def test_without_systemd_it_lives_where_we_do(tmp_path: Path) -> None:
    write(tmp_path, cgroup="0::/")
    for name in ("7", "self"):
        (tmp_path / name / "ns").mkdir(parents=True)
        (tmp_path / name / "ns/mnt").symlink_to("mnt:[1]")
    assert is_daemon(7, "slurmd", ("slurmd.service",), str(tmp_path))
    (tmp_path / "7/ns/mnt").unlink()
    (tmp_path / "7/ns/mnt").symlink_to("mnt:[2]")
    assert not is_daemon(7, "slurmd", ("slurmd.service",), str(tmp_path))


def test_what_has_ended_is_nobody(tmp_path: Path) -> None:
    assert not is_daemon(7, "slurmd", (), str(tmp_path))
    assert not is_roots(7, str(tmp_path))


def test_any_unit_of_the_system_is_one() -> None:
    assert is_in_unit("0::/system.slice/x.service")
    assert is_in_unit("0::/init.scope")
    assert not is_in_unit("0::/user.slice/user-0.slice/session-1.scope")


@pytest.mark.parametrize(
    ("user", "comm", "wanted"),
    [(0, "slurmd", False), (1000, "slurmd", True), (1000, "sshd", False)],
)
@pytest.mark.root
def test_who_is_not_root_believes_the_unit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: int, comm: str, wanted: bool
) -> None:
    """The kernel shows the program of a process of root's to root alone."""
    write(tmp_path)
    (tmp_path / "7/comm").write_text(f"{comm}\n")

    def refuse(path: str) -> str:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "readlink", refuse)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert is_daemon(7, "slurmd", ("slurmd.service",), str(tmp_path)) is wanted
