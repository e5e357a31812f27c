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


def read_unit_lines(
    pattern: str, root: str, folders: Sequence[str] = _ALL, main: str = ""
) -> list[Declaration]:
    """Return the lines of units, drop-ins last, in the order in which systemd applies them.

    :param pattern: What the names of the units match, whole.
    :param folders: Where they are looked for, the strongest first.
    :param main: The only one that counts of itself, the others being its aliases; else all do.
    """
    mains: dict[str, str] = {}
    drop_ins: dict[tuple[str, str], str] = {}
    for folder in folders:
        for name in list_folder(folder, root):
            stem = name[:-2] if name.endswith(".d") else name
            if not re.fullmatch(pattern, stem):
                continue
            if stem == name:
                if main in ("", name):
                    mains.setdefault(name, f"{folder}/{name}")
            else:
                files = list_folder(f"{folder}/{name}", root)
                for one in (one for one in files if one.endswith(".conf")):
                    drop_ins.setdefault((one, stem), f"{folder}/{name}/{one}")
    paths = [*mains.values(), *(drop_ins[key] for key in sorted(drop_ins))]
    return [line for path, text in read_each(paths, root) for line in join_lines(text, path)]


def join_lines(text: str, path: str) -> Iterator[Declaration]:
    """Yield the lines of a file; those that go on in the next are one, with the first number."""
    start, whole = 1, ""
    for number, line in enumerate(text.split("\n"), 1):
        start, whole = (start, f"{whole} {line}") if whole else (number, line)
        if whole.endswith("\\"):
            whole = whole[:-1]
            continue
        yield Declaration(path, start, whole, "")
        whole = ""
    if whole:
        yield Declaration(path, start, whole, "")


def list_starts(lines: Sequence[Declaration]) -> Iterator[Declaration]:
    """Yield the lines that set variables, then the one that starts the program.

    The value of each is what stands behind its key.
    """
    start = None
    for one in lines:
        key, _sign, value = (part.strip() for part in one.text.partition("="))
        if key in ("Environment", "EnvironmentFile"):
            yield one._replace(value=value)
        elif key == "ExecStart":
            start = one._replace(value=value) if value else None
    if start:
        yield start
