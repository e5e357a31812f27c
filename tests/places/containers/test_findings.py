# SPDX-License-Identifier: GPL-3.0-or-later
"""A container of either engine is judged by its limits and by the size of its /dev/shm."""

from __future__ import annotations

import os
import platform
import struct
import subprocess
from pathlib import Path

import pytest
from mlhost_limits.containers.findings import (
    ContainerLimits,
    build_program,
    judge_container,
    judge_container_unknown,
    require_container,
)
from mlhost_limits.containers.policy import ContainerPolicy
from mlhost_limits.core.finding import Finding, Observation
from mlhost_limits.core.reader import Limit
from mlhost_limits.core.values import UNLIMITED, Rlimit
from mlhost_limits.systemd.tasks import Level

LIMITS = {"nofile": Limit(100, 200)}
ASKED = ContainerPolicy(LIMITS, 4096)
PLACE = "new-container:x"


def test_limits_and_shared_memory_are_demanded() -> None:
    wanted = require_container(PLACE, ASKED)
    assert [(one.item, one.bound, one.minimum, one.unit) for one in wanted] == [
        ("nofile", "soft", 100, ""),
        ("nofile", "hard", 200, ""),
        ("shm_size", "value", 4096, "bytes"),
    ]
    assert [one.item for one in require_container(PLACE, ASKED._replace(shm_size=None))] == [
        "nofile",
        "nofile",
    ]


@pytest.mark.parametrize(("size", "status"), [(4096, "pass"), (4095, "fail"), (None, "unknown")])
def test_what_was_seen_is_judged(size: int | None, status: str) -> None:
    soft, hard, shm = judge_container(
        PLACE, ASKED, ContainerLimits({"nofile": Rlimit(99, 200)}, size), "seen"
    )
    assert (soft.status, hard.status, shm.status) == ("fail", "pass", status)
    assert {one.observation.how for one in (soft, hard, shm)} == {"seen"}
    told = "it has no /dev/shm of its own" if size is None else ""
    assert shm.observation.reason == told


def test_what_was_not_seen_is_unknown() -> None:
    findings = judge_container_unknown(PLACE, ASKED, "why")
    assert [(one.status, one.observation.reason) for one in findings] == [("unknown", "why")] * 3


def test_the_lowest_bound_on_tasks_counts() -> None:
    levels = (Level("a.scope", "/a", UNLIMITED), Level("b.slice", "/b", 99))
    asked = ASKED._replace(tasks=100)
    (wanted,) = [one for one in require_container(PLACE, asked) if one.item == "tasks"]
    seen = ContainerLimits({"nofile": Rlimit(100, 200)}, 4096, levels)
    few = judge_container(PLACE, asked, seen, "seen")[-1]
    assert few == Finding("fail", wanted, Observation(99, "/b"))
    enough = judge_container(PLACE, asked, seen._replace(levels=levels[:1]), "")[-1]
    assert (enough.status, enough.observation.value) == ("pass", UNLIMITED)
    unseen = judge_container(PLACE, asked, seen._replace(levels=()), "seen")[-1]
    assert unseen.status == "unknown"
    assert unseen.observation.reason == "its cgroup bounds no tasks that can be read"
    unknown = judge_container_unknown(PLACE, asked, "why")[-1]
    assert (unknown.requirement, unknown.observation.reason) == (wanted, "why")


@pytest.mark.parametrize(("machine", "number"), [("x86_64", 62), ("aarch64", 183)])
def test_the_program_of_a_canary_is_what_elf_5_has(machine: str, number: int) -> None:
    """One segment holds the whole file; the program begins behind the headers, the time last."""
    program = build_program(machine)
    kind, of, version, entry = struct.unpack_from("<HHIQ", program, 16)
    assert (program[:7], kind, of, version) == (b"\x7fELF\x02\x01\x01", 2, number, 1)
    table, sections, flags = struct.unpack_from("<QQI", program, 32)
    assert (table, sections, flags) == (64, 0, 0)
    assert struct.unpack_from("<HHHHHH", program, 52) == (64, 56, 1, 0, 0, 0)
    load, may, at, address, physical, size, wide, aligned = struct.unpack_from(
        "<IIQQQQQQ", program, 64
    )
    assert (load, may, at, physical) == (1, 5, 0, address)  # PT_LOAD, to be read and run.
    assert size == wide == len(program)
    assert (entry - address, address % aligned, aligned & (aligned - 1)) == (64 + 56, 0, 0)
    assert struct.unpack("<qq", program[-16:]) == (120, 0)  # A struct timespec.


@pytest.mark.skipif(platform.machine() != "x86_64", reason="its code is of another machine")
def test_the_program_of_a_canary_sleeps_until_it_is_ended(tmp_path: Path) -> None:
    file = tmp_path / "program"
    file.write_bytes(build_program(platform.machine()))
    file.chmod(0o755)
    with subprocess.Popen([str(file)]) as process:
        while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            state = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]
            if state == "S":
                process.terminate()
    assert process.returncode == -15
