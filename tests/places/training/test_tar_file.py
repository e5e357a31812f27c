# SPDX-License-Identifier: GPL-3.0-or-later
"""A shard that is cut short is seen, whatever is in it, and a whole one is never blamed."""

from __future__ import annotations

import io
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlhost_limits.training import cache_tar
from mlhost_limits.training.cache_tar import _LONGEST_TAIL, _MOST_ZEROS, check_tar, is_tar
from mlhost_limits.training.file_verdict import Verdict

NO_MARK = Verdict("unknown", "has no end mark; members may be missing")


def look(content: bytes, deep: bool = False) -> Verdict:
    return check_tar(lambda offset, size: content[offset : offset + size], len(content), deep)


def make(sizes: tuple[int, ...] = (10, 2000, 0), form: int = tarfile.USTAR_FORMAT) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=form) as archive:
        for number, size in enumerate(sizes):
            row = tarfile.TarInfo(f"{number:06}.jpg")
            row.size = size
            archive.addfile(row, io.BytesIO(b"\7" * size))
    return content.getvalue()


def make_odd() -> bytes:
    """Return an archive with everything whose size means something else."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for kind in (tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE):
            row = tarfile.TarInfo("of no bytes \u00e9")
            row.type, row.size = kind, 9999 if kind == tarfile.SYMTYPE else 0
            archive.addfile(row)
        row = tarfile.TarInfo("n" * 300)
        row.size, row.pax_headers = 700, {"comment": "x" * 600}
        archive.addfile(row, io.BytesIO(b"\1" * 700))
    return content.getvalue()


WHOLE = {
    "ustar": make(),
    "gnu": make(form=tarfile.GNU_FORMAT),
    "pax": make(form=tarfile.PAX_FORMAT),
    "odd": make_odd(),
    "empty": make(()),
}


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("deep", [False, True])
def test_a_whole_shard_is_sound(name: str, deep: bool) -> None:
    assert look(WHOLE[name], deep) == Verdict("sound")


@pytest.mark.parametrize("name", ["ustar", "gnu", "pax", "odd"])
def test_every_truncation_is_as_tarfile_finds_it(name: str) -> None:
    """What it reads without an error has lost members, and no mark at its end."""
    content = WHOLE[name]
    end = len(content.rstrip(b"\0"))
    for size in range(0, end + 512, 37):
        verdict = look(content[:size])
        if reads(content[:size]):
            assert verdict.status != "sound" or size >= end, size
        else:
            assert verdict.status == "corrupt", size


def reads(content: bytes) -> bool:
    try:
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            for row in archive:
                if row.isreg():
                    file = archive.extractfile(row)
                    assert file
                    if len(file.read()) < row.size:
                        return False
    except (tarfile.TarError, EOFError, OSError):
        return False
    return True


def test_an_end_between_two_members_is_unknown() -> None:
    content = make((512, 512))
    for size in (1024, 2048):
        assert look(content[:size]) == NO_MARK
    assert look(content[:1025]) == Verdict("corrupt", "ends within the head of a member")
    assert (
        look(content[:1024] + b"\7" * 600).reason
        == "holds something other than a member at byte 1024"
    )


def test_zeros_that_a_crash_left_are_seen() -> None:
    content = make((100_000,))
    assert (
        look(content[:5000] + b"\0" * (len(content) - 5000)).status == "sound"
    )  # As one of zeros.
    assert look(content + b"\0" * 2**20).status == "unknown"
    assert look(b"\0" * (2**20 + 512)) == Verdict("corrupt", "begins with zeros")
    assert look(b"") == Verdict("corrupt", "is empty")
    assert look(b"x" * 600) == Verdict("corrupt", "is not a tar archive")


def test_a_size_of_more_than_octal_digits_is_read() -> None:
    """As GNU and as pax state it, of a file that is not there to its end."""
    for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        row = tarfile.TarInfo("large")
        row.size = 2**34
        head = row.tobuf(form)
        asked: list[int] = []

        def read(offset: int, size: int, head: bytes = head, asked: list[int] = asked) -> bytes:
            asked.append(offset)
            return head[offset : offset + size].ljust(size, b"\0")

        whole = len(head) + 2**34 + 1024
        assert check_tar(read, whole) == Verdict("sound")
        assert max(asked) == len(head) + 2**34
        assert check_tar(read, whole - 1025) == Verdict("corrupt", "ends within large")


def test_sparse_members_take_what_they_store() -> None:
    """Of GNU's old format: a map that goes on in blocks of its own."""
    row = tarfile.TarInfo("sparse")
    row.size, row.type = 1024, tarfile.GNUTYPE_SPARSE
    head = bytearray(row.tobuf(tarfile.GNU_FORMAT))
    head[482] = 1
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    more = b"\0" * 504 + b"\1" + b"\0" * 7
    content = bytes(head) + more + b"\0" * 512 + b"\7" * 1024 + make((3,))
    assert look(content) == Verdict("sound")
    assert look(content[:2000]) == Verdict("corrupt", "ends within sparse")


def test_of_many_members_the_first_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_tar, "_FEW", 10)
    content = make((600,) * 50)
    hurt = bytearray(content)
    hurt[1536 * 30 : 1536 * 30 + 512] = b"\7" * 512
    assert look(bytes(hurt)) == Verdict("sound")
    assert (
        look(bytes(hurt), deep=True).reason
        == f"holds something other than a member at byte {1536 * 30}"
    )
    assert look(content[: 1536 * 30 + 900]).status == "corrupt"


@given(st.binary(max_size=1500), st.integers(0, 4000))
def test_nothing_that_is_in_a_file_ends_the_look(junk: bytes, at: int) -> None:
    content = WHOLE["pax"]
    for one in (junk, content[:at] + junk + content[at + len(junk) :]):
        assert look(one).status in ("sound", "corrupt", "unknown")
    assert is_tar(content[:512])
    assert not is_tar(junk[:512])


def head_of(name: bytes = b"a", size: bytes = b"00000000000 ", signed: bool = False) -> bytes:
    """Return the head of a member, with the sum as POSIX or as old programs made it."""
    head = bytearray(name.ljust(124, b"\0") + size).ljust(512, b"\0")
    head[148:156] = b" " * 8
    total = sum(byte - 256 if signed and byte > 127 else byte for byte in head)
    head[148:156] = b"%06o\0 " % total
    return bytes(head)


@pytest.mark.parametrize(
    ("content", "verdict"),
    [
        (head_of(b"\xc3\xa9") + b"\0" * 1024, Verdict("sound")),
        (head_of(b"\xc3\xa9", signed=True) + b"\0" * 1024, Verdict("sound")),
        (head_of(b"\x7f", signed=True) + b"\0" * 1024, Verdict("sound")),
        (head_of(b"\x80", signed=True) + b"\0" * 1024, Verdict("sound")),
        (head_of(size=b"00000002000 "), Verdict("corrupt", "ends within a")),
        (head_of(b"", b"00000002000 "), Verdict("corrupt", "ends within a member")),
        (head_of(size=b"\x80" + (600).to_bytes(11, "big")), Verdict("corrupt", "ends within a")),
        (head_of(size=b"x" * 12) + b"\0" * 1024, Verdict("sound")),
        (head_of(size=b"\0" * 12) + b"\0" * 1024, Verdict("sound")),
        (head_of() + b"\0" * _MOST_ZEROS, Verdict("sound")),
        (
            head_of() + b"\0" * (_MOST_ZEROS + 512),
            Verdict(
                "unknown",
                f"has {_MOST_ZEROS + 512} bytes of zeros at its end; members may be missing",
            ),
        ),
    ],
)
def test_what_is_said_of_an_archive(content: bytes, verdict: Verdict) -> None:
    assert look(content) == verdict


@pytest.mark.parametrize(
    ("zeros", "status"),
    [(512, "corrupt"), (1024, "sound"), (_LONGEST_TAIL - 512, "sound"), (_LONGEST_TAIL, "corrupt")],
)
def test_an_end_of_few_zeros_stands_for_members_not_looked_at(
    monkeypatch: pytest.MonkeyPatch, zeros: int, status: str
) -> None:
    monkeypatch.setattr(cache_tar, "_FEW", 2)
    content = head_of() * 3 + b"\7" * 512 + b"\0" * zeros
    assert look(content).status == status
    assert look(content + b"\0").status == look(content, deep=True).status == "corrupt"
