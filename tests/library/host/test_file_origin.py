# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose file it is, as dpkg and rpm know it."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlhost_limits.host.rivals import find_packages

LIMITS, UNIT, MADE = "/etc/security/limits.conf", "/usr/lib/systemd/system/x.service", "/etc/x.conf"


@pytest.fixture
def dpkg(tmp_path: Path) -> Path:
    folder = tmp_path / "var/lib/dpkg/info"
    folder.mkdir(parents=True)
    return folder


def test_dpkg_knows_files_and_what_its_scripts_write(dpkg: Path, tmp_path: Path) -> None:
    (dpkg / "libpam-modules:amd64.list").write_text(f"/.\n/etc\n{LIMITS}\n")
    (dpkg / "x.list").write_text(f"/.\n/lib/systemd/system/x.service\n{LIMITS}.d\n")
    (dpkg / "maker.postinst").write_text(f"#!/bin/sh\ncat > {MADE} <<END\nEND\n")
    (dpkg / "dangling.list").symlink_to(dpkg / "gone")
    assert find_packages([LIMITS, UNIT, MADE, "/etc/mine"], str(tmp_path)) == {
        LIMITS: "a configuration file of package libpam-modules",
        UNIT: "package x",
        MADE: "written by the installation script of package maker",
    }
    assert find_packages([], str(tmp_path)) == {}


def test_rpm_is_asked_where_there_is_no_dpkg(tmp_path: Path) -> None:
    rpm, tree = tmp_path / "rpm", str(tmp_path)
    rpm.write_text(
        f'#!/bin/sh\n[ "$2" = {tree} ] || exit 1\n[ "$6" = /etc/mine ] && exit 1\necho pam\n'
    )
    rpm.chmod(0o755)
    found = find_packages([LIMITS, "/etc/mine"], tree, str(rpm))
    assert found == {LIMITS: "a configuration file of package pam"}
    assert find_packages([LIMITS], tree, str(tmp_path / "nowhere")) == {}
    rpm.write_text("no program")
    assert find_packages([LIMITS], tree, str(rpm)) == {}


def test_rpm_is_not_asked_where_there_is_dpkg(dpkg: Path, tmp_path: Path) -> None:
    rpm = tmp_path / "rpm"
    rpm.write_text("#!/bin/sh\necho pam\n")
    rpm.chmod(0o755)
    assert dpkg.is_dir()
    assert find_packages([LIMITS], str(tmp_path), str(rpm)) == {}
