# SPDX-License-Identifier: BSD-2-Clause
"""Find out whether an earlier run wrote drop-ins of systemd here, by a few looks at files."""

from __future__ import annotations

import os

from ..host.files import list_folder, under

_UNITS = "/etc/systemd/system"
_NAME = "90-mlhost.conf"
_MANAGERS = tuple(f"/etc/systemd/{name}.conf.d" for name in ("system", "user", "logind"))


def is_made(root: str) -> bool:
    """Tell whether a unit or a manager has a drop-in of ours."""
    units = [f"{_UNITS}/{name}" for name in list_folder(_UNITS, root) if name.endswith(".d")]
    return any(os.path.isfile(under(f"{one}/{_NAME}", root)) for one in (*units, *_MANAGERS))
