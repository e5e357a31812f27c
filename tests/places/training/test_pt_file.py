# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever cuts a file of torch.save short is seen, and a whole one is never blamed."""

from __future__ import annotations

import io
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlhost_limits.training.file_verdict import Verdict
from mlhost_limits.training.weights_file import check_pt

from tests.worlds.archives import make_pt

WHOLE = {
    "two tensors": make_pt(),
    "none": make_pt(()),
    "of 64 bits": make_pt(large=True),
    "with a comment": make_pt(comment=b"made by somebody"),
    "data like a directory": make_pt((b"PK\5\6" + b"\0" * 18 + b"PK\1\2" + b"\0" * 42,)),
}
MISSING = "has no central directory: its end is missing"


def check(content: bytes) -> Verdict:
    return check_pt(lambda offset, size: content[offset : offset + size], len(content))


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_file_is_sound(name: str) -> None:
    assert check(WHOLE[name]) == Verdict("sound")


@pytest.mark.parametrize("name", WHOLE)
def test_every_truncation_is_seen(name: str) -> None:
    content = WHOLE[name]
    for size in range(len(content)):
        assert check(content[:size]).status == "corrupt", size


@given(st.lists(st.binary(max_size=400), max_size=6), st.booleans(), st.data())
def test_every_truncation_of_any_file_is_seen(
    tensors: list[bytes], large: bool, data: st.DataObject
) -> None:
    content = make_pt(tuple(tensors), large)
    assert check(content).status == "sound"
    size = data.draw(st.integers(0, len(content) - 1))
    assert check(content[:size]).status == "corrupt"


@given(st.binary(max_size=300), st.integers(0, 2000), st.booleans())
def test_nothing_that_is_in_a_file_ends_the_check(junk: bytes, at: int, large: bool) -> None:
    content = make_pt(large=large)
    damaged = content[:at] + junk + content[at + len(junk) :]
    assert check(damaged).status in ("sound", "corrupt", "unknown")
    assert check(junk).status in ("corrupt", "unknown")


def test_a_tail_of_zeros_is_seen() -> None:
    """What a crash leaves where blocks were given out and not yet written."""
    content = WHOLE["two tensors"]
    for size in range(0, len(content), 7):
        damaged = content[:size] + b"\0" * (len(content) - size)
        assert check(damaged).status == ("sound" if damaged == content else "corrupt")


def archive(files: dict[str, bytes]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as made:
        for name, data in files.items():
            with made.open(zipfile.ZipInfo(name), "w") as file:
                file.write(data)
    return content.getvalue()


def patch(content: bytes, at: int, new: bytes) -> bytes:
    return content[:at] + new + content[at + len(new) :]


END = WHOLE["two tensors"].rfind(b"PK\5\6")
FIRST = WHOLE["two tensors"].find(b"PK\1\2")
WIDE = WHOLE["of 64 bits"].rfind(b"PK\6\7")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (make_pt(comment=b"x" * 65535), Verdict("sound")),
        (make_pt(comment=b"x" * 65535) + b"x", Verdict("corrupt", MISSING)),
        (archive({"archive/data.pkl": b"1", "": b"1"}), Verdict("sound")),
        (b"", Verdict("corrupt", "is empty")),
        (b"\0" * 100, Verdict("corrupt", "is neither a zip archive nor a pickle")),
        (b"PK", Verdict("corrupt", "is neither a zip archive nor a pickle")),
        (archive({"archive/x": b"1"}), Verdict("corrupt", "has no data.pkl in it")),
        (
            patch(WHOLE["two tensors"], END + 10, b"\1\0"),
            Verdict("corrupt", "has a damaged central directory"),
        ),
        (
            patch(WHOLE["two tensors"], FIRST, b"PK\1\1"),
            Verdict("corrupt", "has a damaged central directory"),
        ),
        (
            patch(WHOLE["two tensors"], FIRST + 42, b"\1"),
            Verdict("corrupt", "has entries that lie outside of it"),
        ),
        (
            patch(WHOLE["two tensors"], FIRST + 20, b"\xff\xff"),
            Verdict("corrupt", "has entries that lie outside of it"),
        ),
        (patch(WHOLE["of 64 bits"], WIDE + 8, b"\0"), Verdict("corrupt", MISSING)),
        (patch(WHOLE["two tensors"], END + 16, b"\0"), Verdict("corrupt", MISSING)),
        (patch(WHOLE["of 64 bits"], WIDE - 56, b"PK\6\5"), Verdict("corrupt", MISSING)),
        (b"P", Verdict("corrupt", "is neither a zip archive nor a pickle")),
    ],
)
def test_what_is_wrong_is_said(content: bytes, expected: Verdict) -> None:
    assert check(content) == expected


@pytest.mark.parametrize(
    ("length", "reason"),
    [
        (2**26, "has a damaged central directory"),
        (2**26 + 1, "has a central directory of more than 64 MiB"),
    ],
)
def test_a_directory_that_would_fill_the_memory_is_not_read(length: int, reason: str) -> None:
    size = 2**40
    end = b"PK\5\6" + b"\0" * 6 + b"\1\0" + length.to_bytes(4, "little") + b"\0" * 6
    record = b"PK\6\6" + b"\0" * 36 + length.to_bytes(8, "little")
    record += (size - 98 - length).to_bytes(8, "little")
    locator = b"PK\6\7" + b"\0" * 4 + (size - 98).to_bytes(8, "little") + b"\0" * 4
    tail = record + locator + end

    def read(offset: int, wanted: int) -> bytes:
        assert wanted <= 2**26
        start = offset - (size - len(tail))
        return b"PK\3\4" if start < 0 else tail[start : start + wanted]

    assert check_pt(read, size) == Verdict("corrupt", reason)


def test_an_entry_that_is_cut_short_is_no_entry() -> None:
    """Its length, which would lie outside of the archive, is not looked at."""
    cut = b"PK\1\2" + b"\0" * 16 + b"\xfe" * 25
    content = patch(WHOLE["two tensors"], END + 12, (END - FIRST + len(cut)).to_bytes(4, "little"))
    damaged = content[:END] + cut + content[END:]
    assert check(damaged) == Verdict("corrupt", "has a damaged central directory")


def test_a_file_of_an_archive_ends_before_the_directory() -> None:
    content = WHOLE["two tensors"]
    last = content.rfind(b"PK\1\2")
    length = int.from_bytes(content[last + 20 : last + 24], "little")
    assert check(patch(content, last + 20, bytes([length + 1]))).status == "corrupt"


def test_a_comment_of_a_file_in_an_archive_is_skipped() -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as made:
        for name in ("archive/data.pkl", "archive/version"):
            info = zipfile.ZipInfo(name)
            info.comment = b"some words"
            made.writestr(info, b"1")
    assert check(content.getvalue()) == Verdict("sound")


def test_places_of_64_bits_are_read_where_they_stand() -> None:
    """Behind another field: the size, the length and the place, as far as they did not fit."""
    content, at, seen = WHOLE["of 64 bits"], 0, set()
    while (at := content.find(b"\x99\x99\2\0ab\1\0", at + 1)) > 0:
        size, first = content[at + 8], at + 10
        seen.add(size)
        assert check(patch(content, first + size - 8, b"\1")).status == "corrupt"
        if size == 24:
            assert check(patch(content, first, b"\xff\xff")).status == "sound"
            assert check(patch(content, first + 8, b"\xff\xff")).status == "corrupt"
    assert seen == {8, 24}
