# SPDX-License-Identifier: BSD-2-Clause
"""Find the package that a configuration file belongs to, or whose installation wrote it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from .door import find_paths, open_file, read_handle
from .files import under
from .program import run_program

CONFFILE = "a configuration file of package "
_DPKG = "/var/lib/dpkg/info"
_RPM = "/usr/bin/rpm"
_TIME_LIMIT = 20.0
_LARGEST = 2**20


def find_packages(paths: Iterable[str], root: str = "/", rpm: str = _RPM) -> dict[str, str]:
    """Return, by path, ``package NAME``, or what part of which package else.

    Files that no package knows are left out, and all are where the package manager is unknown.

    :param root: The tree whose packages are meant.
    """
    dpkg = under(_DPKG, root)
    wanted = {path: _names_of(path) for path in paths}
    found: dict[str, str] = {}
    for path, package in _find_in(f"{dpkg}/*.list", wanted, whole_line=True):
        found.setdefault(path, _describe(path, package))
    rest = {path: names for path, names in wanted.items() if path not in found}
    for path, package in _find_in(f"{dpkg}/*.postinst", rest, whole_line=False):
        found.setdefault(path, f"the installation script of package {package}")
    if not os.path.isdir(dpkg) and os.access(rpm, os.X_OK):
        found.update(_ask_rpm(rest, [rpm, "--root", root]))
    return found


def _names_of(path: str) -> list[bytes]:
    """Return a path as dpkg may know it: some packages still say /lib for /usr/lib."""
    names = [os.fsencode(path)]
    if path.startswith("/usr/lib/"):
        names.append(os.fsencode(path[len("/usr") :]))
    return names


def _find_in(
    pattern: str, wanted: dict[str, list[bytes]], whole_line: bool
) -> Iterable[tuple[str, str]]:
    for file in find_paths(pattern) if wanted else ():
        try:
            content = b"\n" + read_handle(open_file(file), _LARGEST, file)
        except OSError:
            continue
        for path, names in wanted.items():
            marks = [b"\n" + name + b"\n" for name in names] if whole_line else names
            if any(mark in content for mark in marks):
                yield path, os.path.basename(file).rpartition(".")[0].partition(":")[0]


def _ask_rpm(paths: Iterable[str], rpm: Sequence[str]) -> Iterable[tuple[str, str]]:
    for path in paths:
        query = [*rpm, "-qf", "--queryformat", "%{NAME}\\n", path]
        code, text = run_program(query, _TIME_LIMIT, with_errors=False)
        if code < 0:
            return
        if code == 0:
            yield path, _describe(path, text.split()[0])


def _describe(path: str, package: str) -> str:
    return f"{CONFFILE}{package}" if path.startswith("/etc/") else f"package {package}"
