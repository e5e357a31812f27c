# SPDX-License-Identifier: GPL-3.0-or-later
"""What systemctl says of a unit is read in the kernel's units, or not at all."""

from __future__ import annotations

import subprocess

import pytest
from mlhost_limits.core.distribution import find_distribution
from mlhost_limits.core.values import RLIMITS, UNLIMITED, Rlimit
from mlhost_limits.host import manager_read as systemd_show
from mlhost_limits.host.manager_read import show_bounds, show_unit
from mlhost_limits.systemd import read
from mlhost_limits.systemd.model import Files

# Captured on Debian 12, systemd 252, shortened to one line for each kind.
LIMITS = "".join(f"Limit{name.upper()}=infinity\nLimit{name.upper()}Soft=5\n" for name in RLIMITS)
UNIT = f"LoadState=loaded\nMainPID=456\nNeedDaemonReload=yes\n{LIMITS}LimitNOFILE=524288\n"


def answer(monkeypatch: pytest.MonkeyPatch, unit: str, manager: str) -> list[list[str]]:
    asked: list[list[str]] = []

    def run(words: list[str], **_options: object) -> subprocess.CompletedProcess[bytes]:
        asked.append(words)
        text = unit if "--" in words else manager
        return subprocess.CompletedProcess(words, 0, text.encode())

    monkeypatch.setattr(subprocess, "run", run)
    return asked


def test_a_unit_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answer(monkeypatch, UNIT, "UnitsLoadTimestampMonotonic=1000000\n")
    monkeypatch.setattr(systemd_show.time, "time", lambda: 5000.0)
    monkeypatch.setattr(systemd_show.time, "monotonic", lambda: 100.0)
    shown = show_unit("-odd.service")
    assert shown
    assert shown.limits["nofile"] == Rlimit(5, 524288)
    assert shown.limits["memlock"] == Rlimit(5, UNLIMITED)
    assert (shown.main_pid, shown.needs_reload, shown.loaded_at) == (456, True, 4901.0)
    assert asked[0][-2:] == ["--", "-odd.service"]


@pytest.mark.parametrize(
    "text", ["", "LoadState=not-found\n", "LoadState=loaded\n", UNIT.replace("524288", "x")]
)
def test_what_is_not_told_is_not_known(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    answer(monkeypatch, text, "")
    assert show_unit("x.service") is None


def test_an_old_manager_does_not_say_when_it_read(monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, UNIT, "")
    shown = show_unit("x.service")
    assert shown
    assert shown.loaded_at == 0


def test_before_the_first_reload_the_boot_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "UnitsLoadTimestampMonotonic=0\nUnitsLoadFinishTimestampMonotonic=6000000\n"
    answer(monkeypatch, UNIT, text)
    monkeypatch.setattr(systemd_show.time, "time", lambda: 5000.0)
    monkeypatch.setattr(systemd_show.time, "monotonic", lambda: 100.0)
    shown = show_unit("x.service")
    assert shown
    assert shown.loaded_at == 4906


def test_without_systemctl_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(words: list[str], **_options: object) -> None:
        raise FileNotFoundError(words[0])

    monkeypatch.setattr(subprocess, "run", run)
    assert show_unit("x.service") is None


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("MemoryMax=104857600\nCPUQuotaPerSecUSec=500ms\n", (104857600, 0.5)),
        ("MemoryMax=infinity\nCPUQuotaPerSecUSec=infinity\n", (None, None)),
        ("MemoryMax=5\nCPUQuotaPerSecUSec=2s 250ms\n", (5, 2.25)),
        ("CPUQuotaPerSecUSec=1min\n", (None, 60.0)),
        ("", (None, None)),
    ],
)
def test_what_a_slice_will_be_given(
    text: str, bounds: tuple[object, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = answer(monkeypatch, text, "")
    assert show_bounds("user-1000.slice") == bounds
    assert asked[0][-2:] == ["--", "user-1000.slice"]


SHOWN = "DefaultLimitNOFILE=4096\nDefaultLimitNOFILESoft=512\n"


@pytest.mark.parametrize(
    ("name", "version", "nofile", "memlock"),
    [
        ("debian", "12", Rlimit(1024, 524288), 8 * 2**20),
        ("rhel", "8.10", Rlimit(1024, 262144), 64 * 2**10),
        ("rhel", "9.4", Rlimit(1024, 524288), 8 * 2**20),
        ("ubuntu", "22.04", Rlimit(1024, 524288), 64 * 2**10),
        ("sles", "15.6", Rlimit(1024, 4096), 64 * 2**10),
    ],
)
def test_what_nobody_states_is_the_distributions_or_the_managers(
    monkeypatch: pytest.MonkeyPatch, name: str, version: str, nofile: Rlimit, memlock: int
) -> None:
    answer(monkeypatch, "", SHOWN)
    monkeypatch.setattr(read, "_read_kernel_memlock", lambda: 64 * 2**10)
    vendor = find_distribution({"ID": name, "VERSION_ID": version})
    own = dict.fromkeys(RLIMITS, Rlimit(7, 2**20))
    given = read._find_defaults(Files(None, vendor=vendor), own)
    assert (given["nofile"], given["memlock"].hard) == (nofile, memlock)
    assert given["core"] == Rlimit(7, 2**20)
