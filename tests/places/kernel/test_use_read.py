# SPDX-License-Identifier: GPL-3.0-or-later
"""What is in use is read in the kernel's own words, and the largest limit has an owner."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlhost_limits.kernel.lockouts import KernelUse
from mlhost_limits.kernel.use_read import (
    find_largest_nofile,
    read_kernel_use,
    read_memory_size,
)

# A booted Debian 12 with 1 GiB, shortened.
MEMINFO = """\
MemTotal:         996368 kB
MemAvailable:     716796 kB
SwapTotal:             0 kB
CommitLimit:      498184 kB
Committed_AS:     292816 kB
HugePages_Total:       3
Hugepagesize:       2048 kB
"""


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def test_every_figure_is_read(tmp_path: Path) -> None:
    write(tmp_path, "loadavg", "1.39 1.54 0.85 2/95 2528\n")
    write(tmp_path, "sys/fs/file-nr", "512\t0\t9223372036854775807\n")
    write(tmp_path, "sys/vm/overcommit_memory", "2\n")
    write(tmp_path, "meminfo", MEMINFO)
    assert read_kernel_use([(5, "me")], str(tmp_path)) == KernelUse(
        tasks=95,
        files=512,
        memory=996368 * 1024,
        available=716796 * 1024,
        swap=0,
        committed=292816 * 1024,
        commit_limit=498184 * 1024,
        strict=True,
        huge_page=2048 * 1024,
        huge_pages=3,
        nofiles=((5, "me"),),
    )


@pytest.mark.parametrize("name", ["loadavg", "sys/fs/file-nr"])
def test_what_a_sandbox_leaves_empty_is_not_known(tmp_path: Path, name: str) -> None:
    write(tmp_path, "loadavg", "1.39 1.54 0.85 2/95 2528\n")
    write(tmp_path, "sys/fs/file-nr", "512\t0\t9223372036854775807\n")
    write(tmp_path, "meminfo", MEMINFO)
    write(tmp_path, name, "\n")
    with pytest.raises(OSError, match=f"/{name} does not hold that number"):
        read_kernel_use((), str(tmp_path))


@pytest.mark.parametrize(
    "text",
    ["", "MemAvailable:\n", "MemAvailable: lots kB\n", "\0\0\n", "MemTotal: 5 kB\nMemAvail\n"],
)
def test_a_size_that_is_not_there_is_no_zero(tmp_path: Path, text: str) -> None:
    write(tmp_path, "meminfo", text)
    with pytest.raises(OSError, match=f"{tmp_path}/meminfo does not say MemAvailable"):
        read_memory_size("MemAvailable", str(tmp_path))
    write(tmp_path, "meminfo", f"{text}\n{MEMINFO}")
    assert read_memory_size("MemAvailable", str(tmp_path)) == 716796 * 1024


def test_this_kernel_is_read() -> None:
    use = read_kernel_use()
    assert use.tasks > 1
    assert 0 < use.available <= use.memory


def test_the_largest_limit_has_an_owner(tmp_path: Path) -> None:
    text = Path("/proc/self/limits").read_text().splitlines()
    for pid, hard in ((1, 4096), (20, 524288), (3, 524288)):
        rows = [
            f"{'Max open files':<26}{1024:<21}{hard:<21}files"
            if row.startswith("Max open f")
            else row
            for row in text
        ]
        write(tmp_path, f"{pid}/limits", "\n".join(rows))
        write(tmp_path, f"{pid}/comm", f"name{pid}\n")
    (tmp_path / "40").mkdir()
    (tmp_path / "self").mkdir()
    assert find_largest_nofile(str(tmp_path)) == (524288, "name3 (pid 3)")
    assert find_largest_nofile(str(tmp_path / "40")) == (0, "nobody (pid 0)")
