# SPDX-License-Identifier: GPL-3.0-or-later
"""A size of /dev/shm is read as dockerd reads it, and written so that it reads the same."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlhost_limits.docker.daemon_json import DockerDefaults, read_defaults
from mlhost_limits.shared_memory.size import (
    DEFAULT_SHM_SIZE,
    TOO_LARGE,
    format_shm_size,
    parse_shm_size,
)

from tests.worlds.docker_defaults import collect_defaults

SIZES = {
    2**33: ["8589934592", "8g", "8G", "8GiB", "8 gb", "8Gi"],
    0: ["0", "0m", "0.4"],
    2**26: ["64m", "65536 KiB"],
    1: ["1.9"],
    1536: ["1.5k"],
    3 * 2**19: ["1.5 mb"],
    2**40: ["1t"],
    2**50: ["1P"],
    7: ["7", "7b"],
}


@pytest.mark.parametrize(
    ("value", "size"), [(value, size) for size, values in SIZES.items() for value in values]
)
def test_read_shm_size(value: str, size: int) -> None:
    """A size is read as dockerd 20.10 and 26.1 read it; in a file 0 stands for 64 MiB."""
    assert parse_shm_size(value) == size
    text = json.dumps({"default-shm-size": value})
    assert collect_defaults(read_defaults(text)) == DockerDefaults({}, size or 2**26)


@pytest.mark.parametrize(
    "value",
    [
        *(8589934592, None, "", "-1", "1e3", " 8G", "8G ", "8  G", "1_0", "0x10", "inf", ".5g"),
        *("9" * 400, "5.g", "+5g", "1.2.3g", "\u0661g", "8G\n", ["8G"]),
    ],
)
def test_refused_shm_size(value: object) -> None:
    """What dockerd refuses as a size states nothing; a JSON number is among it."""
    assert not isinstance(value, str) or parse_shm_size(value) is None
    assert read_defaults(json.dumps({"default-shm-size": value}, ensure_ascii=False)) == []


@pytest.mark.parametrize("value", ["99999999999999999999", "8388608p", "9223372036854775807"])
def test_a_size_that_no_container_can_have_states_nothing(value: str) -> None:
    """dockerd takes it and wraps it around to less than 0."""
    assert parse_shm_size(value) == TOO_LARGE
    assert read_defaults(json.dumps({"default-shm-size": value})) == []


def test_escapes_in_a_size_are_not_decoded() -> None:
    """dockerd hands the raw text between the quotes to its parser."""
    assert read_defaults('{"default-shm-size": "8\\u0067"}') == []


@given(st.integers(1, 2**50))
def test_a_written_size_is_read_back(size: int) -> None:
    """Every size that is written is read as the same number of bytes."""
    assert parse_shm_size(format_shm_size(size)) == size


def test_what_a_container_has_that_states_nothing() -> None:
    """DefaultShmSize of moby."""
    assert DEFAULT_SHM_SIZE == 64 * 1024 * 1024


def test_sizes_are_written_short() -> None:
    """A size is written with the largest unit that fits it exactly."""
    sizes = [2**33, 3 * 2**20, 2**50, 3072, 1536, 1000]
    assert [format_shm_size(size) for size in sizes] == ["8G", "3M", "1P", "3K", "1536", "1000"]
