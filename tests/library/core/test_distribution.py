# SPDX-License-Identifier: GPL-3.0-or-later
"""Debian's answers are not everybody's; what is not known of a distribution is unknown."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlhost_limits.core.distribution import find_distribution
from mlhost_limits.core.finding import FAIL, PASS, UNKNOWN
from mlhost_limits.services.image import foretell_remove_ipc
from mlhost_limits.services.tasks_causes import predict_default
from mlhost_limits.systemd.model import Files


def release(name: str, version: str, like: str = "") -> dict[str, str]:
    return {"ID": name, "VERSION_ID": version, "ID_LIKE": like}


# Of each: DefaultTasksMax in percent, RemoveIPC, hard nofile of services, fs.nr_open, patterns,
# whether services have 8 MiB of memlock.
@pytest.mark.parametrize(
    ("name", "version", "like", "known"),
    [
        ("debian", "11", "", (15, True, 524288, False, False, False)),
        ("debian", "12", "", (15, True, 524288, False, True, True)),
        ("debian", "13", "", (15, True, 524288, True, True, True)),
        ("debian", "14", "", (None, None, None, None, None, None)),
        ("debian", "9", "", (None, None, None, None, False, None)),
        ("ubuntu", "18.04", "debian", (None, None, None, None, False, None)),
        ("rhel", "7.9", "fedora", (None, None, None, None, False, None)),
        ("debian", "", "", (15, True, 524288, None, None, None)),
        ("ubuntu", "22.04", "debian", (15, True, 524288, False, False, False)),
        ("ubuntu", "24.04", "debian", (15, True, 524288, False, True, True)),
        ("ubuntu", "26.04", "debian", (15, True, 524288, True, True, True)),
        ("linuxmint", "22", "ubuntu debian", (15, True, 524288, None, None, None)),
        ("rhel", "8.10", "fedora", (80, False, 262144, False, False, False)),
        ("rocky", "9.4", "rhel centos fedora", (80, False, 524288, True, True, True)),
        ("almalinux", "10.0", "rhel centos fedora", (80, False, 524288, True, True, True)),
        ("rhel", "11", "fedora", (None, None, None, None, None, None)),
        ("amzn", "2023", "fedora", (None, None, None, None, None, None)),
        ("azurelinux", "3.0", "", (None, None, None, None, None, None)),
        ("sles", "15.6", "suse", (None, None, None, False, None, None)),
        ("", "", "", (None, None, None, None, None, None)),
    ],
)
def test_what_is_known(name: str, version: str, like: str, known: tuple[object, ...]) -> None:
    assert find_distribution(release(name, version, like))[3:9] == known


@pytest.mark.parametrize(
    ("name", "version", "wanted", "status"),
    [
        ("rhel", "9.4", False, PASS),
        ("rhel", "9.4", True, FAIL),
        ("debian", "12", False, FAIL),
        ("debian", "12", True, PASS),
        ("amzn", "2023", False, UNKNOWN),
        ("fedora", "43", True, UNKNOWN),
    ],
)
def test_what_logind_removes_where_nothing_says_so(
    name: str, version: str, wanted: bool, status: str
) -> None:
    files = Files(None, vendor=find_distribution(release(name, version)))
    found = foretell_remove_ipc(wanted, files)
    assert found.status == status
    assert (name in found.reason) is (status == UNKNOWN)


def test_the_share_of_tasks_is_the_distribution_s() -> None:
    found = {
        name: predict_default(Files(None, vendor=find_distribution(release(name, "10"))), 10000)
        for name in ("rhel", "debian", "amzn")
    }
    assert found == {"rhel": 8000, "debian": 1500, "amzn": None}


def test_red_hat_8_does_not_know_nonewprivs() -> None:
    unknown = {
        version: "nonewprivs" in find_distribution(release("rhel", version)).pam.unknown
        for version in ("8.10", "9.4", "10.0")
    }
    assert unknown == {"8.10": True, "9.4": False, "10.0": False}


def test_the_documents_have_the_table_that_counts() -> None:
    text = (Path(__file__).parents[3] / "docs/supported.md").read_text()
    table = text.partition("### What is known of each")[2].partition("## Controllers")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    assert len(rows) > 10
    for name, *stated in rows[1:]:
        family, _space, version = name.partition(" ")
        known = find_distribution(release(family, version, "suse" if family == "sles" else ""))
        pam = known.pam if known.pam.is_known else None
        facts = (pam and pam.wildcard_root, pam and pam.line_length > 0, pam and pam.needs_files)
        assert stated == list(map(describe, (*known[3:9], *facts))), name


def test_a_derivative_has_the_release_that_it_is_made_of() -> None:
    mint = {**release("linuxmint", "22", "ubuntu debian"), "UBUNTU_CODENAME": "noble"}
    assert find_distribution(mint)[3:] == find_distribution(release("ubuntu", "24.04"))[3:]


def describe(value: int | bool | None) -> str:
    if value is None or isinstance(value, bool):
        return {None: "-", True: "yes", False: "no"}[value]
    return f"{value} %" if value <= 100 else f"1024:{value}"


@pytest.mark.parametrize(
    ("version", "reads"), [("8.0", False), ("8.5", False), ("8.6", True), ("8.10", True), ("9.0", True)]
)  # fmt: skip
def test_since_red_hat_8_6_pam_takes_an_unlimited_nofile_for_fs_nr_open(
    version: str, reads: bool
) -> None:
    assert find_distribution(release("rhel", version)).pam.reads_nr_open is reads
