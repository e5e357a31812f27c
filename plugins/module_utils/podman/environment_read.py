# SPDX-License-Identifier: BSD-2-Clause
"""Find where sessions are given another containers.conf than the one that a check's Podman reads.

Source: containers.conf(5), ``CONTAINERS_CONF`` and ``CONTAINERS_CONF_OVERRIDE``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..core.values import Declaration
from ..host.files import list_folder, read_text

_FILES, _FOLDER = ("/etc/environment", "/etc/profile"), "/etc/profile.d"
_VARIABLE = "CONTAINERS_CONF"
_SETS = r"""(?:.*[\s;&])?CONTAINERS_CONF(?:_OVERRIDE)?=["']?([^\s"';]+).*"""


def find_named_files(root: str = "/") -> Iterator[Declaration]:
    """Yield the lines that name another file to the sessions of everybody, with it for value."""
    scripts = (f"{_FOLDER}/{name}" for name in list_folder(_FOLDER, root) if name.endswith(".sh"))
    for path in (*_FILES, *scripts):
        text = read_text(path, root) or ""
        for number, line in enumerate(text.split("\n") if _VARIABLE in text else (), 1):
            found = None if line.lstrip().startswith("#") else re.fullmatch(_SETS, line)
            if found:
                yield Declaration(path, number, line, found[1])
