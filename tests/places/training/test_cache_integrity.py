# SPDX-License-Identifier: GPL-3.0-or-later
"""Damaged files fail, what was not seen is unknown, and nothing is removed."""

from __future__ import annotations

from typing import Any

import pytest
from mlhost_limits.core.finding import Finding
from mlhost_limits.training.file_verdict import find_kind, find_owner, is_temporary
from mlhost_limits.training.files_check import CacheFiles, judge_files


def look(**stated: Any) -> list[Finding]:
    return list(judge_files(CacheFiles("/c/", 30, **stated)))


def test_a_sound_cache_passes() -> None:
    (finding,) = look()
    assert finding.status == "pass"
    assert finding.observation == (0, "the first and last bytes of 30 files", "")
    assert look(deep=True)[0].observation.how == "all bytes of 30 files"


def test_a_look_that_did_not_end_passes_nothing() -> None:
    reason = "30 files were looked at in 60 s; the others were not"
    (finding,) = look(unfinished=reason)
    assert (finding.status, finding.observation.reason) == ("unknown", reason)
    found = look(unfinished=reason, corrupt=[("a.pt", "is empty")], corrupt_count=1)
    assert [one.status for one in found] == ["fail", "unknown"]


SKIPPED: dict[str, Any] = {
    "skipped": [("a.txt", "format unknown"), ("p", "a named pipe")],
    "skipped_count": 9,
}
TOLD = "Not looked at: 9 files, a named pipe or format unknown (a.txt, p and 7 more)"


def test_what_was_not_looked_at_is_said_in_the_finding() -> None:
    (finding,) = look(**SKIPPED)
    assert (finding.status, finding.observation.value) == ("pass", f"0. {TOLD}")
    (finding,) = look(**SKIPPED, corrupt=[("a.pt", "is empty")], corrupt_count=1)
    assert (finding.status, finding.observation.value) == ("fail", f"1. {TOLD}")
    one: dict[str, Any] = {"skipped": [("a", "format unknown")], "skipped_count": 1}
    assert look(**one)[0].observation.value == "0. Not looked at: 1 file, format unknown (a)"


@pytest.mark.parametrize(
    ("stated", "told"),
    [
        (SKIPPED, [("unknown", TOLD)]),
        (
            {"number": 2, "unknown": [("a.pt", "is odd")] * 2, "unknown_count": 2},
            [("unknown", "Not looked at: 2 files: each is odd (a.pt, a.pt)")],
        ),
        (
            {"number": 1, "closed": [("a.pt", "is root's")], "closed_count": 1},
            [("unknown", "Not looked at: 1 file: is root's (a.pt)")],
        ),
        (
            {"number": 1, "closed": [("a.pt", "is root's")], "closed_count": 1, "reader": "alice"},
            [("fail", "")],
        ),
        (
            {"number": 1, "written": [("a.pt", 0)], "written_count": 1},
            [("unknown", "1 file is being written now: a.pt")],
        ),
        ({"number": 1, "leftover": [("a.tmp", "4 bytes")], "leftover_count": 1}, [("pass", ""), ("pass", "")]),
        ({}, [("pass", "")]),
    ],
)  # fmt: skip
def test_a_cache_in_which_nothing_was_seen_passes_nothing(
    stated: dict[str, Any], told: list[tuple[str, str]]
) -> None:
    """One that is empty does, and one of files that nobody finishes: a run begins with these."""
    files: dict[str, Any] = {"number": 0, **stated}
    found = judge_files(CacheFiles("/c/", **files))
    assert [(one.status, one.observation.reason) for one in found] == told


def test_who_will_run_must_be_able_to_read_all() -> None:
    rows = [(f"{number}.pt", "is root's, with mode 0600") for number in range(6)]
    found = look(closed=rows, closed_count=8, reader="alice")
    assert [one.status for one in found] == ["pass", "fail"]
    (cause,) = found[1].causes
    assert (cause.code, cause.remedy.commands) == ("folder-closed", ())
    assert cause.text.startswith("0.pt is root's, with mode 0600; 1.pt is")
    assert cause.text.endswith("4.pt is root's, with mode 0600; and 3 more")
    assert cause.remedy.text == "let alice read them, or name a directory of alice's own"


def test_damaged_files_are_named_and_moved() -> None:
    (finding,) = look(corrupt=[("a.pt", "is empty"), ("b/c d.pt", "ends")], corrupt_count=2)
    cause = finding.causes[0]
    assert (finding.status, cause.code) == ("fail", "cache-file-corrupt")
    assert cause.text == "a.pt is empty; b/c d.pt ends"
    assert cause.remedy.lines == [
        "mkdir -p -m 0700 /c/.quarantine",
        "mv -nT /c/a.pt /c/.quarantine/a.pt",
        "mv -nT '/c/b/c d.pt' '/c/.quarantine/b__c d.pt'",
    ]


def test_of_many_damaged_files_the_first_are_named() -> None:
    names = [(f"{number}.pt", "is empty") for number in range(1000)]
    cause = look(corrupt=names, corrupt_count=5000)[0].causes[0]
    assert cause.text.endswith("4.pt is empty; and 4995 more")
    assert len(cause.remedy.commands) == 21
    assert cause.remedy.text.endswith("mlhost.limits.workspace with quarantine moves all 5000")


def test_a_name_that_cannot_be_typed_is_not_in_a_command() -> None:
    cause = look(corrupt=[("\x1b[2J.pt", "is empty")], corrupt_count=1)[0].causes[0]
    assert cause.remedy.commands == (("mkdir", "-p", "-m", "0700", "/c/.quarantine"),)
    assert "\x1b" not in cause.text


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ({"reason": "/c does not exist"}, ["unknown /c does not exist"]),
        (
            {"unknown": [("a.pt", "is old")], "unknown_count": 1},
            ["pass ", "unknown Not looked at: 1 file: is old (a.pt)"],
        ),
        (
            {"written": [("a.pt", 17), ("b.pt", 0)], "written_count": 2},
            ["pass ", "unknown 2 files are being written now: a.pt by pid 17, b.pt"],
        ),
        ({"leftover": [("x.tmp", "4 bytes")], "leftover_count": 1}, ["pass ", "pass "]),
    ],
)
def test_what_was_not_seen_is_unknown(stated: dict[str, object], expected: list[str]) -> None:
    assert [f"{one.status} {one.observation.reason}" for one in look(**stated)] == expected


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.pt", "pt"),
        ("a.pth", "pt"),
        ("b.safetensors", "safetensors"),
        ("pt", ""),
        ("a.tar", "tar"),
        ("A.PTH", "pt"),
        (".hidden.pt", "pt"),
        ("pytorch_model.bin", "pt"),
        ("pytorch_model-00001-of-00002.bin", "pt"),
        ("diffusion_pytorch_model.fp16.bin", "pt"),
        ("optimizer.bin", "pt"),
        ("tokens.bin", ""),
        ("a.txt", ""),
        ("a.tar.gz", "packed"),
        ("a.tgz", "packed"),
        ("a.jsonl.zst", "packed"),
        ("a.npz", "npz"),
        ("a.parquet", "parquet"),
    ],
)
def test_files_are_told_by_their_endings(name: str, kind: str) -> None:
    assert find_kind(name) == kind


@pytest.mark.parametrize(
    ("name", "temporary", "owner"),
    [
        ("shard-0.tar.temp4711", True, 4711),
        ("x.pt.tmp", True, None),
        ("abc.incomplete", True, None),
        (".tmp-abc", True, None),
        ("tmp_x", True, None),
        ("x.tar.lock", False, None),
        ("template.pt", False, None),
        ("a.temp", True, None),
        ("A.PART", True, None),
    ],
)
def test_temporary_names_are_known(name: str, temporary: bool, owner: int | None) -> None:
    assert is_temporary(name) is temporary
    assert find_owner(name) == owner
