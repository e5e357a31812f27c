# SPDX-License-Identifier: GPL-3.0-or-later
"""What a user may take of /dev/shm is told where systemd set a quota, or will at the next login.

No kernel of the tests has CONFIG_TMPFS_QUOTA: quotactl(2) has a stand-in that fills what it is given.
"""

from __future__ import annotations

import ctypes
import errno
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from mlhost_limits.core.finding import FAIL, PASS, UNKNOWN
from mlhost_limits.shared_memory import check, quota_read
from mlhost_limits.shared_memory.causes import ShmFacts, blame_quota, trace_shm
from mlhost_limits.shared_memory.model import Quota, find_size_for, foresee_quota

GIB = 2**30
ALICE = 1000
WITH, WITHOUT = "rw,inode64,usrquota", "rw,inode64"
MOUNTS = "26 1 0:24 / /dev/shm rw,nosuid shared:4 - tmpfs tmpfs {}\n"

Host = Callable[..., list[tuple[int, ...]]]


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    def make(
        options: str = WITH, hard: int = 0, used: int = 0, systemd: int = 258, error: int = 0
    ) -> list[tuple[int, ...]]:
        asked: list[tuple[int, ...]] = []

        def syscall(number: int, _handle: int, command: Any, uid: int, block: Any) -> int:
            asked.append((number, command.value, uid))
            if error:
                ctypes.set_errno(error)
                return -1
            block._obj.hard, block._obj.used = hard // 1024, used
            return 0

        library = SimpleNamespace(syscall=syscall)
        monkeypatch.setattr(quota_read, "read_kernel_text", lambda _path: MOUNTS.format(options))
        monkeypatch.setattr(quota_read, "read_systemd_version", lambda: systemd)
        monkeypatch.setattr(quota_read.ctypes, "CDLL", lambda *_args, **_options: library)
        return asked

    return make


@pytest.mark.parametrize(
    ("uid", "told", "quota"),
    [
        (ALICE, {"hard": 3 * GIB, "used": GIB}, Quota(3 * GIB, GIB)),
        (ALICE, {"used": GIB}, Quota(foresee_quota(10 * GIB), GIB, is_set=False)),
        (ALICE, {"systemd": 257}, None),
        (ALICE, {"hard": 3 * GIB, "systemd": 257}, Quota(3 * GIB, 0)),  # Whoever set it.
        (ALICE, {"options": WITHOUT, "hard": 3 * GIB}, None),
        (0, {"hard": 3 * GIB}, None),
    ],
)
def test_what_a_user_may_take(
    host: Host, uid: int, told: dict[str, Any], quota: Quota | None
) -> None:
    asked = host(**told)
    assert quota_read.read_quota(uid, 10 * GIB, "/") == quota
    assert asked in ([], [(443, 0x80000700, uid)])


def test_what_cannot_be_asked_is_not_known(host: Host) -> None:
    host(error=errno.EPERM)
    with pytest.raises(OSError, match="quota of user 1000 cannot be read: Operation not permitted"):
        quota_read.read_quota(ALICE, GIB, "/")


def test_a_size_gives_a_user_as_much_as_is_wanted() -> None:
    for wanted in (1, 80, GIB, 8 * GIB + 1):
        size = find_size_for(wanted)
        assert foresee_quota(size) >= wanted
        assert foresee_quota(size - 100) < wanted


FACTS = ShmFacts(8 * GIB, "tmpfs /dev/shm tmpfs size=8g 0 0\n", 64 * GIB)


def judge(
    monkeypatch: pytest.MonkeyPatch, quotas: dict[int, Quota | None], size: int
) -> list[tuple[str, str, list[str]]]:
    monkeypatch.setattr(check, "gather_shm", lambda: FACTS)
    monkeypatch.setattr(check.os, "geteuid", lambda: 0)
    monkeypatch.setattr(check, "list_users", lambda: [uid for uid in quotas if uid >= 0])
    monkeypatch.setattr(check, "read_quota", lambda uid, _size: quotas.get(uid, quotas.get(-1)))
    monkeypatch.setattr(check, "name_user", lambda uid: f"user{uid}")
    return [
        (one.requirement.item, one.status, [cause.code for cause in one.causes])
        for one in check.check_quotas(size)
    ]


def test_the_size_that_is_asked_for_is_asked_of_each_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    quotas = {1: Quota(6 * GIB, 0), 2: None, 3: Quota(8 * GIB, 0)}
    assert judge(monkeypatch, quotas, 8 * GIB) == [
        ("quota of user1", FAIL, ["shm-quota"]),
        ("quota of user3", PASS, []),
    ]
    assert judge(monkeypatch, {-1: Quota(6 * GIB, 0, is_set=False)}, 7 * GIB) == [
        ("quota of an ordinary user", FAIL, ["shm-quota"])
    ]
    # Where the size is too small itself, that is what must change first.
    assert judge(monkeypatch, quotas, 9 * GIB)[0] == ("quota of user1", FAIL, [])


def test_a_quota_that_cannot_be_read_is_no_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_size: int) -> None:
        raise OSError("no")

    monkeypatch.setattr(check, "gather_shm", lambda: FACTS)
    monkeypatch.setattr(check, "read_quotas", refuse)
    assert [one.status for one in check.check_quotas(GIB)] == [UNKNOWN]


def test_the_remedy_makes_it_large_enough_now_and_at_boot() -> None:
    cause = blame_quota(8 * GIB, "alice", Quota(foresee_quota(8 * GIB), 0), FACTS)
    size = find_size_for(8 * GIB)
    assert foresee_quota(size) >= 8 * GIB
    assert ("mount", "-o", f"remount,size={size}", "/dev/shm") in cause.remedy.commands
    assert f"size={size}" in cause.remedy.lines[0]
    assert "log in again" in cause.remedy.then
    assert cause.text.startswith("alice may take 6871947600B of /dev/shm: the 80 % ")
    later = Quota(foresee_quota(8 * GIB), 0, is_set=False)
    told = blame_quota(8 * GIB, "alice", later, FACTS).text
    assert told.startswith(
        "alice may take 6871947600B of /dev/shm from the next login on: the 80 % "
    )


def test_the_chain_ends_with_the_quotas() -> None:
    links = trace_shm(FACTS, {"alice": Quota(GIB, 0), "bob": Quota(2 * GIB, 0, is_set=False)})
    assert [tuple(one)[:3] for one in links[-2:]] == [
        ("alice", "1GiB", "its quota"),
        ("bob", "2GiB", "its quota from the next login on (80 %)"),
    ]


@pytest.mark.parametrize(("used", "free"), [(0, 9), (8, 1), (9, 0), (10, 0)])
def test_no_less_than_nothing_is_free(used: int, free: int) -> None:
    assert Quota(9, used).free == free
