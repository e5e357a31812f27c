# SPDX-License-Identifier: GPL-3.0-or-later
"""The library is hashed and packed once for a run of Ansible, however many hosts and tasks."""

from __future__ import annotations

import os
from multiprocessing import get_context
from pathlib import Path

import pytest

from plugins.module_utils.kept import unpack
from plugins.plugin_utils import library
from plugins.plugin_utils.library import read_digest, read_packed


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often the files were read."""
    counted: list[int] = []
    read = library._read_library

    def count() -> dict[str, bytes]:
        counted.append(1)
        return read()

    monkeypatch.setattr(library, "_read_library", count)
    return counted


def test_the_files_are_read_once_for_all_hosts(tmp_path: Path, readings: list[int]) -> None:
    folder = str(tmp_path)
    digests = {read_digest(folder) for _host in range(9)}
    assert len(readings) == 1
    packed = {read_packed(folder) for _host in range(9)}
    assert len(readings) == 2
    [(digest, archive)] = packed
    assert digests == {digest}
    assert "check_host.py" in unpack(archive, digest)


@pytest.mark.parametrize("kept", [b"", b"e3b0c4", b"\xff" * 64, b"x" * 64])
def test_what_is_not_whole_is_made_again(tmp_path: Path, readings: list[int], kept: bytes) -> None:
    (tmp_path / "mlhost-limits-digest").write_bytes(kept)
    assert read_digest(str(tmp_path)) == read_digest(str(tmp_path))
    assert len(readings) == 1


def test_an_upgrade_in_the_middle_sends_what_its_digest_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = read_digest(str(tmp_path))
    monkeypatch.setattr(library, "_read_library", lambda: {"__init__.py": b"newer = 1\n"})
    digest, archive = read_packed(str(tmp_path))
    assert digest != before
    assert unpack(archive, digest) == {"__init__.py": b"newer = 1\n"}


def test_without_a_place_to_keep_it_the_answer_is_the_same(
    tmp_path: Path, readings: list[int]
) -> None:
    gone = str(tmp_path / "gone")
    assert read_digest(gone) == read_digest(str(tmp_path))
    assert len(readings) == 2
    assert os.listdir(tmp_path) == ["mlhost-limits-digest"]


def test_hosts_that_start_together_agree(tmp_path: Path) -> None:
    with get_context("fork").Pool(8) as pool:
        told = pool.map(read_packed, [str(tmp_path)] * 32)
    assert len(set(told)) == 1
    assert os.listdir(tmp_path) == ["mlhost-limits-library"]
