# SPDX-License-Identifier: GPL-3.0-or-later
"""What is free in /dev/shm, and what of it runs left behind."""

from __future__ import annotations

import mmap
from pathlib import Path

import pytest
from mlhost_limits.training.shm_read import find_folder, find_leftovers, read_free, sum_sizes


def test_only_what_nobody_uses_is_left_behind(tmp_path: Path) -> None:
    for name in ("torch_12_345_0", "torch_13_345_0", "nccl-AbCdEf", "sem.x", "torch_notes"):
        (tmp_path / name).write_bytes(b"x" * 4096)
    (tmp_path / "nccl-link").symlink_to(tmp_path / "sem.x")
    with open(tmp_path / "torch_13_345_0", "r+b") as file:
        mapped = mmap.mmap(file.fileno(), 0)
    with open(tmp_path / "nccl-AbCdEf", "rb"):
        left = find_leftovers(str(tmp_path))
    mapped.close()
    assert [Path(one.path).name for one in left] == ["torch_12_345_0"]
    assert sum_sizes(left) == 4096
    assert len(find_leftovers(str(tmp_path))) == 3


def test_the_largest_comes_first(tmp_path: Path) -> None:
    (tmp_path / "nccl-a").write_bytes(b"x")
    (tmp_path / "nccl-b").write_bytes(b"xx")
    assert [Path(one.path).name for one in find_leftovers(str(tmp_path))] == ["nccl-b", "nccl-a"]


def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert find_leftovers(str(tmp_path / "none")) == []
    with pytest.raises(FileNotFoundError):
        read_free(str(tmp_path / "none"))


def test_what_is_free_is_a_number(tmp_path: Path) -> None:
    assert read_free(str(tmp_path)) > 0
    assert (find_folder(), find_folder("7")) == ("/dev/shm", "/proc/7/root/dev/shm")
