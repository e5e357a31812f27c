# SPDX-License-Identifier: GPL-3.0-or-later
"""A file that a program writes is that program's, wherever its name leads."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlhost_limits.core.values import Declaration
from mlhost_limits.host.rivals import find_writers, name_generator

CONF = "/usr/lib/sysctl.d/60-x.conf"
RELEASES = "/usr/lib/extension-release.d/extension-release"
SNAP = "/etc/systemd/system/snap.k8s.containerd.service"


def lay_out(tree: Path, *paths: str) -> str:
    for path in paths:
        file = tree / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("sssd\nwith-sudo\n" if path.endswith("authselect.conf") else "")
    return str(tree)


def test_authselect_writes_what_its_links_lead_to(tmp_path: Path) -> None:
    made = ("/etc/authselect/authselect.conf", "/etc/authselect/system-auth", "/etc/pam.d/sshd")
    root = lay_out(tmp_path, *made)
    (tmp_path / "etc/pam.d/system-auth").symlink_to("/etc/authselect/system-auth")
    assert name_generator("/etc/pam.d/system-auth", root).startswith(
        "authselect, by its profile sssd: an edit is undone by its next apply-changes"
    )
    assert name_generator("/etc/pam.d/sshd", root) == ""


@pytest.mark.parametrize(
    ("path", "told"),
    [
        (SNAP, "snapd, for the snap k8s: its next refresh undoes an edit, no drop-in"),
        (f"{SNAP}.d/90-x.conf", ""),
        ("/etc/systemd/system/snapper.service", ""),
    ],
)
def test_snapd_writes_the_units_of_snaps(tmp_path: Path, path: str, told: str) -> None:
    assert name_generator(path, lay_out(tmp_path, path)) == told


@pytest.mark.parametrize(
    ("paths", "told"),
    [
        (
            [f"{RELEASES}.drivers", f"/run/extensions/drivers{CONF}"],
            "the system extension /run/extensions/drivers: an edit of it belongs there",
        ),
        (
            [f"{RELEASES}.drivers", f"/var/lib/extensions/drivers{CONF}"],
            "the system extension /var/lib/extensions/drivers: an edit of it belongs there",
        ),
        (
            [f"{RELEASES}.drivers", "/var/lib/extensions/drivers.raw"],
            "perhaps a system extension: /var/lib/extensions/drivers.raw",
        ),
        ([f"/var/lib/extensions/drivers{CONF}"], ""),  # Not merged.
        ([f"{RELEASES}.drivers"], ""),
    ],
)
def test_what_an_extension_brings_is_its_own(tmp_path: Path, paths: list[str], told: str) -> None:
    root = lay_out(tmp_path, CONF, *paths)
    at = Declaration(CONF, 1, "", "")
    assert name_generator(CONF, root) == told
    assert find_writers([at], root) == ({at: told} if told else {})


def test_a_package_that_knows_the_file_is_no_extension_perhaps(tmp_path: Path) -> None:
    image = "/var/lib/extensions/drivers.raw"
    root = lay_out(tmp_path, CONF, f"{RELEASES}.drivers", image, "/var/lib/dpkg/info/x.list")
    (tmp_path / "var/lib/dpkg/info/x.list").write_text(f"/.\n{CONF}\n")
    at = Declaration(CONF, 1, "", "")
    assert find_writers([at], root) == {at: "package x"}
