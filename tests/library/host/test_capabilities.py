# SPDX-License-Identifier: GPL-3.0-or-later
"""A process may do what its capabilities say, and raises limits in no user namespace of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlhost_limits.host import look as capabilities
from mlhost_limits.host.look import may_lock_memory, may_raise_limits

DOCKER, PRIVILEGED = "00000000a80425fb", "000001ffffffffff"
HOST, ROOTLESS = "         0          0 4294967295\n", "         0       1000          1\n"


@pytest.fixture(autouse=True)
def ask_again() -> Iterator[None]:
    may_raise_limits.cache_clear()
    yield
    may_raise_limits.cache_clear()


def write(proc: Path, pid: str, held: str) -> Path:
    folder = proc / pid
    folder.mkdir()
    (folder / "status").write_text(f"Name:\tx\nCapPrm:\t0\nCapEff:\t{held}\n")
    return folder


@pytest.mark.parametrize(
    ("held", "expected"), [(DOCKER, False), (PRIVILEGED, True), ("0000000000004000", True)]
)
def test_memlock_binds_without_the_capability(tmp_path: Path, held: str, expected: bool) -> None:
    write(tmp_path, "7", held)
    assert may_lock_memory(7, str(tmp_path)) is expected
    assert not may_lock_memory(8, str(tmp_path))


@pytest.mark.parametrize(
    ("uid", "held", "mapped", "expected"),
    [
        (0, PRIVILEGED, HOST, True),
        (0, PRIVILEGED, None, True),
        (0, DOCKER, HOST, False),
        (0, PRIVILEGED, ROOTLESS, False),
        (1000, "0", HOST, True),
    ],
)
def test_who_may_raise_limits(
    uid: int,
    held: str,
    mapped: str | None,
    expected: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    folder = write(tmp_path, "self", held)
    if mapped:
        (folder / "uid_map").write_text(mapped)
    assert may_raise_limits(str(tmp_path)) is expected


def test_this_process_is_told_right() -> None:
    """The kernel's own word: a hard limit is raised, or it is not."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_MSGQUEUE)
    child = os.fork()
    if not child:
        try:
            resource.setrlimit(resource.RLIMIT_MSGQUEUE, (soft, hard + 1))
        except (OSError, ValueError):
            os._exit(1)
        os._exit(0)
    raised = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    if os.geteuid() == 0:
        assert capabilities.may_raise_limits() is raised
