# SPDX-License-Identifier: GPL-3.0-or-later
"""What is kept comes back under its own key alone, and nothing else is believed."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from mlhost_limits.write.cache import keep_cached, read_cached


def test_what_is_kept_comes_back(tmp_path: Path) -> None:
    folder = str(tmp_path / "cache")
    contents: list[object] = [{"a": [1, None]}, [], 0, "text"]
    for content in contents:
        keep_cached("canary", "key", content, folder)
        assert read_cached("canary", "key", folder) == content
    assert stat.S_IMODE((tmp_path / "cache/canary.json").stat().st_mode) == 0o600


@pytest.mark.parametrize(("name", "key"), [("canary", "other"), ("other", "key")])
def test_nothing_comes_back_for_another_key_or_name(tmp_path: Path, name: str, key: str) -> None:
    keep_cached("canary", "key", 5, str(tmp_path))
    assert read_cached(name, key, str(tmp_path)) is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "5", '{"key": "other", "content": 5}', "\xff", '{"key": "key"}']
)
def test_what_cannot_be_used_is_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "canary.json").write_bytes(text.encode("latin-1"))
    assert read_cached("canary", "key", str(tmp_path)) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_the_word_of_somebody_else_is_no_measurement(tmp_path: Path) -> None:
    keep_cached("canary", "key", 5, str(tmp_path))
    os.chown(tmp_path / "canary.json", 12, 12)
    assert read_cached("canary", "key", str(tmp_path)) is None


def test_failing_to_keep_is_no_harm(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    keep_cached("canary", "key", 5, str(tmp_path / "file"))
    assert read_cached("canary", "key", str(tmp_path / "file")) is None
