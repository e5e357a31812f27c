# SPDX-License-Identifier: GPL-3.0-or-later
"""A systemd-sysctl that is not started as its package has it may not apply the files."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlhost_limits.check_host import check_host
from mlhost_limits.core.policy import CheckOptions
from mlhost_limits.kernel.boot_applier_read import find_applier_doubts
from mlhost_limits.schema import load_policy

VENDOR, OWN = "/usr/lib/systemd/system", "/etc/systemd/system"
NAME = "systemd-sysctl.service"
PLAIN = "ExecStart=/usr/lib/systemd/systemd-sysctl\n"
LINK = f"{VENDOR}/sysinit.target.wants/{NAME}"
FILES = {
    f"{VENDOR}/{NAME}": f"[Service]\n{PLAIN}",
    f"{VENDOR}/sysinit.target": "",
    LINK: "",
    "/usr/lib/systemd/systemd-sysctl": "",
    "/etc/os-release": "ID=debian\nVERSION_ID=12\n",
    "/etc/sysctl.d/a.conf": "vm.max_map_count=300000\n",
}
CONF = f"{OWN}/{NAME}.d/a.conf"


def _lay_out(top: Path, files: dict[str, str], gone: str = "") -> str:
    for name, text in {**FILES, **files}.items():
        if name != gone:
            (top / name[1:]).parent.mkdir(parents=True, exist_ok=True)
            (top / name[1:]).write_text(text)
    return str(top)


@pytest.mark.parametrize(
    ("path", "text", "line"),
    [
        (CONF, "[Service]\nTimeoutSec=5\n", 0),
        (CONF, f"[Service]\nExecStart=\n{PLAIN}", 0),
        (CONF, f"[Service]\nExecStart=\n{PLAIN[:-1]} --prefix=/net\n", 3),
        (CONF, f"[Service]\nExecStart=\n{PLAIN[:-1]} /etc/only.conf\n", 3),
        (CONF, "[Service]\nExecStartPre=/bin/false\n", 2),
        (CONF, "[Service]\nExecStartPre=-/bin/false\n", 0),
        (CONF, "[Service]\nProtectKernelTunables=yes\n", 2),
        (CONF, f"[Service]\nProtectKernelTunables=yes\nExecStart=\n{PLAIN.replace('=', '=+')}", 0),
        (CONF, "[Service]\nUser=nobody\n", 2),
        (CONF, "[Service]\nReadOnlyPaths=/proc\n", 2),
        (f"{OWN}/service.d/a.conf", "[Service]\nProtectKernelTunables=1\n", 2),
        (f"{OWN}/systemd-.service.d/a.conf", "[Service]\nProtectKernelTunables=1\n", 2),
        (CONF, "[Unit]\nRequisite=foo.service\n", 2),
        (CONF, "[Unit]\nRequires=foo.service\n", 2),
        (CONF, "[Unit]\nRequires=sysinit.target\nWants=foo.service\n", 0),
    ],
)
def test_a_drop_in_that_changes_what_runs(tmp_path: Path, path: str, text: str, line: int) -> None:
    found = find_applier_doubts(_lay_out(tmp_path, {path: text}))
    assert [(one.path, one.line) for one in found] == ([(path, line)] if line else [])


@pytest.mark.parametrize(
    ("files", "gone", "told"),
    [
        ({}, "", ""),
        ({}, f"{VENDOR}/sysinit.target", ""),
        ({}, LINK, f'{VENDOR}/{NAME} "is wanted by no target" may keep systemd-sysctl'),
        ({CONF: "[Service]\nUser=nobody\n"}, "", f'{CONF}:2 "User=nobody" may keep systemd-sysctl'),
        # What runs later has the last word, and without files nothing is at stake.
        ({CONF: "[Service]\nUser=nobody\n", "/etc/sysctl.d/a.conf": ""}, "", "fail"),
    ],
)
def test_nothing_passes_by_files_that_may_not_be_applied(
    tmp_path: Path, files: dict[str, str], gone: str, told: str
) -> None:
    options = CheckOptions(root=_lay_out(tmp_path, files, gone))
    policy = load_policy({"kernel": {"vm.max_map_count": 262144}}, "none")
    (found,) = check_host(policy, options).findings
    assert found.outlook.after_boot == (told if told == "fail" else "unknown" if told else "pass")
    assert told == "fail" or found.observation.reason.startswith(told)
