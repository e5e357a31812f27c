# SPDX-License-Identifier: GPL-3.0-or-later
"""How pam_limits reads is told by the module itself, and else by its distribution."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlhost_limits.core.distribution import Dialect, find_distribution
from mlhost_limits.host.files import read_os_release
from mlhost_limits.sessions.dialect_read import read_dialect
from mlhost_limits.sessions.limits_read import read_limits_files
from mlhost_limits.sessions.pam_limits import order_files

from tests.worlds.distributions import DEBIAN

UNKNOWN = find_distribution({}).pam
BUILT = b"\x7fELF memlock nofile "
OLD, NR_OPEN, ITEM = b"fgets __isoc99_sscanf ", b"/proc/sys/fs/nr_open ", b"nonewprivs "
VENDOR = b"/usr/etc/security/limits.conf "


def plant(tree: Path, module: bytes, os_release: str = "") -> str:
    folder = tree / "usr/lib64/security"
    folder.mkdir(parents=True)
    (folder / "pam_limits.so").write_bytes(module)
    (tree / "etc").mkdir()
    (tree / "etc/os-release").write_text(os_release)
    return str(tree)


# What each names was looked at in the packages of Debian 12 and 13, or in the source of upstream.
@pytest.mark.parametrize(
    ("module", "dialect"),
    [
        (BUILT + OLD, Dialect(1023, True, False, ("rttime", "chroot", "nonewprivs"), True)),
        (
            BUILT + OLD + NR_OPEN,
            Dialect(1023, True, True, ("rttime", "chroot", "nonewprivs"), True),
        ),
        (BUILT + OLD + NR_OPEN + ITEM, Dialect(1023, needs_files=True)),
        (BUILT + b"__getdelim " + NR_OPEN + ITEM, Dialect()),
        (BUILT + b"__getdelim rttime " + NR_OPEN + ITEM, Dialect(unknown=("chroot",))),
        (BUILT + OLD + NR_OPEN + ITEM + b"chroot ", DEBIAN.pam),
        (b"", UNKNOWN),
        (b"#!/bin/sh\n", UNKNOWN),
    ],
)
def test_a_build_tells_how_it_reads(tmp_path: Path, module: bytes, dialect: Dialect) -> None:
    assert read_dialect(plant(tmp_path, module, "ID=sles\nVERSION_ID=15.6\n")) == dialect


def test_whether_files_are_needed_is_known_of_the_distribution(tmp_path: Path) -> None:
    root = plant(tmp_path, BUILT + OLD + NR_OPEN + ITEM, "ID=ubuntu\nVERSION_ID=24.04\n")
    assert not read_dialect(root).needs_files


def test_the_build_of_this_host_is_what_is_known_of_its_distribution() -> None:
    known = find_distribution(read_os_release()).pam
    assert read_dialect() == known
    assert known.is_known


@pytest.mark.parametrize("told", [VENDOR, b""])
def test_the_files_of_a_vendor_count_where_the_module_reads_them(
    tmp_path: Path, told: bytes
) -> None:
    root = plant(tmp_path, BUILT + b"__getdelim " + told)
    for path in (
        *("usr/etc/security/limits.conf", "usr/etc/security/limits.d/50-vendor.conf"),
        *("usr/etc/security/limits.d/60-hidden.conf", "etc/security/limits.d/60-hidden.conf"),
        "etc/security/limits.d/40-own.conf",
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("* - nofile 5\n")
    own = ["/etc/security/limits.d/40-own.conf", "/etc/security/limits.d/60-hidden.conf"]
    vendors = ["/usr/etc/security/limits.conf", "/usr/etc/security/limits.d/50-vendor.conf"]
    wanted = [vendors[0], own[0], vendors[1], own[1]] if told else own
    assert order_files(read_limits_files(root)) == wanted
    (tmp_path / "etc/security/limits.conf").write_text("")
    assert order_files(read_limits_files(root))[0] == "/etc/security/limits.conf"
