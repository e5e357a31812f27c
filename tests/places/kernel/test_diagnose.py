# SPDX-License-Identifier: GPL-3.0-or-later
"""A finding about a sysctl says what a boot makes of it, and where that is too little, why."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from mlhost_limits.core.finding import Finding, Observation, judge
from mlhost_limits.host.look import Look
from mlhost_limits.kernel import diagnose as explain
from mlhost_limits.kernel.boot_read import BootRead
from mlhost_limits.kernel.host_read import KernelRead, read_sysctl_files
from mlhost_limits.kernel.policy import KernelValue, require_kernel
from mlhost_limits.sessions.limits_conf import list_nofiles, parse_limits_conf

MAPS = "vm.max_map_count"
GOOD = {"etc/sysctl.d/90-a.conf": f"{MAPS} = 262144\n"}
SYSTEMD = {
    "usr/lib/systemd/systemd-sysctl": "",
    "usr/lib/systemd/libsystemd-shared-252.so": "",
    "etc/os-release": "ID=debian\nVERSION_ID=12\n",
    "proc/stat": "btime 4000000000\n",
}
Build = Callable[..., Look]


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    """Give evidence of a host with these files and running values."""

    def build(
        files: dict[str, str], running: dict[str, str] | None = None, limits: str = ""
    ) -> Look:
        for path, text in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        monkeypatch.setattr(explain, "read_sysctl", (running or {}).get)
        lines = list(parse_limits_conf(limits, "/etc/security/limits.conf"))
        look = Look(lambda _look: list_nofiles(lines))
        look.at(KernelRead).sysctl_files = read_sysctl_files(str(tmp_path))
        look.at(KernelRead).boot = BootRead(look.at(KernelRead).sysctl_files, str(tmp_path))
        return look

    return build


def ask(look: Look, value: str | None, key: str = MAPS, least: int = 262144) -> Finding:
    seen = Observation(None if value is None else int(value), "/proc/sys", "")
    finding = judge(require_kernel(key, KernelValue(minimum=least)), seen)
    (found,) = explain.explain_kernel([finding], look)
    return found


def tell(finding: Finding) -> tuple[str, list[str], str]:
    return finding.status, [cause.code for cause in finding.causes], finding.outlook.after_boot


@pytest.mark.parametrize(
    ("files", "running", "expected"),
    [
        (GOOD, "262144", ("pass", [], "pass")),
        (GOOD, "65530", ("fail", ["sysctl-changed-by-hand"], "pass")),
        ({}, "262144", ("pass", ["sysctl-lost-at-boot"], "fail")),
        ({}, "65530", ("fail", ["sysctl-not-stated"], "fail")),
    ],
)
def test_now_and_after_a_boot(
    build: Build, files: dict[str, str], running: str, expected: tuple[str, list[str], str]
) -> None:
    look = build({**SYSTEMD, **files}, {MAPS: running})
    found = ask(look, running)
    assert tell(found) == expected
    assert found.fails_later is (expected[0] == "pass" and expected[2] == "fail")
    assert (found.outlook.next_session, found.outlook.next_restart) == ("", "")


def test_what_no_kernel_starts_with_is_lost_at_boot(build: Build) -> None:
    key = "net.core.rmem_max"
    look = build(SYSTEMD, {key: "16777216"})
    assert tell(ask(look, "16777216", key, 16777216)) == (
        "pass", ["sysctl-lost-at-boot"], "fail",
    )  # fmt: skip
    assert tell(ask(look, "16777216", key, 1000000)) == ("pass", [], "unknown")


def test_a_healthy_host_is_not_looked_at_more_closely(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explain, "_look_closer", None)
    assert tell(ask(build({**SYSTEMD, **GOOD}, {MAPS: "262144"}), "262144"))[0] == "pass"


def test_where_nothing_is_known_to_apply_files_nothing_is_foretold(build: Build) -> None:
    assert tell(ask(build(GOOD, {MAPS: "1"}), "1")) == ("fail", [], "unknown")
    assert tell(ask(build(GOOD, {MAPS: "262144"}), "262144")) == ("pass", [], "unknown")


def test_a_key_that_is_not_there(build: Build) -> None:
    found = ask(build(SYSTEMD), None)
    assert tell(found) == ("unknown", ["sysctl-key-absent"], "unknown")


def test_a_key_that_cannot_be_read(build: Build) -> None:
    assert tell(ask(build(SYSTEMD, {MAPS: "1"}), None)) == ("unknown", [], "unknown")


def test_files_that_cannot_be_read_leave_the_boot_unknown(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = build({**SYSTEMD, **GOOD}, {MAPS: "1"})
    del look.at(KernelRead).__dict__["boot"]

    def refuse(*_words: object) -> None:
        raise PermissionError("no")

    monkeypatch.setattr("mlhost_limits.kernel.host_read.BootRead", refuse)
    assert tell(ask(look, "1")) == ("fail", [], "unknown")


def test_a_slip_in_a_key_is_found(build: Build) -> None:
    files = {"etc/sysctl.d/90-a.conf": "vm.max_map_cuont = 262144\nvm.swappiness = 1\n"}
    found = ask(build({**SYSTEMD, **files}, {MAPS: "65530"}), "65530")
    assert [cause.at and cause.at.line for cause in found.causes] == [1]


def test_nr_open_is_not_lowered_below_what_limits_files_state(build: Build) -> None:
    text = "* hard nofile 1048570\n* - nofile unlimited\n* hard nproc 5\nbad\n* hard nofile x\n"
    look = build(SYSTEMD, {"fs.nr_open": "1048576"}, text)
    wanted = require_kernel("fs.nr_open", KernelValue(maximum=1048500))
    finding = judge(wanted, Observation(1048576, "/proc/sys"))
    (found,) = explain.explain_kernel([finding], look)
    assert found.causes[0].remedy.commands == ()


def test_the_chain_of_a_key(build: Build) -> None:
    files = {
        "etc/sysctl.d/90-a.conf": f"{MAPS} = 5\n{MAPS} = 262144\n",
        "usr/lib/sysctl.d/10-b.conf": f"\n{MAPS} = 6\n",
        "etc/sysctl.conf": f"{MAPS} = 7\n",
        "etc/tuned/active_profile": "x",
        "run/tuned/tuned.pid": "",
        "usr/lib/tuned/x/tuned.conf": f"[sysctl]\n{MAPS} = 8\n",
        "etc/cron.d/x": f"@reboot root sysctl -w {MAPS}=9\n",
        "proc/cmdline": f"sysctl.{MAPS}=4 systemd.mask=systemd-sysctl\n",
    }
    links = explain.trace_kernel(MAPS, build({**SYSTEMD, **files}, {MAPS: "9"}))
    assert [(link.name, link.value, link.source) for link in links] == [
        ("default", "65530", "where nothing states it"),
        ("command line", "4", f'/proc/cmdline "sysctl.{MAPS}=4"'),
        ("no files", "", '/proc/cmdline "systemd.mask=systemd-sysctl"'),
        ("file", "6", f'/usr/lib/sysctl.d/10-b.conf:2 "{MAPS} = 6"'),
        ("file", "5", f'/etc/sysctl.d/90-a.conf:1 "{MAPS} = 5"'),
        ("file", "262144", f'/etc/sysctl.d/90-a.conf:2 "{MAPS} = 262144"'),
        ("tuned", "8", f'/usr/lib/tuned/x/tuned.conf:2 "{MAPS} = 8"'),
        ("script", "9", f'/etc/cron.d/x:1 "@reboot root sysctl -w {MAPS}=9"'),
        ("not at boot", "7", f'/etc/sysctl.conf:1 "{MAPS} = 7"'),
        ("after boot", "9", f'by /etc/cron.d/x:1 "@reboot root sysctl -w {MAPS}=9"'),
        ("running", "9", "/proc/sys/vm/max_map_count"),
    ]


def test_the_chain_of_a_key_that_nothing_states(build: Build) -> None:
    links = explain.trace_kernel("kernel.panic", build({}, {"kernel.panic": "1"}))
    assert [(link.name, link.value, link.source) for link in links] == [
        ("default", "unknown", "where nothing states it"),
        ("after boot", "unknown", "by the default"),
        ("running", "1", "/proc/sys/kernel/panic"),
    ]
    with pytest.raises(ValueError, match=r"this kernel has no sysctl 'vm\.x'"):
        explain.trace_kernel("vm.x", build({}))


VENDOR = "usr/lib/systemd/system/tune.service"
WANTED = "usr/lib/systemd/system/sysinit.target.wants/tune.service"


@pytest.mark.parametrize(
    ("line", "booted", "expected"),
    [
        (f"sysctl -w {MAPS}=65530", 1, ("pass", ["sysctl-script-wins"], "fail")),
        (f"sysctl -w {MAPS}=65530", 4000000000, ("pass", [], "pass")),
        (f"sysctl -w {MAPS}=$MOST", 1, ("pass", ["sysctl-script-unclear"], "unknown")),
        ("sysctl -p /etc/tune.conf", 1, ("pass", [], "pass")),
    ],
)
def test_a_package_s_unit_counts_where_this_boot_did_not_show_what_it_does(
    build: Build, line: str, booted: int, expected: tuple[str, list[str], str]
) -> None:
    files = {VENDOR: f"[Service]\nExecStart=/sbin/{line}\n", WANTED: ""}
    look = build({**SYSTEMD, **GOOD, **files, "proc/stat": f"btime {booted}\n"}, {MAPS: "262144"})
    assert tell(ask(look, "262144")) == expected
