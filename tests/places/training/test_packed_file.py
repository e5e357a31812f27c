# SPDX-License-Identifier: GPL-3.0-or-later
"""Compressed files are told from damaged ones, whatever they are called."""

from __future__ import annotations

import base64
import gzip
import lzma
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlhost_limits.training import cache_packed_read
from mlhost_limits.training.cache_look_read import check_open_file
from mlhost_limits.training.cache_packed import _MOST_BLOCKS, check_packed, is_packed
from mlhost_limits.training.cache_packed_read import Patience
from mlhost_limits.training.file_verdict import Verdict, find_kind

from tests.worlds.archives import make_pt

# What zstd 1.5 and lz4 1.9 made of 300 bytes, with and without their options.
ZSTD = {
    "zstd": (
        "KLUv/WQsAA0EAJQHpU3KGCUwux1tEyze1iN7LtkeP3IfyxlxF0SU1kk8nVw0YL4xIB5p/tqg7ui5mX9c"
        "fCmZ/a/lkyU81lSvTfrXFCegrrP+6SMvivIhH57kkcWxC+y1Vjv8Hm+TQn7LyP4pVeXNjkbcjtS3wnZN"
        "KlpNdncG+F2GkAJKBwEAOYwCUSYunt4="
    ),
    "zstd without a sum or a size": (
        "KLUv/QAADQQAlAelTcoYJTC7HW0TLN7WI3su2R4/ch/LGXEXRJTWSTydXDRgvjEgHmn+2qDu6LmZf1x8"
        "KZn9r+WTJTzWVK9N+tcUJ6Cus/7pIy+K8iEfnuSRxbEL7LVWO/web5NCfsvI/ilV5c2ORtyO1LfCdk0q"
        "Wk12dwb4XYaQAkoHAQA5jAJR"
    ),
    "zstd of one byte": ("KLUv/WAsAE0AABAHBwEAJyrAAg=="),
    "zstd as a stream": (
        "KLUv/QBYIAMApU3KGCUwux1tEyze1iN7LtkeP3IfyxlxF0SU1kk8nVw0YL4xIB5p/tqg7ui5mX9cfCmZ"
        "/a/lkyU81lSvTfrXFCegrrP+6SMvivIhH57kkcWxC+y1Vjv8Hm+TQn7LyP4pVeXNjuUAAKhG3I7Ut8J2"
        "TSpaTXZ3BvhdhpACSgcBAGEUYAI="
    ),
}
LZ4 = {
    "lz4": (
        "BCJNGGhALAEAAAAAAACEhQAAAP9rpU3KGCUwux1tEyze1iN7LtkeP3IfyxlxF0SU1kk8nVw0YL4xIB5p"
        "/tqg7ui5mX9cfCmZ/a/lkyU81lSvTfrXFCegrrP+6SMvivIhH57kkcWxC+y1Vjv8Hm+TQn7LyP4pVeXN"
        "jkbcjtS3wnZNKlpNdncG+F2GkAJKBwcCAJpQBwcHBwcAAAAA"
    ),
    "lz4 with all sums": (
        "BCJNGHxALAEAAAAAAAD6hQAAAP9rpU3KGCUwux1tEyze1iN7LtkeP3IfyxlxF0SU1kk8nVw0YL4xIB5p"
        "/tqg7ui5mX9cfCmZ/a/lkyU81lSvTfrXFCegrrP+6SMvivIhH57kkcWxC+y1Vjv8Hm+TQn7LyP4pVeXN"
        "jkbcjtS3wnZNKlpNdncG+F2GkAJKBwcCAJpQBwcHBwda/8MTAAAAANuk/DY="
    ),
    "lz4 without a size": (
        "BCJNGGBAgoUAAAD/a6VNyhglMLsdbRMs3tYjey7ZHj9yH8sZcRdElNZJPJ1cNGC+MSAeaf7aoO7ouZl/"
        "XHwpmf2v5ZMlPNZUr0361xQnoK6z/ukjL4ryIR+e5JHFsQvstVY7/B5vk0J+y8j+KVXlzY5G3I7Ut8J2"
        "TSpaTXZ3BvhdhpACSgcHAgCaUAcHBwcHAAAAAA=="
    ),
}
WHOLE = {
    **{name: base64.b64decode(text) for name, text in {**ZSTD, **LZ4}.items()},
    "xz": lzma.compress(b"sample" * 50),
    "xz of two": lzma.compress(b"one") + lzma.compress(b"two"),
}


def look(content: bytes) -> Verdict:
    return check_packed(lambda offset, size: content[offset : offset + size], len(content))


@pytest.mark.parametrize("name", WHOLE)
def test_every_truncation_is_seen(name: str) -> None:
    content = WHOLE[name]
    assert look(content) == Verdict("sound")
    assert is_packed(content[:8])
    ends = {size for size in range(len(content)) if look(content[:size]).status != "corrupt"}
    assert ends <= {len(lzma.compress(b"one"))}


@pytest.mark.parametrize("name", ["zstd", "lz4"])
def test_several_in_one_file_are_passed(name: str) -> None:
    skipped = b"\x50\x2a\x4d\x18" + (3).to_bytes(4, "little") + b"abc"
    content = skipped + WHOLE[name] * 2 + skipped
    assert look(content) == Verdict("sound")
    assert look(content[:-1]).status == "corrupt"
    assert look(content + b"else").status == "corrupt"


MAGIC = b"\x28\xb5\x2f\xfd"
LZ4_HEAD = b"\x04\x22\x4d\x18\x60\x40\x82"
STRANGE = "is compressed in a way that is not known"
CUT = "ends in the middle of its compressed data"
MANY = f"has more than {_MOST_BLOCKS} blocks"


@pytest.mark.parametrize(
    ("blocks", "status"),
    [  # Of a block, bit 0 says that it is the last, bits 1 and 2 its kind, the others its length.
        ([(0, 5, b"plain")], "sound"),
        ([(0, 5, b"plai")], "corrupt"),
        ([(1, 2000, b"r")], "sound"),
        ([(1, 2000, b"")], "corrupt"),
        ([(1, 2000, b"r"), (0, 2, b"ab"), (2, 3, b"abc")], "sound"),
        ([(3, 5, b"never")], "corrupt"),
    ],
)
@pytest.mark.parametrize(
    ("flags", "fields"),
    [(0x00, 1), (0x20, 1), (0x60, 2), (0xA0, 4), (0xE0, 8), (0x01, 2), (0x02, 3), (0x03, 5)],
)
def test_a_frame_of_zstd_is_passed_block_by_block(
    flags: int, fields: int, blocks: list[tuple[int, int, bytes]], status: str
) -> None:
    """Source: RFC 8878, sections 3.1.1.1 and 3.1.1.2."""
    content = MAGIC + bytes([flags]) + b"\0" * fields
    for number, (kind, length, data) in enumerate(blocks, 1):
        content += (length << 3 | kind << 1 | (number == len(blocks))).to_bytes(3, "little") + data
    assert look(content).status == status
    assert look(content + b"else").status == "corrupt"


@pytest.mark.parametrize(
    ("content", "status"),
    [(b"", "corrupt"), (b"\0" * 50, "corrupt"), (b"\x28\xb5", "corrupt"), (b"own", "unknown")],
)
def test_what_is_no_such_file_is_said(content: bytes, status: str) -> None:
    assert look(content).status == status


@given(st.binary(max_size=200), st.integers(0, 200))
def test_nothing_that_is_in_a_file_ends_the_look(junk: bytes, at: int) -> None:
    for content in WHOLE.values():
        assert look(content[:at] + junk + content[at + len(junk) :]).status in (
            "sound",
            "corrupt",
            "unknown",
        )


def look_at(
    path: Path, content: bytes, patience: Patience | None = None, deep: bool = False
) -> Verdict:
    path.write_bytes(content)
    handle = os.open(path, os.O_RDONLY)
    try:
        return check_open_file(handle, find_kind(path.name), deep, patience)
    finally:
        os.close(handle)


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("name", ["a.pt", "a.pt.gz", "a.tgz"])
def test_what_gzip_made_is_unpacked_and_looked_into(tmp_path: Path, name: str, deep: bool) -> None:
    """SimpleTuner's own cache has it under the ending of torch."""
    whole = make_pt((os.urandom(5000), b"\7" * 400_000))
    path, packed = tmp_path / name, gzip.compress(whole)
    assert look_at(path, packed, deep=deep) == Verdict("sound")
    assert look_at(path, packed + b"\0" * 512, deep=deep) == Verdict("sound")
    assert look_at(path, gzip.compress(whole[:7000]) + gzip.compress(whole[7000:])) == Verdict(
        "sound"
    )
    assert look_at(path, gzip.compress(whole[:-1])).reason.startswith("has no central directory")
    for size in (2, 5, 10, 11, len(packed) // 2, len(packed) - 8, len(packed) - 1):
        assert look_at(path, packed[:size]).status == "corrupt", size
    assert look_at(path, packed[:-8] + b"\7" * 8).reason.startswith("cannot be unpacked")
    assert look_at(path, packed + b"else").status == "corrupt"


def test_a_compressed_tensor_of_any_kind_is_no_damaged_one(tmp_path: Path) -> None:
    for name, content in WHOLE.items():
        assert look_at(tmp_path / "a.pt", content) == Verdict("sound"), name
        assert look_at(tmp_path / "a.pt", content[:-1]).status == "corrupt", name


def test_unpacking_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many files together, of one that is endless, and of one that fills the memory."""
    bomb = gzip.compress(b"\0" * 2**26)
    late = Verdict("unknown", "is compressed, and unpacking it takes too long")
    patience = Patience(0.0)
    assert look_at(tmp_path / "a.pt", bomb, patience) == late
    patience = Patience(30.0)
    started = time.monotonic()
    assert look_at(tmp_path / "a.pt", gzip.compress(make_pt()), patience) == Verdict("sound")
    assert not patience.is_over
    monkeypatch.setattr(time, "monotonic", lambda: started + 60)
    assert look_at(tmp_path / "a.pt", gzip.compress(make_pt()), Patience(None)) == Verdict("sound")
    monkeypatch.undo()
    monkeypatch.setattr(cache_packed_read, "_KEPT", 2**20)
    assert look_at(tmp_path / "a.pt", bomb) == Verdict("sound")


@pytest.mark.parametrize(
    ("content", "verdict"),
    [
        (b"BZh9data", Verdict("unknown", "is compressed, and was not unpacked")),
        (b"\x1f\x8bdata", Verdict("unknown", "is compressed, and was not unpacked")),
        (b"\x5f\x2a\x4d\x18" + b"\0" * 4, Verdict("sound")),
        (b"\x60\x2a\x4d\x18" + b"\0" * 4, Verdict("unknown", STRANGE)),
        (b"\x4f\x2a\x4d\x18" + b"\0" * 4, Verdict("unknown", STRANGE)),
        (WHOLE["xz"] + b"\0" * 4, Verdict("sound")),
        (WHOLE["xz"] + b"\0" * 2, Verdict("corrupt", CUT)),
        (WHOLE["xz"] + b"\0" * 4096, Verdict("corrupt", "ends in zeros")),
        (WHOLE["xz"] + b"\0" * 4092, Verdict("sound")),
        (MAGIC + b"\x20\0" + b"\0" * 3 * (_MOST_BLOCKS + 1), Verdict("unknown", MANY)),
        (LZ4_HEAD + b"\1\0\0\x80x" * (_MOST_BLOCKS + 1), Verdict("unknown", MANY)),
        (LZ4_HEAD + b"\1\0\0\x80x" + b"\0" * 4, Verdict("sound")),
        (LZ4_HEAD + b"\2\0\0\x80x", Verdict("corrupt", CUT)),
        # Of a known dictionary: four bytes more, before the sum of the header.
        (LZ4_HEAD[:4] + b"\x61\x40" + b"\7" * 5 + b"\0" * 4, Verdict("sound")),
    ],
)
def test_what_is_said_of_a_compressed_file(content: bytes, verdict: Verdict) -> None:
    assert look(content) == verdict


@pytest.mark.parametrize(
    ("head", "packed"),
    [(b"BZh9", True), (b"\x1f\x8b\x08", True), (b"PK\3\4", False), (b"BZ", False), (b"", False)],
)
def test_a_compressed_file_is_told_by_its_first_bytes(head: bytes, packed: bool) -> None:
    assert is_packed(head) is packed
