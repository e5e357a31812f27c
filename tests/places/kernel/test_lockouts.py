# SPDX-License-Identifier: GPL-3.0-or-later
"""A kernel value that would end logins or the host is refused, by what is in use; no other is."""

from __future__ import annotations

import pytest
from mlhost_limits.kernel.lockouts import KernelUse, find_locking_values
from mlhost_limits.kernel.policy import KernelValue

MIB, GIB = 2**20, 2**30
USE = KernelUse(
    tasks=200,
    files=1000,
    memory=64 * GIB,
    available=40 * GIB,
    swap=0,
    committed=10 * GIB,
    commit_limit=32 * GIB,
    strict=False,
    huge_page=2 * MIB,
    huge_pages=512,
    nofiles=((4096, "/etc/security/limits.conf:3"), (524288, "sshd (pid 7)")),
)
NO_MORE = "200 tasks run now, and no more could start, not even root's"


def exact(value: int | str) -> KernelValue:
    return KernelValue(exact=str(value))


@pytest.mark.parametrize(
    ("key", "least", "why"),
    [
        ("kernel.pid_max", 1224, NO_MORE),
        ("kernel.threads-max", 1224, NO_MORE),
        ("fs.file-max", 9192, "1000 files are open now, and sshd could open no more"),
        (
            "fs.nr_open",
            524288,
            "sshd (pid 7) has a nofile of 524288, which setrlimit(2) would refuse",
        ),
        ("vm.max_map_count", 4096, "sshd does not start with 200, and no limit exempts root"),
        ("kernel.pty.max", 64, "a login at a terminal needs one"),
        ("fs.epoll.max_user_watches", 4096, "Docker dies without"),
    ],
)
def test_the_least(key: str, least: int, why: str) -> None:
    assert list(find_locking_values({key: exact(least)}, USE)) == []
    said = list(find_locking_values({key: exact(least - 1)}, USE))
    assert said == [f"kernel.{key}: {least - 1} is too low: {why}; {least} or more is accepted"]
    assert list(find_locking_values({key: KernelValue(1)}, USE)) == []  # Lowers nothing.


@pytest.mark.parametrize(
    ("key", "most", "why"),
    [
        (
            "vm.nr_hugepages",
            (40 * GIB + GIB - 64 * GIB // 20) // (2 * MIB),
            "pages of 2097152 bytes would take the memory that logins need",
        ),
        (
            "vm.min_free_kbytes",
            16 * MIB,
            "the kernel kills processes until this much is free",
        ),
    ],
)
def test_the_most(key: str, most: int, why: str) -> None:
    for value in (KernelValue(most), exact(most), KernelValue(maximum=most + 1)):
        assert list(find_locking_values({key: value}, USE)) == []
    problem = f"kernel.{key}: {most + 1} is too high: {why}; {most} or less is accepted"
    for value in (KernelValue(most + 1), exact(most + 1)):
        assert list(find_locking_values({key: value}, USE)) == [problem]


def test_of_a_little_memory_logins_keep_their_share() -> None:
    use = USE._replace(memory=2 * GIB, available=GIB, huge_pages=0)
    assert list(find_locking_values({"vm.nr_hugepages": exact(384)}, use)) == []
    assert len(list(find_locking_values({"vm.nr_hugepages": exact(385)}, use))) == 1


def test_a_key_that_locks_nobody_out_hides_none_after_it() -> None:
    wanted = {"vm.swappiness": exact(1), "fs.file-max": exact("x"), "kernel.pty.max": exact(1)}
    assert len(list(find_locking_values(wanted, USE))) == 1


@pytest.mark.parametrize("key", ["ratio", "kbytes"])
def test_strict_accounting_gives_out_swap_as_well(key: str) -> None:
    least = {"ratio": 17, "kbytes": 11 * GIB // 1024 - 1}[key]
    wanted = {f"vm.overcommit_{key}": exact(least)}
    use = USE._replace(strict=True)
    assert len(list(find_locking_values(wanted, use))) == 1
    assert list(find_locking_values(wanted, use._replace(swap=GIB))) == []


def test_a_kernel_without_huge_pages_can_have_none() -> None:
    use = USE._replace(huge_page=0, huge_pages=0, available=0)
    assert list(find_locking_values({"vm.nr_hugepages": exact(0)}, use)) == []
    assert len(list(find_locking_values({"vm.nr_hugepages": exact(1)}, use))) == 1


@pytest.mark.parametrize("value", [exact("many"), exact("1 2"), KernelValue(maximum=3)])
def test_what_is_no_number_is_not_judged(value: KernelValue) -> None:
    use = USE._replace(nofiles=())
    for key in ("net.ipv4.tcp_rmem", "vm.overcommit_memory", "vm.swappiness"):
        assert list(find_locking_values({key: value}, use)) == []


@pytest.mark.parametrize(
    ("values", "strict", "limit"),
    [
        ({"memory": 2}, False, None),
        ({"memory": 0, "ratio": 1}, True, None),
        ({"memory": 2, "ratio": 17}, False, 10967),
        ({"memory": 2, "ratio": 18}, False, None),
        ({"ratio": 17}, True, 10967),
        ({"ratio": 17}, False, None),
        ({"kbytes": 11 * GIB // 1024}, True, None),
        ({"kbytes": 11 * GIB // 1024 - 1}, True, 11263),
        ({"kbytes": 0, "ratio": 17}, True, 10967),
        ({}, True, None),
    ],
)
def test_strict_accounting_must_leave_room(
    values: dict[str, int], strict: bool, limit: int | None
) -> None:
    wanted = {f"vm.overcommit_{name}": exact(value) for name, value in values.items()}
    said = list(find_locking_values(wanted, USE._replace(strict=strict)))
    key = next(iter(wanted), "")
    problem = (
        f"kernel.{key}: lets processes have {limit}MiB in all, of which 10240MiB are taken, so"
        " logins could not start; 11264MiB or more is accepted"
    )
    assert said == ([problem] if limit else [])


@pytest.mark.parametrize("key", ["fs.nr_open", "vm.min_free_kbytes", "vm.nr_hugepages"])
def test_nothing_is_too_little_where_nobody_needs_any(key: str) -> None:
    assert list(find_locking_values({key: exact(0)}, USE._replace(nofiles=()))) == []


def test_what_is_committed_already_counts() -> None:
    wanted = {"vm.overcommit_memory": exact(2)}
    assert list(find_locking_values(wanted, USE._replace(committed=32 * GIB)))
