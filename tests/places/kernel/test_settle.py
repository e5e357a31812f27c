# SPDX-License-Identifier: GPL-3.0-or-later
"""Running values are written in order, and all put back when one is refused."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from mlhost_limits.kernel import settle as kernel
from mlhost_limits.kernel.read import read_sysctl
from mlhost_limits.kernel.settle import apply_sysctls


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """Return a /proc whose values can be written; a shorter one leaves no rest of the old."""
    for key, value in (
        ("fs/nr_open", "1048576"),
        ("vm/max_map_count", "65530"),
        ("net/x", "1\t2\t3"),
    ):
        path = tmp_path / "sys" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n")
    return tmp_path


def values(proc: Path) -> list[str | None]:
    return [read_sysctl(key, str(proc)) for key in ("fs.nr_open", "vm.max_map_count", "net.x")]


def test_applying_what_is_returned_undoes_the_writes(proc: Path) -> None:
    before = values(proc)
    writes = [("fs.nr_open", "2097152"), ("vm.max_map_count", "70000"), ("net.x", "4 5 6")]
    undo = apply_sysctls(writes, str(proc))
    assert values(proc) == ["2097152", "70000", "4 5 6"]
    assert undo == [("net.x", "1\t2\t3"), ("vm.max_map_count", "65530"), ("fs.nr_open", "1048576")]
    apply_sysctls(undo, str(proc))
    assert values(proc) == before


def test_nothing_to_write_is_nothing_to_undo(proc: Path) -> None:
    assert apply_sysctls((), str(proc)) == []


def test_a_refused_value_puts_the_earlier_ones_back(
    proc: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.write

    def refuse_nine(handle: int, content: bytes) -> int:
        if content == b"9\n":
            raise OSError(22, "whatever")
        return real(handle, content)

    monkeypatch.setattr(kernel.os, "write", refuse_nine)
    before = values(proc)
    with pytest.raises(OSError, match=r"^vm\.max_map_count = 9: Invalid argument$"):
        apply_sysctls([("fs.nr_open", "2097152"), ("vm.max_map_count", "9")], str(proc))
    assert values(proc) == before


def test_a_container_is_told_where_the_kernel_is_set(
    proc: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_handle: int, _content: bytes) -> int:
        raise OSError(errno.EROFS, "whatever")

    monkeypatch.setattr(kernel.os, "write", refuse)
    (proc / "sys/vm/no").write_text("4")
    with pytest.raises(OSError, match=r"^vm\.no = 5: /proc/sys is read-only .* on the host that"):
        apply_sysctls([("vm.no", "5")], str(proc))


def test_a_key_that_is_absent_is_not_made(proc: Path) -> None:
    with pytest.raises(OSError, match=r"^vm\.no = 5: No such file or directory$"):
        apply_sysctls([("vm.no", "5")], str(proc))
    assert not (proc / "sys/vm/no").exists()
