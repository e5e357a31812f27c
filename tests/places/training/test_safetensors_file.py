# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever cuts a safetensors file short is seen, and a whole one is never blamed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlhost_limits.training.file_verdict import Verdict
from mlhost_limits.training.weights_file import check_safetensors

from tests.worlds.archives import make_safetensors


def check(content: bytes) -> Verdict:
    return check_safetensors(lambda offset, size: content[offset : offset + size], len(content))


@pytest.mark.parametrize("tensors", [(), (b"",), (b"x" * 4096,), (b"a" * 10, b"b" * 20)])
def test_every_truncation_of_a_whole_file_is_seen(tensors: tuple[bytes, ...]) -> None:
    content = make_safetensors(tensors)
    assert check(content) == Verdict("sound")
    for size in range(len(content)):
        assert check(content[:size]).status == "corrupt"


@given(st.lists(st.binary(max_size=400), max_size=6), st.data())
def test_every_truncation_of_any_file_is_seen(tensors: list[bytes], data: st.DataObject) -> None:
    content = make_safetensors(tuple(tensors))
    assert check(content).status == "sound"
    assert check(content[: data.draw(st.integers(0, len(content) - 1))]).status == "corrupt"
    assert check(content + b"x").status == "corrupt"


@given(st.binary(max_size=300), st.integers(0, 400))
def test_nothing_that_is_in_a_file_ends_the_check(junk: bytes, at: int) -> None:
    content = make_safetensors()
    assert check(content[:at] + junk + content[at + len(junk) :]).status in ("sound", "corrupt")
    assert check(junk).status in ("sound", "corrupt")


def tensor(offsets: list[int], shape: list[int]) -> bytes:
    row = {"dtype": "U8", "shape": shape, "data_offsets": offsets}
    return json.dumps({"a": row}).encode()


def test_the_bytes_of_a_tensor_are_those_of_its_shape() -> None:
    """As the library asks for: no hole before a tensor, none after it, and as many as it states."""
    assert check(frame(tensor([0, 2], [2])) + b"12") == Verdict("sound")
    odd = json.dumps({"a": {"dtype": "F4_E2M1", "shape": [3], "data_offsets": [0, 2]}}).encode()
    assert check(frame(odd) + b"12") == Verdict("sound")


def frame(header: bytes) -> bytes:
    return len(header).to_bytes(8, "little") + header


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b"1234567", "ends within its first 8 bytes"),
        (b"\0" * 8, "has a header that states no tensors"),
        (
            (100).to_bytes(8, "little") + b"x" * 10,
            "ends within its header, or begins with something else",
        ),
        (b"\0" * 64, "has a header that states no tensors"),
        (
            b"PK\3\4" + b"\0" * 3 + b"\1" + b"\0" * 64,
            "ends within its header, or begins with something else",
        ),
        (frame(b"[]"), "has a header that states no tensors"),
        (frame(b"{"), "has a header that states no tensors"),
        (frame(b'{"a": 1}'), "has a header that states no tensors"),
        (frame(b'{"a": {}}'), "has a header that states no tensors"),
        (frame(b'{"a": {"data_offsets": [4, 2]}}'), "has a header that states no tensors"),
        (frame(b'{"a": {"data_offsets": ["0", "2"]}}'), "has a header that states no tensors"),
        (frame(b"[" * 100000), "has a header that states no tensors"),
        (frame(tensor([0, 2], [2])), "has 68 bytes, and its header states 70"),
        (frame(tensor([0, 2], [3])) + b"12", "has a header that states no tensors"),
        (frame(tensor([1, 3], [2])) + b"123", "has a header that states no tensors"),
    ],
)
def test_what_is_wrong_is_said(content: bytes, reason: str) -> None:
    assert check(content) == Verdict("corrupt", reason)


def test_a_header_that_would_fill_the_memory_is_not_read() -> None:
    def read(offset: int, size: int) -> bytes:
        assert size == 8
        return (2**39).to_bytes(8, "little")

    assert check_safetensors(read, 2**40).status == "corrupt"


@pytest.mark.parametrize(
    ("dtype", "width"),
    [("BOOL", 1), ("F8_E4M3", 1), ("BF16", 2), ("I16", 2), ("F32", 4), ("F64", 8), ("I64", 8)],
)
def test_a_number_takes_as_many_bytes_as_its_type(dtype: str, width: int) -> None:
    for size in (width, width + 1):
        row = {"dtype": dtype, "shape": [3, 2], "data_offsets": [0, 6 * size]}
        found = check(frame(json.dumps({"a": row}).encode()) + b"x" * 6 * size)
        assert found.status == ("sound" if size == width else "corrupt")
