# SPDX-License-Identifier: BSD-2-Clause
"""Read what a site's own sysctl files state, and turn it into the kernel of a policy."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping

from ..core.adopted import Adopted, Candidate, LeftOut, is_of_site, settle
from ..core.edit import HEADER
from ..host.booted import is_chroot
from ..host.files import read_distribution, read_text
from .host_read import read_sysctl_files
from .policy import read_kernel
from .read import read_sysctl, sysctl_path
from .sysctl_conf import SYSCTL_CONF, SysctlLine, find_number
from .sysctl_writes import SYSTEMD, Reader, find_lowest_nr_open, find_procps, resolve_sysctl


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


def list_site_keys(files: Mapping[str, str], procps: Reader) -> list[str]:
    """Return the sysctls that the site's files name."""
    lines = [*_read_sysctl_conf(files, procps), *SYSTEMD.read(files)]
    found = (line.key for line in lines if is_of_site(line.path) and not line.glob)
    return list(dict.fromkeys(found))


def _read_sysctl_conf(files: Mapping[str, str], procps: Reader) -> list[SysctlLine]:
    """Return the lines of sysctl.conf, unless a boot reads it through a link as well."""
    text = files.get(SYSCTL_CONF, "")
    linked = any(other == text for path, other in files.items() if path != SYSCTL_CONF)
    return [] if linked else procps.parse(text, SYSCTL_CONF)


def adopt_kernel(
    files: Mapping[str, str], procps: Reader, lacking: Collection[str] = ()
) -> Adopted:
    """Return the sysctls that the site's lines give a boot, or else ``sysctl -p``.

    :param files: Text of every file in the folders of sysctl.d(5), and of sysctl.conf, by path.
    :param procps: How sysctl.conf is read.
    :param lacking: Keys that this kernel has not.
    """
    # Of one sysctl a boot heeds the line that it reads last.
    lines = [*_read_sysctl_conf(files, procps), *SYSTEMD.read(files)]
    adopted = settle(read_kernel, "kernel", [_weigh(line, lacking) for line in lines])
    stated = [at for leaf in adopted.section.get("kernel", {}).values() for at in leaf.at]  # type: ignore[attr-defined]
    late = "is read by sysctl -p alone and not at boot; a policy sets it at boot too"
    adopted.left.extend(LeftOut(at, late) for at in stated if at.path == SYSCTL_CONF)
    return adopted


def _weigh(line: SysctlLine, lacking: Collection[str]) -> Candidate:
    reason = ""
    if line.glob:
        reason = "names many sysctls; a policy names each"
    elif line.value is None:
        reason = "assigns nothing"
    elif line.key in lacking:
        reason = "this kernel has no such sysctl"
    at = line.declaration
    return Candidate(("kernel", line.key), {"exact": at.value}, at, reason)


def adopt_tree_kernel(root: str) -> Adopted:
    """Return the sysctls that the site's files set; on a host, those that its kernel has."""
    files, procps = read_site_sysctls(root), find_procps(read_distribution(root))
    runs = root == "/" and not is_chroot()
    keys = list_site_keys(files, procps)
    lacking = {key for key in keys if runs and not os.path.exists(sysctl_path(key))}
    return adopt_kernel(files, procps, lacking)
