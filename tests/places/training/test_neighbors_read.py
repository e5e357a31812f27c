# SPDX-License-Identifier: GPL-3.0-or-later
"""Containers that mount the very directory are told from those that mount one above it."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlhost_limits.training.cache_check import find_neighbors, find_sharers
from mlhost_limits.training.folder_rules import FolderFacts

HOST = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n30 22 8:16 / /data rw - xfs /dev/sdb rw\n"
CONTAINER = (
    "900 1 0:99 / / rw - overlay overlay rw\n901 900 8:16 {root} /cache rw - xfs /dev/sdb rw\n"
)
FACTS = FolderFacts(
    "/data/my cache",
    "alice",
    "a directory",
    mount="/data",
    mount_root="/",
    device="8:16",
    real_path="/data/my cache",
)


def make_process(
    proc: Path, name: str, mounts: str, space: Path | None = None, uid: int = 0
) -> Path:
    """Make a process of a /proc; processes of one mount namespace share a file."""
    folder = proc / name / "ns"
    folder.mkdir(parents=True)
    if space:
        (folder / "mnt").hardlink_to(space)
    else:
        (folder / "mnt").write_text("")
    (proc / name / "mountinfo").write_text(mounts)
    (proc / name / "stat").write_text(f"{name} (x) S 1 " + "0 " * 30)
    (proc / name / "status").write_text("Uid:" + f"\t{uid}" * 4 + "\n")
    (proc / name / "cgroup").write_text("0::/system.slice/x.scope\n")
    return folder / "mnt"


def test_containers_that_share_the_directory_are_found(tmp_path: Path) -> None:
    host = make_process(tmp_path, "self", HOST)
    make_process(tmp_path, "1", HOST, host)
    make_process(tmp_path, "50", HOST)  # A service with a /tmp of its own.
    exact, above = CONTAINER.format(root=r"/my\040cache"), CONTAINER.format(root="/")
    first = make_process(tmp_path, "100", exact)
    make_process(tmp_path, "99", exact, first)
    make_process(tmp_path, "200", exact)
    make_process(tmp_path, "300", above)
    (tmp_path / "400").mkdir()
    (make_process(tmp_path, "500", exact).parent.parent / "mountinfo").unlink()
    assert list(find_sharers(FACTS, str(tmp_path))) == [99, 200]
    whole = FACTS._replace(real_path="/data")
    assert list(find_sharers(whole, str(tmp_path))) == [300]
    assert not list(find_sharers(FACTS._replace(state="absent"), str(tmp_path)))


def test_a_user_s_own_namespaces_share_nothing_that_the_user_may_not_write(tmp_path: Path) -> None:
    make_process(tmp_path, "self", HOST)
    exact = CONTAINER.format(root=r"/my\040cache")
    make_process(tmp_path, "100", exact)
    make_process(tmp_path, "200", exact, uid=54321)
    assert list(find_sharers(FACTS._replace(mode=0o755), str(tmp_path))) == [100]
    for facts in (FACTS._replace(mode=0o1777), FACTS._replace(user="54321")):
        assert list(find_sharers(facts, str(tmp_path))) == [100, 200]


def test_the_job_is_that_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "4711")
    assert find_neighbors(FACTS._replace(state="absent")).job == "4711"
