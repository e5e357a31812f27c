# SPDX-License-Identifier: GPL-3.0-or-later
"""What rules of udev have run, or start, is read as that of any script."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlhost_limits.kernel.boot_calls import find_asked, may_ask
from mlhost_limits.kernel.boot_scripts import find_script_writes
from mlhost_limits.kernel.boot_scripts_read import read_boot_scripts

KEY = "vm.max_map_count"
RULES, UNIT = "/etc/udev/rules.d/9.rules", "/etc/systemd/system/tune.service"
TEMPLATE = "/etc/systemd/system/tune@.service"
RUNS = f"[Service]\nExecStart=/sbin/sysctl -w {KEY}=5\n"
TUNE = f"#!/bin/sh\nsysctl -w {KEY}=5\n"


@pytest.mark.parametrize(
    ("rule", "files", "found"),
    [
        ('ENV{SYSTEMD_WANTS}="tune.service"', {UNIT: RUNS}, [(f"{UNIT}:2", "")]),
        ('ENV{SYSTEMD_WANTS}+="a.service tune.service"', {UNIT: RUNS}, [(f"{UNIT}:2", "")]),
        ('ENV{SYSTEMD_WANTS}+="tune@$name.service"', {TEMPLATE: RUNS}, [(f"{TEMPLATE}:2", "")]),
        ('ENV{SYSTEMD_WANTS}+="tune@%k.service"', {TEMPLATE: RUNS.replace("max_map_count", "%i")},
         [(f"{TEMPLATE}:2", "")]),
        ('ENV{SYSTEMD_WANTS}+="other.service"', {UNIT: RUNS}, []),
        ('RUN+="tune.sh"', {"/usr/lib/udev/tune.sh": TUNE}, [("/usr/lib/udev/tune.sh:2", "5")]),
        ('RUN{program}+="tune.sh $name"', {"/usr/lib/udev/tune.sh": TUNE}, [("/usr/lib/udev/tune.sh:2", "5")]),
        ('PROGRAM=="tune.sh"', {"/usr/lib/udev/tune.sh": TUNE}, [("/usr/lib/udev/tune.sh:2", "")]),
        ('RUN{builtin}+="kmod load"', {"/usr/lib/udev/kmod": TUNE}, []),
        ('NAME="tune.sh"', {"/usr/lib/udev/tune.sh": TUNE}, []),
    ],
)  # fmt: skip
def test_a_rule_starts_a_unit_or_runs_a_program(
    tmp_path: Path, rule: str, files: dict[str, str], found: list[tuple[str, str]]
) -> None:
    for name, text in {RULES: f'SUBSYSTEM=="net", {rule}\n', **files}.items():
        (tmp_path / name[1:]).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name[1:]).write_text(text)
        (tmp_path / name[1:]).chmod(0o755)
    writes = find_script_writes(KEY, read_boot_scripts(str(tmp_path), of_packages=True))
    assert [(one.at.place, one.at.value) for one in writes] == found


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("systemctl start tune@$x.service", {"tune@.service"}),
        ("systemctl start tune@a", {"tune@a.service"}),
        ("systemctl start $x", None),
    ],
)
def test_a_template_stands_for_an_instance_that_nobody_can_name(
    text: str, asked: set[str] | None
) -> None:
    assert may_ask(text) is (asked is not None)
    assert asked is None or find_asked("/etc/rc.local", text) == asked
