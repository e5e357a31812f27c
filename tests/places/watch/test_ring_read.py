# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports are kept for root alone, so many of each user, and found by where the run lived."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mlhost_limits.watch import kept_ends_read, ring_read
from mlhost_limits.watch.report import FORMAT
from mlhost_limits.watch.ring_read import MOST, MOST_OF_USER, keep, list_names, read_reports
from mlhost_limits.why.where_read import CONTAINER, JOB, SESSION, UNIT, Where

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="it is root's")
ID = "c" * 64
NOW = 2_000_000.0


def report(cgroup: str, uid: int = 1000, pid: int = 50) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": 1,
        "name": "python3",
        "uid": uid,
        "cgroup": cgroup,
        "end": {"pid": pid},
        "ended": [{"pid": pid + 1}],
        "reason": "nofile",
        "others": [],
        "item": "nofile",
        "is_limit": True,
        "sure": "shown by the host",
        "host": ["seen"],
        "group": "",
    }


@pytest.fixture
def folder(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """A folder of root's own, where all that is above it is root's too."""
    path = Path("/run") / tmp_path_factory.mktemp("ends").name
    monkeypatch.setattr(kept_ends_read, "read_reports", partial(read_reports, str(path)))
    monkeypatch.setattr(kept_ends_read.time, "time", lambda: NOW)
    yield str(path)
    for name in os.listdir(path) if path.exists() else ():
        (path / name).unlink()
    if path.exists():
        path.rmdir()


def test_who_dies_by_the_thousand_loses_no_other_users_report(folder: str) -> None:
    keep(report("0::/a", uid=1), 5.0, 1, 50, folder)
    for number in range(MOST_OF_USER * 3):
        keep(report("0::/b", uid=2), 10.0 + number, 2, 50, folder)
    names = list_names(folder)
    assert sum(one.split("-")[2] == "2" for one in names) == MOST_OF_USER
    assert names[-1].split("-")[2] == "1"
    assert [at for at, _text in read_reports(folder)][:2] == [57.0, 56.0]


def test_there_is_an_end_to_all_of_them(folder: str) -> None:
    for uid in range(MOST + 3):
        keep(report("0::/b"), 10.0 + uid, uid, 50, folder)
    assert len(list_names(folder)) == MOST


def test_who_has_most_gives_way(folder: str) -> None:
    """Whoever has subordinate users has as many as they like."""
    keep(report("0::/a", uid=1), 5.0, 1, 50, folder)
    for uid in range(100_000, 100_000 + MOST // MOST_OF_USER + 3):
        for number in range(MOST_OF_USER):
            keep(report("0::/b", uid=uid), 10.0 + uid + number, uid, 50, folder)
    names = list_names(folder)
    assert len(names) == MOST
    assert names[-1].split("-")[2] == "1"


def test_a_report_that_is_too_large_hides_no_other(folder: str) -> None:
    keep(report("0::/a"), 5.0, 1, 50, folder)
    long = {"at": "", "file": "/\x01" * 2000, "by": 1}
    path = keep({**report("0::/a"), "events": [long] * 100}, 6.0, 1, 50, folder)
    assert os.path.getsize(path) < ring_read._LARGEST
    with pytest.raises(OSError, match="larger than"):
        keep(report("0::/" + "\x01" * 100_000), 7.0, 1, 50, folder)
    assert kept_ends_read.find_last().cgroup == "0::/a"


def test_only_root_can_read_them(folder: str) -> None:
    path = keep(report("0::/a"), 5.0, 1, 50, folder)
    assert (os.stat(folder).st_mode & 0o777, os.stat(path).st_mode & 0o777) == (0o700, 0o600)


def test_what_somebody_else_put_there_is_no_report(folder: str) -> None:
    os.mkdir(folder, 0o700)
    for name in ("x", "1-2-3.json", f"{5:012}-{5:017}-1-1.json.new"):
        Path(folder, name).write_text("{}")
    assert list_names(folder) == []
    with pytest.raises(ValueError, match="no run is known to have died here"):
        kept_ends_read.find_last()


@pytest.mark.parametrize("text", ["", "[1]", "[" * 200_000, '{"version": 2}', "x" * (2**18 + 1)])
def test_a_report_that_is_not_whole_is_said_and_hides_no_older_one(folder: str, text: str) -> None:
    keep(report("0::/a"), 5.0, 1000, 50, folder)
    Path(folder, f"{9:012}-{8000:017}-1-1.json").write_text(text)
    with pytest.raises(ValueError, match="is not whole, or of a newer version"):
        kept_ends_read.find_last()
    assert kept_ends_read.find_kept_of(50)


def test_a_folder_of_somebody_else_is_refused_by_who_writes_and_who_reads(folder: str) -> None:
    os.mkdir(folder, 0o700)
    os.chown(folder, 65534, 65534)
    with pytest.raises(OSError, match="belongs to"):
        keep(report("0::/a"), 5.0, 1000, 50, folder)
    with pytest.raises(OSError, match="belongs to"):
        kept_ends_read.find_kept_of(50)


def test_after_the_clock_was_set_back_what_is_written_stays_and_is_the_last(folder: str) -> None:
    for number in range(MOST_OF_USER):
        keep(report("0::/future"), 1.9e9 + number, 1000, number, folder)
    path = keep(report("0::/now"), 1.8e9, 1000, 77, folder)
    assert os.path.exists(path)
    assert kept_ends_read.find_last().cgroup == "0::/now"


@pytest.mark.parametrize(
    ("where", "job", "cgroup", "is_found"),
    [
        (Where(UNIT, "a.service", 1000, home="/system.slice/a.service"), None, "0::/system.slice/a.service", True),
        (Where(UNIT, "a.service", 1000, home="/system.slice/a.service"), None, "0::/system.slice/a.service/b", True),
        (Where(UNIT, "a.service", 1000, home="/system.slice/a.service"), None, "0::/system.slice/a.service2", False),
        (Where(UNIT, "cron.service", 0, home="/system.slice/cron.service"), None, "0::/system.slice/cron.service", False),
        (Where(UNIT, "a.service", 1000, home=""), None, "0::/system.slice/a.service", False),
        (Where(CONTAINER, "docker", None, home=ID), None, f"1:pids:/docker/{ID}\n0::/", True),
        (Where(CONTAINER, "docker", None, home=ID), None, f"0::/system.slice/docker-{ID}.scope", True),
        (Where(CONTAINER, "docker", None, home=ID), None, f"0::/user.slice/x/docker-{ID}.scope", False),
        (Where(SESSION, "alice", 1000, here=False), None, "0::/user.slice/user-1000.slice/session-1.scope", True),
        (Where(SESSION, "bob", 1001, here=False), None, "0::/user.slice/user-1000.slice/session-1.scope", False),
        (Where(SESSION, "alice", 1000, here=False), None, "0::/system.slice/a.service", False),
        (Where(JOB, "slurm", 1000), "47", "0::/system.slice/slurmstepd.scope/job_47/step_0/user", True),
        (Where(JOB, "slurm", 1000), "4", "0::/system.slice/slurmstepd.scope/job_47/step_0/user", False),
        (Where(JOB, "slurm", 1001), "47", "0::/system.slice/slurmstepd.scope/job_47/step_0/user", False),
        (Where(JOB, "slurm", 1000), "47", "0::/user.slice/user-1000.slice/job_47", False),
        (None, None, "0::/a", False),
    ],
)  # fmt: skip
def test_a_run_is_found_by_where_it_lived(
    folder: str, where: Where | None, job: str | None, cgroup: str, is_found: bool
) -> None:
    keep(report(cgroup), NOW - 100, 1000, 50, folder)
    found = kept_ends_read.find_kept(where, job=job)
    assert bool(found) == is_found
    assert all(one.verdict.reason.code == "nofile" for one in found)


@pytest.mark.parametrize(
    ("ended", "is_found"), [(100.0, True), (130.0, True), (300.0, False), (None, True)]
)
def test_another_run_of_the_same_unit_is_another(
    folder: str, ended: float | None, is_found: bool
) -> None:
    keep(report("0::/system.slice/a.service"), NOW - 100, 0, 50, folder)
    where = Where(UNIT, "a.service", 1000, home="/system.slice/a.service")
    assert bool(kept_ends_read.find_kept(where, ended)) == is_found


def test_a_process_that_has_ended_is_found_by_its_number(folder: str) -> None:
    keep(report("0::/a"), NOW - 100, 1000, 50, folder)
    assert kept_ends_read.find_kept_of(50)
    assert kept_ends_read.find_kept_of(51)
    assert kept_ends_read.find_kept_of(52) is None
    seen = kept_ends_read.find_last()
    assert seen.doubts == (
        f"seen by the black box of this host, at {kept_ends_read.format_time(NOW - 100)}",
    )
