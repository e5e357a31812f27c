# SPDX-License-Identifier: GPL-3.0-or-later
"""A host that runs, a tree of one to come, and a container in which one is built are told apart."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mlhost_limits.host import booted, image

REAL = os.stat


@pytest.fixture(autouse=True)
def ask_again() -> Iterator[None]:
    for one in (booted.is_chroot, image._serves_sessions):
        one.cache_clear()
    yield
    for one in (booted.is_chroot, image._serves_sessions):
        one.cache_clear()


def answer(monkeypatch: pytest.MonkeyPatch, first: object) -> None:
    """Let the root of process 1 be this: another path, or the error of looking."""

    def stat(path: str, **options: Any) -> os.stat_result:
        if path != "/proc/1/root/.":
            return REAL(path, **options)
        if isinstance(first, OSError):
            raise first
        return REAL(str(first))

    monkeypatch.setattr(os, "stat", stat)


@pytest.mark.parametrize(
    ("first", "wanted"),
    [
        ("/", False),
        ("/proc", True),
        (FileNotFoundError(), True),
        (NotADirectoryError(), True),
        (PermissionError(), False),
    ],
)
def test_a_tree_has_another_root_than_process_1(
    first: object, wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(monkeypatch, first)
    assert booted.is_chroot() is wanted


@pytest.mark.parametrize(
    ("namespace", "booted", "running", "wanted"),
    [
        ("pid:[4026531836]", False, ["bash"], False),
        ("pid:[4026532001]", False, ["bash"], True),
        ("pid:[4026532001]", False, ["tini", "sshd"], False),
        ("pid:[4026532001]", False, ["slurmd"], False),
        ("pid:[4026532001]", True, ["systemd"], False),
    ],
)
def test_a_container_is_one_unless_systemd_or_sessions_run_in_it(
    namespace: str,
    booted: bool,
    running: list[str],
    wanted: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer(monkeypatch, "/")
    monkeypatch.setattr(os, "readlink", lambda _path: namespace)
    monkeypatch.setattr(image, "is_booted", lambda: booted)
    numbers = [str(number) for number in range(len(running))]
    monkeypatch.setattr(os, "listdir", lambda _path: [*numbers, "self"])
    monkeypatch.setattr(image, "read_comm", lambda pid: running[int(pid)])
    monkeypatch.setattr(image, "is_daemon", lambda pid, name: running[pid] == name)
    assert image.is_image() is wanted


def test_where_namespaces_cannot_be_told_it_is_a_host(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_path: str) -> str:
        raise OSError

    answer(monkeypatch, "/")
    monkeypatch.setattr(os, "readlink", fail)
    monkeypatch.setattr(image, "is_booted", lambda: False)
    assert not image.is_image()


def test_a_chroot_in_a_host_that_runs_is_not_booted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "isdir", lambda _path: True)
    monkeypatch.setattr(os.path, "islink", lambda _path: False)
    monkeypatch.setattr(booted, "is_chroot", lambda: True)
    assert not booted.is_booted()


def test_a_tree_boots_if_it_has_an_init(tmp_path: Path) -> None:
    assert not image.will_boot(str(tmp_path))
    (tmp_path / "sbin").mkdir()
    (tmp_path / "sbin/init").symlink_to("/lib/systemd/systemd")
    assert image.will_boot(str(tmp_path))
