# SPDX-License-Identifier: BSD-2-Clause
"""Read what a site itself wrote on a host or in a tree: our own files are left out."""

from __future__ import annotations

from ..core.edit import HEADER
from ..host.files import read_text
from ..host.image import is_chroot
from .files_read import read_sysctl_files
from .read import read_sysctl
from .sysctl_conf import SYSCTL_CONF, find_number
from .sysctl_writes import find_lowest_nr_open, resolve_sysctl


def drop_ours(files: dict[str, str]) -> dict[str, str]:
    """Return files less those that we wrote."""
    return {path: text for path, text in files.items() if not text.startswith(HEADER)}


def read_site_sysctls(root: str) -> dict[str, str]:
    """Return the files of sysctl.d, and sysctl.conf, by path."""
    conf = read_text(SYSCTL_CONF, root)
    files = drop_ours(read_sysctl_files(root))
    return {**files, **({} if conf is None else {SYSCTL_CONF: conf})}


def find_nr_open(root: str) -> int | None:
    """Return the lowest fs.nr_open from now on; of a tree that does not state it, nothing."""
    files = read_site_sysctls(root)
    if root == "/" and not is_chroot():
        return find_lowest_nr_open(files, {"fs.nr_open": read_sysctl("fs.nr_open")})
    stated = resolve_sysctl(files, ["fs.nr_open"]).get("fs.nr_open")
    return find_number(stated.winner) if stated else None
