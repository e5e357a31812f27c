# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics that nobody writes any more are removed, and nothing else that has their name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from mlhost_limits.install_monitor import _plan_metrics
from mlhost_limits.node.plan import METRICS, Monitor


@pytest.mark.parametrize(
    ("old", "new", "absent", "gone"),
    [
        ("a", "a", False, []),
        ("a", "b", False, ["a"]),
        ("a", "", False, ["a"]),
        ("", "b", False, []),
        ("a", "", True, ["a"]),
        ("a", "b", True, ["a", "b"]),
        ("", "b", True, ["b"]),
        ("none", "b", False, []),
    ],
)
def test_metrics_of_a_folder_that_was_dropped_go(
    tmp_path: Path, old: str, new: str, absent: bool, gone: list[str]
) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / METRICS).write_text("x")
    service = f"ExecStart=/usr/bin/python3 x monitor --metrics {tmp_path}/{old}/{METRICS}\n"
    wanted = Monitor(textfiles=f"{tmp_path}/{new}" if new else "", absent=absent)
    edits = _plan_metrics(wanted, service.encode() if old else b"")
    assert [edit.path for edit in edits] == [f"{tmp_path}/{name}/{METRICS}" for name in gone]
    assert all((edit.before, edit.after) == (b"x", None) for edit in edits)


@pytest.mark.skipif(os.geteuid() != 0, reason="owners are root's to change")
def test_a_file_that_is_not_ours_is_neither_shown_nor_removed(tmp_path: Path) -> None:
    """The folder is the exporter's own, who may put a link there."""
    (tmp_path / METRICS).symlink_to("/etc/passwd")
    wanted = Monitor(textfiles=str(tmp_path), absent=True)
    assert _plan_metrics(wanted, b"") == ()
    (tmp_path / METRICS).unlink()
    (tmp_path / METRICS).write_text("theirs")
    os.chown(tmp_path / METRICS, 12, 12)
    assert _plan_metrics(wanted, b"") == ()
