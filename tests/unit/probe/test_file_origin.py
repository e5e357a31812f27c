# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose file it is, as dpkg and rpm know it."""

from __future__ import annotations

from pathlib import Path

from mlhost_limits.probe.file_origin import find_packages

LIMITS, UNIT, MADE = "/etc/security/limits.conf", "/usr/lib/systemd/system/x.service", "/etc/x.conf"


def test_dpkg_knows_files_and_what_its_scripts_write(tmp_path: Path) -> None:
    (tmp_path / "libpam-modules:amd64.list").write_text(f"/.\n/etc\n{LIMITS}\n")
    (tmp_path / "x.list").write_text(f"/.\n/lib/systemd/system/x.service\n{LIMITS}.d\n")
    (tmp_path / "maker.postinst").write_text(f"#!/bin/sh\ncat > {MADE} <<END\nEND\n")
    (tmp_path / "dangling.list").symlink_to(tmp_path / "gone")
    assert find_packages([LIMITS, UNIT, MADE, "/etc/mine"], str(tmp_path)) == {
        LIMITS: "a configuration file of package libpam-modules",
        UNIT: "package x",
        MADE: "the installation script of package maker",
    }
    assert find_packages([], str(tmp_path)) == {}


def test_rpm_is_asked_where_there_is_no_dpkg(tmp_path: Path) -> None:
    rpm = tmp_path / "rpm"
    rpm.write_text('#!/bin/sh\n[ "$4" = /etc/mine ] && exit 1\necho pam\n')
    rpm.chmod(0o755)
    nowhere = str(tmp_path / "nowhere")
    found = find_packages([LIMITS, "/etc/mine"], nowhere, str(rpm))
    assert found == {LIMITS: "a configuration file of package pam"}
    assert find_packages([LIMITS], str(tmp_path), str(rpm)) == {}
    assert find_packages([LIMITS], nowhere, nowhere) == {}
    rpm.write_text("no program")
    assert find_packages([LIMITS], nowhere, str(rpm)) == {}
