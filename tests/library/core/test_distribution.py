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


OLD_DEBIAN = (1023, False, False, ("rttime", "nonewprivs"), True, True)
RED_HAT = ("/etc/rc.d/rc.local",)
BOTH = ("/etc/rc.local", "/etc/rc.d/rc.local", "/etc/init.d/boot.local")


@pytest.mark.parametrize(
    ("name", "version", "pam", "scripts"),
    [
        ("debian", "11", OLD_DEBIAN, ("/etc/rc.local",)),
        ("debian", "12", (1023, False, True, ("rttime",), True, True), ("/etc/rc.local",)),
        ("debian", "13", (0, False, True, ("rttime",), False, True), ("/etc/rc.local",)),
        ("debian", "10", (0, False, True, ("rttime",), False, False), ("/etc/rc.local",)),
        ("debian", "", (0, False, True, ("rttime",), False, False), ("/etc/rc.local",)),
        ("ubuntu", "20.04", OLD_DEBIAN, ("/etc/rc.local",)),
        ("ubuntu", "21.10", OLD_DEBIAN, ("/etc/rc.local",)),
        ("ubuntu", "22.04", OLD_DEBIAN, ("/etc/rc.local",)),
        ("ubuntu", "23.10", (0, False, True, ("rttime",), False, False), ("/etc/rc.local",)),
        ("ubuntu", "24.04", (1023, False, True, ("rttime",), False, True), ("/etc/rc.local",)),
        ("ubuntu", "26.04", (0, False, True, ("rttime",), False, True), ("/etc/rc.local",)),
        ("rhel", "8.5", (1023, True, False, ("rttime", "chroot", "nonewprivs"), True, True), RED_HAT),
        ("rhel", "8.6", (1023, True, True, ("rttime", "chroot", "nonewprivs"), True, True), RED_HAT),
        ("rhel", "8", (1023, True, True, ("rttime", "chroot", "nonewprivs"), True, True), RED_HAT),
        ("rhel", "9.1", (1023, True, True, ("rttime", "chroot"), True, True), RED_HAT),
        ("rhel", "10.0", (0, True, True, ("rttime", "chroot"), False, True), RED_HAT),
        ("rhel", "7.9", (1023, True, True, ("rttime", "chroot"), True, False), RED_HAT),
        ("amzn", "2023", (1023, True, True, ("rttime", "chroot"), True, True), BOTH),
        ("amzn", "2", (1023, True, True, ("rttime", "chroot"), True, False), BOTH),
        ("sles", "15.6", (1023, True, True, ("rttime", "chroot"), True, False), BOTH[2:]),
        ("sles", "12.5", (1023, True, True, ("rttime", "chroot"), True, False), BOTH),
        ("arch", "", (1023, True, True, ("rttime", "chroot"), True, False), BOTH),
    ],
)  # fmt: skip
def test_how_pam_reads_and_which_scripts_run(
    name: str, version: str, pam: tuple[object, ...], scripts: tuple[str, ...]
) -> None:
    found = find_distribution(release(name, version))
    assert (tuple(found.pam), found.local_scripts) == (pam, scripts)


@pytest.mark.parametrize(
    ("name", "version", "resets", "ends"),
    [
        ("debian", "12", True, False),
        ("debian", "13", False, False),
        ("rhel", "9.4", False, True),
        ("rhel", "10.0", False, True),
    ],
)
def test_what_follows_of_how_pam_was_built(
    name: str, version: str, resets: bool, ends: bool
) -> None:
    pam = find_distribution(release(name, version)).pam
    assert (pam.resets, pam.ends_sessions) == (resets, ends)


@pytest.mark.parametrize(
    ("name", "versions", "known"),
    [
        ("debian", ("10", "11"), (True, True)),
        ("debian", ("9", "14"), (False, False)),
        ("ubuntu", ("19.04", "26.10"), (True, True)),
        ("ubuntu", ("18.10", "27.04"), (False, False)),
    ],
)
def test_between_which_releases_debian_is_known(
    name: str, versions: tuple[str, ...], known: tuple[bool, ...]
) -> None:
    found = (find_distribution(release(name, one)) for one in versions)
    assert tuple(one.tasks_share is not None for one in found) == known


@pytest.mark.parametrize(
    ("version", "facts"),
    [
        ("22.10", (False, False, False)),
        ("23.04", (False, True, True)),
        ("24.10", (False, True, True)),
        ("25.04", (True, True, True)),
    ],
)
def test_since_when_ubuntu_builds_it(version: str, facts: tuple[bool, ...]) -> None:
    """Whether fs.nr_open is raised, patterns of sysctl.d, and memlock of services."""
    found = find_distribution(release("ubuntu", version))
    assert (found.raises_nr_open, found.knows_patterns, found.raises_memlock) == facts


@pytest.mark.parametrize(
    ("codename", "like", "number"),
    [
        *(("bullseye", "debian", "11"), ("bookworm", "debian", "12"), ("trixie", "debian", "13")),
        *(("focal", "ubuntu", "20.04"), ("jammy", "ubuntu", "22.04"), ("noble", "ubuntu", "24.04")),
    ],
)
def test_a_codename_stands_for_its_release(codename: str, like: str, number: str) -> None:
    for key in ("VERSION_CODENAME", f"{like.upper()}_CODENAME"):
        derived = find_distribution({**release("other", "7", like), key: codename})
        assert derived[3:] == find_distribution(release(like, number))[3:]
    assert (derived.name, derived.family, derived.release) == ("other", like, (7,))


@pytest.mark.parametrize(
    ("name", "like", "family"),
    [
        *((name, "", "rhel") for name in ("rhel", "centos", "almalinux", "rocky", "ol")),
        *((name, "", "suse") for name in ("sles", "suse", "opensuse-leap", "sle_hpc")),
        *((name, "", name) for name in ("debian", "ubuntu", "amzn", "azurelinux")),
        ("pop", "ubuntu debian", "ubuntu"),
        ("raspbian", "debian", "debian"),
        ("fedora", "", ""),
        ("x", "fedora rhel", "rhel"),
        ("x", "fedora", ""),
    ],
)
def test_the_family_of_a_distribution(name: str, like: str, family: str) -> None:
    assert find_distribution(release(name, "", like)).family == family


def test_a_release_and_its_name_are_as_os_release_has_them() -> None:
    found = find_distribution({**release("debian", "12.7"), "PRETTY_NAME": "Debian 12"})
    assert (found.name, found.release) == ("Debian 12", (12, 7))
    assert find_distribution(release("debian", "sid")).release == ()
    assert find_distribution({}).name == "this distribution"
    # Its numbers are Debian's.
    assert (
        find_distribution(release("raspbian", "12", "debian"))[3:]
        == (find_distribution(release("debian", "12"))[3:])
    )
