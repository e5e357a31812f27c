# SPDX-License-Identifier: GPL-3.0-or-later
"""A /dev/shm that is too small is made larger, and one that is large enough is left as it is."""

from __future__ import annotations

import pytest
from mlhost_limits.shared_memory import provision
from mlhost_limits.shared_memory.provision import prepare_shm

GIB = 2**30


@pytest.fixture(autouse=True)
def host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in for a host with 16 GiB of memory, a /dev/shm of 8 GiB and no fstab."""
    monkeypatch.setattr(provision, "is_image", lambda: False)
    monkeypatch.setattr(provision, "read_fstab", lambda: None)
    monkeypatch.setattr(provision, "read_memory_size", lambda _name: 16 * GIB)
    monkeypatch.setattr(provision, "read_shm_size", lambda: 8 * GIB)


@pytest.mark.parametrize(
    ("size", "remounts"), [(8 * GIB - 1, False), (8 * GIB, False), (8 * GIB + 1, True)]
)
def test_only_too_small_a_size_is_changed_now(size: int, remounts: bool) -> None:
    section = prepare_shm(size, False, False)
    changes = (("size of /dev/shm", str(8 * GIB), str(size)),) if remounts else ()
    assert (section.running, section.settle is not None) == (changes, remounts)
    assert section.in_effect == ("shared_memory",)
    assert len(section.plan.edits) == remounts


@pytest.mark.parametrize(("size", "absent"), [(None, False), (None, True), (9 * GIB, True)])
def test_what_nobody_wants_changes_nothing(size: int | None, absent: bool) -> None:
    section = prepare_shm(size, False, absent)
    assert (section.plan.edits, section.running, section.settle) == ((), (), None)


def test_the_memory_of_an_image_s_host_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provision, "is_image", lambda: True)
    section = prepare_shm(64 * GIB, False, False)
    assert (len(section.plan.edits), section.plan.notes, section.settle) == (1, (), None)
    monkeypatch.setattr(provision, "is_image", lambda: False)
    assert prepare_shm(64 * GIB, False, False).plan.notes == (
        f"/etc/fstab: a /dev/shm of {64 * GIB} bytes is larger than this host's memory, {16 * GIB}",
    )


def test_a_size_that_cannot_be_read_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> int:
        raise OSError("/dev/shm: is not there")

    monkeypatch.setattr(provision, "read_shm_size", fail)
    section = prepare_shm(9 * GIB, False, False)
    assert section.plan.problems == ("shared_memory.size: /dev/shm: is not there",)
    assert section.settle is None
