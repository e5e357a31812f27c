# SPDX-License-Identifier: GPL-3.0-or-later
"""A service as tests describe it: the texts of files by path, and a Debian 12 host around them."""

from __future__ import annotations

from collections.abc import Mapping

from mlhost_limits.core.values import RLIMITS, UNLIMITED, Rlimit
from mlhost_limits.systemd.model import Files, Manager, Stray, UnitFacts, find_defaults
from mlhost_limits.systemd.unit_file import Source

from .distributions import DEBIAN

UNIT = "/etc/systemd/system/x.service"
D = f"{UNIT}.d"
VENDOR = "/usr/lib/systemd/system/x.service"
VENDOR_D = f"{VENDOR}.d"
RUN_D = "/run/systemd/system/x.service.d"
WIDE_D = "/etc/systemd/system/service.d"
CONF, CONF_D = "/etc/systemd/system.conf", "/etc/systemd/system.conf.d"
FOLDERS = (D, RUN_D, VENDOR_D, WIDE_D, CONF_D, "/usr/lib/systemd/system.conf.d")

MIB = 2**20
PID_1 = {
    **dict.fromkeys(RLIMITS, Rlimit(UNLIMITED, UNLIMITED)),
    "nofile": Rlimit(1048576, 1048576),
    "memlock": Rlimit(100 * MIB, 100 * MIB),
}
MANAGER = Manager(find_defaults(PID_1, 8 * MIB, 524288), PID_1, 1048576)


def service(*lines: str) -> str:
    """Return the text of a service; line 1 is the header."""
    return "\n".join(("[Service]", *lines, ""))


def manager(*lines: str) -> str:
    return "\n".join(("[Manager]", *lines, ""))


def unit(
    files: Mapping[str, str], manager: Manager = MANAGER, strays: tuple[Stray, ...] = ()
) -> UnitFacts:
    """Return the facts of x.service, the folders in the order of their strength."""
    dropins = [
        Source(path, text)
        for folder in FOLDERS
        for path, text in files.items()
        if path.rpartition("/")[0] == folder
    ]
    of_manager = tuple(one for one in dropins if ".conf.d/" in one.path)
    of_unit = tuple(one for one in dropins if one not in of_manager)
    mains = [Source(path, files[path]) for path in (UNIT, VENDOR) if path in files]
    conf = Source(CONF, files[CONF]) if CONF in files else None
    main = mains[0] if mains else None
    known = Files(main, of_unit, conf, of_manager, tuple(mains[1:]), strays, DEBIAN)
    return UnitFacts("x.service", known, manager)
