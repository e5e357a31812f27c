# SPDX-License-Identifier: GPL-3.0-or-later
"""A directory is judged by what its user found there, and the cause says what to do."""

from __future__ import annotations

from typing import Any

import pytest
from mlhost_limits.core.finding import Finding
from mlhost_limits.training.folder_rules import (
    FolderFacts,
    Proof,
    find_reach,
    judge_absent,
    judge_folder,
    judge_free,
    judge_writing,
    may_work_there,
)

AS = "env -i /sbin/runuser -P -u alice --"
DENIED = Proof("fail", "[Errno 13] Permission denied")
PROVED = {name: Proof("pass") for name in ("flock", "O_EXCL", "rename", "directory rename")}
SOUND = FolderFacts(
    "/data/cache",
    "alice",
    "a directory",
    owner="alice",
    mode=0o755,
    free_bytes=10 * 2**30,
    free_inodes=1000,
    filesystem="ext4",
    mount="/data",
    source="/dev/sdb1",
    mount_root="/",
    real_path="/data/cache",
    writing=Proof("pass"),
    proofs=PROVED,
)


def tell(findings: object) -> list[tuple[str, str, str]]:
    """Return status, item and code of each."""
    assert isinstance(findings, list)
    return [
        (one.status, one.requirement.item, one.causes[0].code if one.causes else "")
        for one in findings
    ]


def commands(finding: Finding) -> list[str]:
    return list(finding.causes[0].remedy.lines)


def test_a_sound_directory_passes_and_nothing_is_blamed() -> None:
    found = list(judge_folder(SOUND))
    assert tell(found) == [("pass", name, "") for name in ("directory", *PROVED)]
    assert found[0].requirement.place == "path:/data/cache"


@pytest.mark.parametrize(
    ("change", "code", "lines"),
    [
        (
            {"state": "absent", "reason": "/data/cache does not exist", "at": "/data/cache"},
            "folder-absent",
            ["install -d -o alice -m 0750 /data/cache"],
        ),
        (
            {"state": "no directory", "reason": "/data is a file", "at": "/data"},
            "folder-not-one",
            [],
        ),
        ({"state": "closed", "reason": "/data: no", "at": "/data"}, "folder-closed", []),
        ({"state": "broken", "reason": "/data: [Errno 107] x", "at": "/data"}, "folder-broken", []),
        (
            {"writing": Proof("fail", "[Errno 30] Read-only file system"), "read_only": True},
            "folder-read-only",
            ["mount -o remount,rw /data"],
        ),
        (
            {"writing": Proof("fail", "[Errno 13] Permission denied"), "owner": "root"},
            "folder-not-writable",
            ["chown alice /data/cache", "chmod u+rwx /data/cache"],
        ),
        ({"writing": Proof("fail", "[Errno 28] No space left on device")}, "folder-full", []),
        ({"writing": Proof("fail", "[Errno 122] Disk quota exceeded")}, "folder-full", []),
        ({"writing": Proof("fail", "[Errno 5] Input/output error")}, "folder-broken", []),
    ],
)
def test_what_keeps_the_user_out_is_named(
    change: dict[str, Any], code: str, lines: list[str]
) -> None:
    found = list(judge_folder(SOUND._replace(**change)))
    assert tell(found) == [("fail", "directory", code)]
    assert commands(found[0]) == lines
    assert found[0].causes[0].text


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"state": "unknown", "reason": "/data/cache: no answer within 10 s"}, "no answer"),
        ({"state": "a link of somebody else", "reason": "/data is a link of bob"}, "link of bob"),
        ({"writing": Proof("unknown", "no answer within 10 s")}, "no answer"),
    ],
)
def test_what_was_not_seen_is_unknown(change: dict[str, Any], reason: str) -> None:
    found = list(judge_folder(SOUND._replace(**change)))
    assert tell(found) == [("unknown", "directory", "")]
    assert reason in found[0].observation.reason


def test_a_name_that_cannot_be_typed_is_left_to_a_person() -> None:
    facts = SOUND._replace(path="/data/a\x1b[2J", state="absent", reason="/data/a\x1b[2J is not")
    cause = next(judge_folder(facts)).causes[0]
    assert not cause.remedy.commands
    assert "\x1b" not in cause.text


@pytest.mark.parametrize(
    ("item", "code", "word"),
    [
        ("flock", "folder-no-exclusion", "exclusive"),
        ("O_EXCL", "folder-no-exclusion", "exclusive"),
        ("rename", "folder-no-atomic-rename", "atomic"),
        ("directory rename", "folder-no-atomic-rename", "atomic"),
    ],
)
def test_a_promise_that_is_not_kept_is_blamed_on_the_file_system(
    item: str, code: str, word: str
) -> None:
    facts = SOUND._replace(proofs={item: Proof("fail", "two hold it")}, filesystem="lustre")
    finding = list(judge_folder(facts))[1]
    assert tell([finding]) == [("fail", item, code)]
    assert finding.observation.value == f"not {word}"
    assert finding.causes[0].text.endswith("on lustre (/data): two hold it")
    facts = SOUND._replace(proofs={item: Proof("unknown", "no answer within 10 s")})
    assert list(judge_folder(facts))[1].observation.reason == f"{item}: no answer within 10 s"


@pytest.mark.parametrize(
    ("needed", "files", "expected"),
    [
        (None, None, []),
        (10 * 2**30, 1000, [("pass", "free space", ""), ("pass", "free inodes", "")]),
        (11 * 2**30, None, [("fail", "free space", "folder-full")]),
        (None, 1001, [("fail", "free inodes", "folder-no-inodes")]),
    ],
)
def test_room_is_what_the_user_has(
    needed: int | None, files: int | None, expected: list[tuple[str, str, str]]
) -> None:
    assert tell(list(judge_free(SOUND, needed, files))) == expected


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({}, []),
        ({"free_bytes": 64 * 2**20}, []),
        ({"free_bytes": 2**20}, [("pass", "free space", "")]),
        ({"free_bytes": 1}, [("pass", "free space", "")]),
        ({"free_bytes": 0}, [("fail", "free space", "folder-full")]),
        ({"free_inodes": 100}, []),
        ({"free_inodes": 1}, [("pass", "free inodes", "")]),
        ({"free_inodes": 0}, [("fail", "free inodes", "folder-no-inodes")]),
        ({"free_inodes": None}, []),
        ({"free_bytes": 0, "writing": Proof("fail", "[Errno 28] No space left on device")}, []),
        ({"free_bytes": 0, "state": "absent"}, []),
    ],
)
def test_a_full_disk_fails_whatever_anybody_needs(
    change: dict[str, Any], told: list[tuple[str, str, str]]
) -> None:
    """A little is told, and a trial that failed has said so already."""
    assert tell(list(judge_free(SOUND._replace(**change), None, None))) == told
    if "free_bytes" in change and told and told[0][0] == "fail":
        (finding,) = judge_free(SOUND._replace(**change), None, None)
        assert finding.causes[0].text == ("/data (ext4) has 0B free for alice, and 1B is needed")


def test_room_is_told_in_full() -> None:
    space, inodes = judge_free(SOUND, 11 * 2**30, 1001)
    assert space.causes[0].text == "/data (ext4) has 10GiB free for alice, and 11GiB are needed"
    assert inodes.causes[0].text == (
        "/data (ext4) has 1000 inodes free for alice, and 1001 are needed"
    )


def test_a_file_system_that_counts_no_inodes_is_not_asked() -> None:
    assert not list(judge_free(SOUND._replace(free_inodes=None), None, 1001))


def test_a_trial_that_had_no_room_says_nothing_of_what_it_tried() -> None:
    full = Proof("fail", "[Errno 28] No space left on device")
    found = judge_folder(
        SOUND._replace(proofs={"rename": full, "flock": Proof("fail", "held twice")})
    )
    assert tell(list(found))[1:] == [
        ("unknown", "rename", ""),
        ("fail", "flock", "folder-no-exclusion"),
    ]


def test_room_that_was_not_seen_is_unknown() -> None:
    facts = SOUND._replace(state="absent", reason="/data/cache does not exist", free_inodes=None)
    found = list(judge_free(facts, 1, 1))
    assert [one.status for one in found] == ["unknown", "unknown"]


@pytest.mark.parametrize(
    ("kind", "reach"),
    [
        ("ext4", "local"),
        ("tmpfs", "local"),
        ("nfs4", "network"),
        ("fuse.s3fs", "network"),
        ("x", ""),
    ],
)
def test_a_file_system_is_local_or_not(kind: str, reach: str) -> None:
    assert find_reach(kind) == reach


@pytest.mark.parametrize(
    ("path", "owner", "given"),
    [
        ("/data/cache", "root", True),
        ("/data/cache", "alice", True),
        ("/data/cache", "bob", False),
        ("/", "root", False),
        ("/data", "root", False),
        ("/etc/cache", "root", False),
        ("/usr/local/cache", "root", False),
        ("/var/cache", "root", False),
        ("/var/cache/shards", "root", True),
        ("/home/bob", "root", False),
        ("/home/alice/cache", "root", True),
    ],
)
def test_what_is_the_systems_or_anothers_is_not_given_away(
    path: str, owner: str, given: bool
) -> None:
    denied = Proof("fail", "[Errno 13] Permission denied")
    (found, *_rest) = judge_folder(SOUND._replace(path=path, owner=owner, writing=denied))
    assert found.causes[0].code == "folder-not-writable"
    assert bool(found.causes[0].remedy.commands) == given


@pytest.mark.parametrize(
    ("user", "mode", "may"),
    [
        *(("", 0o700, True), ("root", 0o700, True), ("alice", 0o700, True), ("bob", 0o755, False)),
        *(("bob", 0o775, True), ("bob", 0o757, True), ("bob", 0o711, False), ("carl", 0o700, True)),
    ],
)
def test_who_may_not_write_does_not_work_there(user: str, mode: int, may: bool) -> None:
    assert may_work_there(SOUND._replace(owner="carl", mode=mode), user) is may


@pytest.mark.parametrize(
    ("change", "lines"),
    [
        (
            {"state": "absent", "actor": "alice"},
            [f"{AS} mkdir -p -m 0750 /data/cache >&2"],
        ),
        ({"state": "absent", "actor": None}, []),
        ({"writing": DENIED, "mode": 0o555}, ["chmod u+rwx /data/cache"]),
        (
            {"writing": DENIED, "actor": "alice"},
            [f"{AS} chmod u+rwx /data/cache >&2"],
        ),
        ({"writing": DENIED, "owner": "root", "actor": "alice"}, []),
    ],
)
def test_who_puts_it_right_is_who_may(change: dict[str, Any], lines: list[str]) -> None:
    assert commands(next(judge_folder(SOUND._replace(**change)))) == lines


@pytest.mark.parametrize(
    ("inodes", "free", "code"),
    [
        *((0, 1, "folder-no-inodes"), (0, 0, "folder-full"), (1, 1, "folder-full")),
        (None, 1, "folder-full"),
    ],
)
def test_what_a_full_file_system_lacks_is_told(inodes: int | None, free: int, code: str) -> None:
    full = Proof("fail", "[Errno 28] No space left on device")
    facts = SOUND._replace(writing=full, free_inodes=inodes, free_bytes=free)
    assert tell(list(judge_folder(facts))) == [("fail", "directory", code)]


def test_why_a_directory_cannot_be_written_to_is_told() -> None:
    finding = judge_writing(SOUND._replace(writing=DENIED, mode=0o55))
    assert finding.causes[0].text == "/data/cache is alice's, with mode 0055"
    assert finding.observation.value == "not writable, [Errno 13] Permission denied"
    facts = SOUND._replace(writing=Proof("pass"), state="unknown", reason="no answer")
    assert judge_writing(facts).observation.reason == "no answer"
    (made, *proofs) = judge_absent(SOUND, "/data")
    assert made.observation.value == "absent, and alice can make it in /data"
    assert tell(proofs) == [("pass", name, "") for name in PROVED]


def test_one_inode_is_needed_at_least() -> None:
    (finding,) = judge_free(SOUND._replace(free_inodes=0), None, None)
    assert finding.causes[0].text == "/data (ext4) has 0 inodes free for alice, and 1 is needed"
    (asked,) = judge_free(SOUND._replace(free_inodes=0), None, 1)
    assert asked.causes[0].text == finding.causes[0].text


def test_a_directory_has_nothing_that_nobody_saw() -> None:
    bare = FolderFacts("/data/cache", "alice", "a directory", writing=DENIED)
    assert judge_writing(bare).causes[0].text == "/data/cache is 's, with mode 0000"
    (space,) = judge_free(bare, 1, None)
    assert space.observation.value == 0
