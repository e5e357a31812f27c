# SPDX-License-Identifier: BSD-2-Clause
"""Read the lines of units that say how a way in is started: of sshd, and of gettys."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..core.values import Declaration
from ..host.files import list_folder, read_each

OF_ROOT = ("/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system")
"""Where the administrator's units lie, the strongest first."""
_ALL = (*OF_ROOT, "/usr/lib/systemd/system", "/lib/systemd/system")


def read_unit_lines(pattern: str, root: str, folders: Sequence[str] = _ALL) -> list[Declaration]:
    """Return the lines of units, drop-ins last, in the order in which systemd applies them.

    :param pattern: What the names of the units match, whole.
    :param folders: Where they are looked for, the strongest first.
    """
    mains: dict[str, str] = {}
    drop_ins: dict[str, str] = {}
    for folder in folders:
        for name in list_folder(folder, root):
            stem = name[:-2] if name.endswith(".d") else name
            if not re.fullmatch(pattern, stem):
                continue
            if stem == name:
                mains.setdefault(name, f"{folder}/{name}")
            else:
                files = list_folder(f"{folder}/{name}", root)
                found = {one: f"{folder}/{name}/{one}" for one in files if one.endswith(".conf")}
                drop_ins = {**found, **drop_ins}
    paths = [*mains.values(), *(drop_ins[name] for name in sorted(drop_ins))]
    return [
        Declaration(path, number, line, "")
        for path, text in read_each(paths, root)
        for number, line in enumerate(text.split("\n"), 1)
    ]


def list_starts(lines: Sequence[Declaration]) -> Iterator[Declaration]:
    """Yield the lines that set variables, then the one that starts the program."""
    start = None
    for one in lines:
        key, _sign, value = one.text.strip().partition("=")
        if key.strip() == "Environment":
            yield one
        elif key.strip() == "ExecStart":
            start = one if value.strip() else None
    if start:
        yield start
