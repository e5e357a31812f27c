# SPDX-License-Identifier: BSD-2-Clause
"""Predict whether logind removes a user's shared memory at the end of the last login.

Source: logind.conf(5), ``config_parse_bool()`` and ``parse_boolean()`` of systemd.
"""

from __future__ import annotations

from ..core.values import Declaration
from ..systemd.unit_file import order_sources, scan_unit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..systemd.model import Files

LOGIND = "logind.conf"
KEY = "RemoveIPC"
_WORDS = {
    **dict.fromkeys(("1", "yes", "y", "true", "t", "on"), True),
    **dict.fromkeys(("0", "no", "n", "false", "f", "off"), False),
}


def read_remove_ipc(files: Files) -> list[Declaration]:
    """Return the lines that count, in the order in which they apply; their values are 1 or 0."""
    found = []
    for source in order_sources(files.manager, files.manager_dropins):
        scan = scan_unit(source.text, source.path)
        for one in scan.settings:
            value = _WORDS.get(one.value.lower())
            if (one.section, one.key) == ("Login", KEY) and value is not None:
                found.append(one.declare(int(value)))
        if scan.fault:
            break  # Of logind.conf and its drop-ins nothing more is read.
    return found


def predict_remove_ipc(files: Files) -> bool | None:
    """Return what logind will do once it has read its files, if it is known."""
    ranked = read_remove_ipc(files)
    return bool(ranked[-1].value) if ranked else files.vendor.removes_ipc
