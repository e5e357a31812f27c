# SPDX-License-Identifier: GPL-3.0-or-later
"""A cache is local, of one job, and where the library that reads it looks."""

from __future__ import annotations

from typing import Any

import pytest
from mlhost_limits.training.cache_rules import (
    Neighbors,
    judge_filesystem,
    judge_shards,
    judge_unique,
    judge_variables,
)
from mlhost_limits.training.folder_rules import FolderFacts

SOUND = FolderFacts(
    "/scratch/cache",
    "alice",
    "a directory",
    filesystem="xfs",
    mount="/scratch",
    source="/dev/sdb1",
    mount_root="/",
    real_path="/scratch/cache",
)


@pytest.mark.parametrize(
    ("kind", "status", "code"),
    [
        ("xfs", "pass", ""),
        ("nfs4", "fail", "cache-on-network"),
        ("fuse.mine", "unknown", ""),
        ("", "unknown", ""),
    ],
)
def test_a_cache_belongs_on_a_local_disk(kind: str, status: str, code: str) -> None:
    finding = judge_filesystem(SOUND._replace(filesystem=kind, source="nas:/v"))
    assert (finding.status, finding.causes[0].code if finding.causes else "") == (status, code)
    if code:
        assert finding.causes[0].text == (
            "/scratch/cache is on nfs4, mounted from nas:/v at /scratch"
        )


def test_a_file_system_that_was_not_seen_is_unknown() -> None:
    finding = judge_filesystem(SOUND._replace(state="unknown", reason="no answer within 10 s"))
    assert finding.observation.reason == "no answer within 10 s"


@pytest.mark.parametrize(
    ("facts", "others", "expected"),
    [
        ({}, Neighbors(), []),
        ({}, Neighbors(sharers=(17,)), []),
        ({}, Neighbors(sharers=(17, 23)), ["fail cache-shared-by-containers"]),
        ({}, Neighbors(job="4711"), ["fail cache-not-of-one-job"]),
        ({"path": "/scratch/4711/c"}, Neighbors(job="4711"), ["pass "]),
        ({"path": "/scratch/job-4711"}, Neighbors(job="4711"), ["pass "]),
        ({"path": "/scratch/47112"}, Neighbors(job="4711"), ["fail cache-not-of-one-job"]),
        ({"real_path": "/nvme/4711"}, Neighbors(job="4711"), ["pass "]),
        # A private /tmp of job_container/tmpfs.
        ({"mount_root": "/private/4711/.4711"}, Neighbors(job="4711"), ["pass "]),
        ({}, Neighbors(in_container=True), []),
        ({"mount_root": "/srv/c"}, Neighbors(), []),
        ({"mount_root": "/srv/c"}, Neighbors(in_container=True), ["unknown "]),
        ({"mount_root": "/srv/c"}, Neighbors(in_container=True, host="ab12"), ["unknown "]),
        ({"mount_root": "/srv/ab12"}, Neighbors(in_container=True, host="ab12"), ["pass "]),
    ],
)
def test_a_cache_is_of_one_job(
    facts: dict[str, Any], others: Neighbors, expected: list[str]
) -> None:
    found = judge_unique(SOUND._replace(**facts), others)
    assert [
        f"{one.status} {''.join(cause.code for cause in one.causes)}" for one in found
    ] == expected


OLD, NEW = {"webdataset": "0.2.111", "wids": "0.2.111"}, {"webdataset": "1.0.2"}
HERE, ELSEWHERE = "/scratch/cache/", "/home/alice/cache"


@pytest.mark.parametrize(
    ("environment", "versions", "expected"),
    [
        ({}, OLD, []),
        ({"WIDS_CACHE": ""}, OLD, []),
        ({"WIDS_CACHE": HERE}, OLD, ["pass WIDS_CACHE "]),
        ({"WIDS_CACHE": HERE}, {"wids": "0.2.57"}, ["pass WIDS_CACHE "]),
        ({"WIDS_CACHE": ELSEWHERE}, OLD, ["fail WIDS_CACHE cache-variable-elsewhere"]),
        ({"WIDS_CACHE": HERE}, NEW, ["fail WIDS_CACHE cache-variable-unread"]),
        ({"WIDS_CACHE": HERE}, {"wids": "0.2.56"}, ["fail WIDS_CACHE cache-variable-unread"]),
        ({"WIDS_CACHE": HERE}, {}, ["fail WIDS_CACHE cache-variable-unread"]),
        ({"WIDS_CACHE": ELSEWHERE}, NEW, []),
        ({"WIDS_CACHE": HERE, "WDS_CACHE": HERE}, NEW, ["pass WDS_CACHE "]),
        ({"WDS_CACHE": HERE}, {"wids": "0.2.111"}, ["fail WDS_CACHE cache-variable-unread"]),
        ({"WDS_CACHE": HERE}, {"webdataset": "main"}, ["fail WDS_CACHE cache-variable-unread"]),
        ({"HF_HOME": HERE}, {"datasets": "3.0"}, ["pass HF_HOME "]),
        ({"HF_HOME": ELSEWHERE}, {"datasets": "3.0"}, []),
        ({"HF_HOME": HERE}, NEW, ["fail HF_HOME cache-variable-unread"]),
        ({"HF_HOME": ELSEWHERE, "WDS_CACHE": ELSEWHERE}, None, ["unknown WDS_CACHE "]),
        ({"HF_HOME": HERE}, None, ["unknown HF_HOME "]),
    ],
)
def test_the_variable_that_is_read_names_the_cache(
    environment: dict[str, str], versions: dict[str, str] | None, expected: list[str]
) -> None:
    found = judge_variables("/scratch/cache", environment, versions)
    told = [
        f"{one.status} {one.requirement.item} {''.join(cause.code for cause in one.causes)}"
        for one in found
    ]
    assert told == expected


def test_who_does_not_read_a_variable_is_named() -> None:
    found = judge_variables("/c", {"WIDS_CACHE": "/c"}, NEW)
    assert next(found).causes[0].text == "webdataset 1.0.2 does not read WIDS_CACHE"
    found = judge_variables("/c", {"WIDS_CACHE": "/c"}, {})
    assert next(found).causes[0].text == (
        "nothing here reads WIDS_CACHE: none of wids, webdataset is installed"
    )


@pytest.mark.parametrize(
    ("shards", "workers", "ranks", "text"),
    [
        (8, 9, 1, "1 rank with 9 workers each need 9 shards, and there are 8"),
        (3, 0, 4, "4 ranks with 1 workers each need 4 shards, and there are 3"),
    ],
)
def test_what_needs_more_shards_is_counted(
    shards: int, workers: int, ranks: int, text: str
) -> None:
    assert judge_shards("/c", shards, workers, ranks).causes[0].text == text


@pytest.mark.parametrize(
    ("shards", "workers", "ranks", "status", "fix"),
    [
        (4, 3, 4, "fail", "start at most 1 worker for each rank, or write more shards"),
        (8, 8, 1, "pass", ""),
        (1, 0, 1, "pass", ""),
        (7, 8, 1, "fail", "start at most 7 workers for each rank, or write more shards"),
        (15, 8, 2, "fail", "start at most 7 workers for each rank, or write more shards"),
        (3, 1, 4, "fail", "start fewer ranks, or write more shards"),
    ],
)
def test_every_worker_has_a_shard(
    shards: int, workers: int, ranks: int, status: str, fix: str
) -> None:
    finding = judge_shards("/c", shards, workers, ranks)
    assert finding.status == status
    assert [cause.remedy.text for cause in finding.causes] == ([fix] if fix else [])


@pytest.mark.parametrize(
    ("name", "versions", "fix"),
    [
        ("WIDS_CACHE", {}, "set WDS_CACHE, or pass the directory to the library"),
        ("WDS_CACHE", {}, "set WIDS_CACHE, or pass the directory to the library"),
        ("HF_HOME", {}, "unset HF_HOME"),
    ],
)
def test_what_is_to_be_set_instead_is_said(name: str, versions: dict[str, str], fix: str) -> None:
    (finding,) = judge_variables("/c", {name: "/c/"}, versions)
    assert finding.causes[0].remedy.text == fix


def test_who_shares_a_cache_is_named() -> None:
    (finding,) = judge_unique(SOUND, Neighbors(sharers=(17, 23)))
    assert finding.observation.value == "2 containers"
    assert finding.causes[0].text == (
        "the containers of pids 17, 23 mount /scratch/cache: equal pids make equal file names"
    )
    finding = judge_filesystem(SOUND._replace(filesystem=""))
    assert finding.observation.reason == "a file system of type unknown may be local or not"
