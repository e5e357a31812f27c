# SPDX-License-Identifier: GPL-3.0-or-later
"""Trees laid out as Amazon Linux, Azure Linux and SUSE lay out theirs: what is known of each counts,
what is not known is unknown, and Debian's answer is nobody else's."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlhost_limits.check_host import check_host
from mlhost_limits.core.finding import FAIL, PASS, UNKNOWN
from mlhost_limits.core.policy import CheckOptions
from mlhost_limits.schema import load_policy
from mlhost_limits.sessions.limits_read import read_limits_files
from mlhost_limits.sessions.pam_limits import order_files
from mlhost_limits.sessions.tree_read import find_tree_sshd_unit, read_tree_use_pam

from tests.worlds.trees import TREES, write

RED_HAT = {path: text for path, text in TREES["Red Hat 9"].items() if "libsystemd" not in path}
SITE = "/etc/security/limits.d/50-site.conf"
LINES = "* soft nofile 65536\n* hard nofile 65536\n"
BUILT = "\x7fELF memlock nofile /proc/sys/fs/nr_open nonewprivs "
VENDOR = "/usr/etc/security/limits.d/50-vendor.conf"
SYSTEM_AUTH = "session required pam_limits.so\nsession required pam_unix.so\n"

LAYOUTS = {
    "Amazon Linux 2023": {
        **RED_HAT,
        "/etc/os-release": 'ID="amzn"\nID_LIKE="fedora"\nVERSION_ID="2023"\n',
        "/usr/lib/systemd/libsystemd-shared-252.so": "",
        SITE: LINES,
    },
    "Azure Linux 3": {
        "/etc/passwd": RED_HAT["/etc/passwd"],
        "/etc/group": RED_HAT["/etc/group"],
        "/etc/security/limits.conf": "",
        "/etc/os-release": 'ID=azurelinux\nVERSION_ID="3.0"\n',
        "/etc/pam.d/system-session": SYSTEM_AUTH,
        "/etc/pam.d/sshd": "session include system-session\n",
        "/usr/lib/systemd/libsystemd-shared-255.so": "",
        "/usr/lib/systemd/system/sshd.service": "[Service]\nExecStart=/usr/sbin/sshd -D\n",
        SITE: LINES,
    },
    # As systems without /etc have it: all of a vendor's lies below /usr.
    "SUSE": {
        "/etc/passwd": RED_HAT["/etc/passwd"],
        "/etc/group": RED_HAT["/etc/group"],
        "/etc/os-release": 'ID="sles"\nID_LIKE="suse"\nVERSION_ID="15.6"\n',
        "/usr/etc/pam.d/sshd": "session include common-session\n",
        "/etc/pam.d/common-session": SYSTEM_AUTH,
        "/usr/etc/security/limits.conf": "# vendor\n",
        "/usr/etc/ssh/sshd_config": "UsePAM yes\n",
        "/usr/lib64/security/pam_limits.so": f"{BUILT}__getdelim /usr/etc/security/limits.conf ",
        "/usr/lib/systemd/system/sshd.service": "[Service]\nExecStart=/usr/sbin/sshd -D\n",
        VENDOR: LINES,
    },
}
SSHD = {"/etc/ssh/sshd_config": "UsePAM yes\n"}


def plant(root: Path, name: str, more: dict[str, str]) -> str:
    extra = {} if name == "SUSE" else SSHD
    for path, text in {**LAYOUTS[name], **extra, **more}.items():
        write(root, path, text)
    return str(root)


def foretell(root: str, policy: dict[str, object]) -> dict[str, tuple[str, str]]:
    """Return the status after a boot of what is asked, and who or what says so."""
    options = CheckOptions(services=("sshd",), users=("alice",), root=root)
    found = check_host(load_policy(policy, "none"), options).findings
    return {
        f"{one.requirement.item} {one.requirement.bound}": (
            one.outlook.after_boot,
            one.observation.reason,
        )
        for one in found
    }


LOGINS: dict[str, object] = {"sessions": [{"users": ["*"], "limits": {"nofile": 65536}}]}
SERVICES: dict[str, object] = {
    "services": {
        "default": {"nofile": {"soft": 1024, "hard": 524288}},
        "logind": {"remove_ipc": True},
    }
}


@pytest.mark.parametrize(
    ("name", "more", "status", "told"),
    [
        ("Amazon Linux 2023", {}, PASS, f"by {SITE}:1"),
        ("Azure Linux 3", {}, UNKNOWN, "how this distribution builds it is not known"),
        (
            "Azure Linux 3",
            {"/usr/lib/security/pam_limits.so": f"{BUILT}fgets "},
            PASS,
            f"by {SITE}:1",
        ),
        ("SUSE", {}, PASS, f"by {VENDOR}:1"),
        ("SUSE", {SITE.replace("site", "vendor"): "* - nofile 5\n"}, FAIL, ""),
        ("SUSE", {"/usr/lib64/security/pam_limits.so": f"{BUILT}__getdelim "}, UNKNOWN, ""),
    ],
)
def test_logins(tmp_path: Path, name: str, more: dict[str, str], status: str, told: str) -> None:
    found = foretell(plant(tmp_path, name, more), LOGINS)["nofile soft"]
    assert found[0] == status
    assert told in found[1]


@pytest.mark.parametrize("name", LAYOUTS)
def test_what_systemd_does_there_is_unknown_and_not_debians(tmp_path: Path, name: str) -> None:
    found = foretell(plant(tmp_path, name, {}), SERVICES)
    assert {status for status, _reason in found.values()} == {UNKNOWN}
    assert all("not known" in reason for _status, reason in found.values())


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_sshd_of_a_tree(tmp_path: Path, name: str) -> None:
    root = plant(tmp_path, name, {})
    assert find_tree_sshd_unit(root) == "sshd.service"
    assert read_tree_use_pam(root).value == "yes"
    write(tmp_path, "/etc/ssh/sshd_config", "UsePAM no\n")
    assert read_tree_use_pam(root).value == "no"  # It hides that of the vendor.


def test_an_own_limits_conf_hides_the_vendors(tmp_path: Path) -> None:
    root = plant(tmp_path, "SUSE", {"/etc/security/limits.conf": ""})
    assert order_files(read_limits_files(root)) == ["/etc/security/limits.conf", VENDOR]
