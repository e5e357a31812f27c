# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever cuts a file of data short is seen, and a whole one is never blamed."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlhost_limits.training.cache_formats import (
    _LONGEST_LINE,
    _MOST_MESSAGES,
    check_arrow,
    check_jsonl,
    check_npy,
    check_parquet,
)
from mlhost_limits.training.file_verdict import Verdict, find_stand_in
from mlhost_limits.training.weights_file import check_npz, check_pt

from tests.worlds.archives import make_arrow, make_parquet

Check = Callable[[Callable[[int, int], bytes], int], Verdict]


def look(check: Check, content: bytes) -> Verdict:
    return check(lambda offset, size: content[offset : offset + size], len(content))


def save(array: object, version: tuple[int, int] | None = None) -> bytes:
    content = io.BytesIO()
    np.lib.format.write_array(content, np.asarray(array), version)
    return content.getvalue()


ARRAYS = {
    "numbers": save(np.arange(30, dtype="<f4").reshape(5, 6)),
    "one number": save(7),
    "none": save(np.zeros((0, 3))),
    "text": save(np.array(["abc", "d"])),
    "bytes": save(np.array([b"abc", b"d"])),
    "times": save(np.array(["2020-01-01"], dtype="datetime64[s]")),
    "complex, by columns": save(np.asfortranarray(np.ones((3, 4), dtype="c16"))),
    "of version 2": save(np.ones(3), (2, 0)),
    "of version 3": save(np.ones(3), (3, 0)),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_every_truncation_of_an_array_is_seen(name: str) -> None:
    content = ARRAYS[name]
    assert look(check_npy, content) == Verdict("sound")
    assert look(check_npy, content + b"the next array") == Verdict("sound")
    for size in range(len(content)):
        assert look(check_npy, content[:size]).status == "corrupt", size


@pytest.mark.parametrize(
    ("content", "verdict"),
    [
        (b"", Verdict("corrupt", "is empty")),
        (b"\0" * 200, Verdict("corrupt", "does not begin like a numpy array")),
        (b"\x80\4N.", Verdict("unknown", "has the name of an array and is a pickle")),
        (
            save(np.zeros(2, dtype=[("a", "i4")])),
            Verdict("unknown", "holds values whose size its header does not state"),
        ),
        (
            save(np.array([None], dtype=object)),
            Verdict("unknown", "holds values whose size its header does not state"),
        ),
        (
            ARRAYS["one number"][:-1],
            Verdict("corrupt", "has 135 bytes, and its header states 136"),
        ),
    ],
)
def test_what_is_said_of_an_array(content: bytes, verdict: Verdict) -> None:
    assert look(check_npy, content) == verdict


def test_a_shape_of_any_length_is_read_at_once() -> None:
    """A million digits take minutes to become a number."""
    header = "{'descr': '|u1', 'fortran_order': False, 'shape': (" + "9" * 10**6 + ",), }\n"
    content = b"\x93NUMPY\x02\x00" + len(header).to_bytes(4, "little") + header.encode()
    assert look(check_npy, content).status in ("corrupt", "unknown")
    short = b"{'descr': '|u1', 'fortran_order': False, 'shape': (" + b"9" * 5000 + b",), }\n"
    content = b"\x93NUMPY\x02\x00" + len(short).to_bytes(4, "little") + short
    assert look(check_npy, content).status == "corrupt"


def test_every_truncation_of_an_archive_of_arrays_is_seen() -> None:
    some: dict[str, Any] = {"a": np.arange(20), "b": np.ones(3)}
    for arrays in (some, {}):
        file = io.BytesIO()
        np.savez(file, **arrays)
        content = file.getvalue()
        assert look(check_npz, content) == Verdict("sound")
        for size in range(len(content)):
            assert look(check_npz, content[:size]).status == "corrupt", size
    assert look(check_npz, b"\x80\4N.").status == "unknown"
    assert look(check_npz, b"PK\5\6" + b"\0" * 16 + b"\1\0x") == Verdict("sound")
    assert look(check_npz, b"\0") == Verdict("corrupt", "is not a zip archive")


@pytest.mark.parametrize("content", [make_parquet(), make_parquet(b"PARE")])
def test_every_truncation_of_parquet_is_seen(content: bytes) -> None:
    assert look(check_parquet, content) == Verdict("sound")
    for size in range(len(content)):
        assert look(check_parquet, content[:size]).status == "corrupt", size


FILE, STREAM = make_arrow(as_file=True), make_arrow(as_file=False)


@pytest.mark.parametrize(
    ("check", "content", "end", "around"),
    [(check_parquet, make_parquet(), 8, 12), (check_arrow, FILE, 10, 18)],
)
def test_a_footer_has_room_between_the_marks(
    check: Check, content: bytes, end: int, around: int
) -> None:
    """Both formats have a mark at each end, and the length of the footer before the last one."""

    def state(length: int) -> Verdict:
        return look(check, content[:-end] + length.to_bytes(4, "little") + content[4 - end :])

    most = len(content) - around
    assert state(most) == Verdict("sound")
    for length in (most + 1, 2**28):
        assert state(length).reason == "states a footer that is longer than the file"


def test_every_truncation_of_arrow_is_seen() -> None:
    """A stream that ends between two messages is one that is read, with less in it."""
    for content in (FILE, STREAM):
        assert look(check_arrow, content) == Verdict("sound")
    for size in range(len(FILE)):
        assert look(check_arrow, FILE[:size]).status == "corrupt", size
    unsure = [
        size for size in range(len(STREAM)) if look(check_arrow, STREAM[:size]).status != "corrupt"
    ]
    assert len(unsure) == 3
    assert look(check_arrow, STREAM[: unsure[-1]]).status == "unknown"
    assert look(check_arrow, b"\0" * 100) == Verdict("corrupt", "holds no message")
    assert look(check_arrow, b"FEA1 of old").status == "unknown"
    zeros = STREAM[: unsure[0]] + b"\0" * 64
    assert look(check_arrow, zeros) == Verdict("corrupt", f"holds no message at byte {unsure[0]}")


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"", "sound"),
        (b"\n\n", "sound"),
        (b'{"a": 1}\n{"b": 2}\n', "sound"),
        (b'{"a": 1}\n{"b": 2}', "sound"),
        (b'\xef\xbb\xbf{"a": 1}\r\n', "sound"),
        (b'{"a": "\xc3\xa9"}\n', "sound"),
        (b'{"a": 1}\n{"b": ', "corrupt"),
        (b'{"a": 1}\n{"b": "\xc3', "corrupt"),
        (b'{"a": 1}\n' + b"\0" * 4096, "corrupt"),
        (b"\0" * 4096, "corrupt"),
        (b"[" * 100_000, "corrupt"),
        (b'"' + b"a" * 2**20 + b'"', "unknown"),
    ],
)
def test_the_last_line_of_json_tells(content: bytes, status: str) -> None:
    assert look(check_jsonl, content).status == status


def test_every_truncation_of_lines_is_seen_but_that_between_two() -> None:
    rows = [json.dumps({"text": 'a\\n"b', "n": number}).encode() for number in range(4)]
    content = b"\n".join(rows) + b"\n"
    ends = {0, *(content.find(row) + len(row) + more for row in rows for more in (0, 1))}
    for size in range(len(content) + 1):
        assert look(check_jsonl, content[:size]).status == ("sound" if size in ends else "corrupt")


@given(st.binary(max_size=300), st.integers(0, 400))
def test_nothing_that_is_in_a_file_ends_the_look(junk: bytes, at: int) -> None:
    samples = ((check_npy, ARRAYS["numbers"]), (check_arrow, STREAM), (check_arrow, FILE))
    for check, content in (*samples, (check_parquet, make_parquet()), (check_jsonl, b"{}\n")):
        for one in (junk, content[:at] + junk + content[at + len(junk) :]):
            assert look(check, one).status in ("sound", "corrupt", "unknown")


@pytest.mark.parametrize(
    ("head", "word"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:", "Git LFS"),
        (b"<!DOCTYPE html><html>", "web server"),
        (b"\n<HTML>", "web server"),
        (b"<?xml version='1.0'?><Error>", "web server"),
        (b"PK\3\4", ""),
        (b"", ""),
    ],
)
def test_what_stands_for_a_file_is_none(head: bytes, word: str) -> None:
    verdict = find_stand_in(head)
    assert (word in verdict.reason and verdict.status == "corrupt") if verdict else not word


@pytest.mark.parametrize("check", [check_npy, check_npz, check_pt, check_parquet, check_arrow])
def test_an_empty_file_is_said_to_be_empty(check: Check) -> None:
    assert look(check, b"") == Verdict("corrupt", "is empty")


@pytest.mark.parametrize(
    ("check", "content"),
    [
        (check_parquet, b"PAR1" + b"\0" * 4 + b"PAR1"),
        (check_arrow, b"ARROW1" + b"\0" * 6 + b"ARROW1"),
    ],
)
def test_the_smallest_file_has_its_marks_and_an_empty_footer(check: Check, content: bytes) -> None:
    assert look(check, content) == Verdict("sound")
    assert look(check, content[:-1]).reason.startswith("does not end as its format requires")


def test_a_stream_of_very_many_messages_is_not_read_to_its_end() -> None:
    message = b"\xff" * 4 + (8).to_bytes(4, "little") + b"\0" * 8
    assert look(check_arrow, message * 3).status == "unknown"
    assert look(check_arrow, message * 3 + b"\xff" * 4 + b"\0" * 4) == Verdict("sound")
    found = look(check_arrow, message * (_MOST_MESSAGES + 1))
    assert found == Verdict("unknown", f"has more than {_MOST_MESSAGES} messages")


def test_a_line_of_json_is_read_as_far_as_it_is_not_too_long() -> None:
    row = b'"' + b"a" * (_LONGEST_LINE - 3) + b'"'
    assert look(check_jsonl, row + b"\n") == Verdict("sound")
    assert look(check_jsonl, b"{}\n" + row) == Verdict("sound")
    found = look(check_jsonl, b"{}\n" + row[:-1] + b"aa" + b'"')
    assert found == Verdict("unknown", "has a last line of more than 1 MiB")
