# SPDX-License-Identifier: BSD-2-Clause
"""Read what sudo reads."""

from __future__ import annotations

import os
from collections import deque

from ..host.files import list_folder, read_text
from .sudoers import MAIN_FILE, find_sudo_includes


def read_sudoers() -> dict[str, str]:
    """Return sudoers(5) and what it includes, by path, in the order in which sudo reads them."""
    files: dict[str, str] = {}
    waiting = deque([MAIN_FILE])
    while waiting:
        path = waiting.popleft()
        text = None if path in files else read_text(path)
        if text is None:
            continue
        files[path] = text
        host = os.uname().nodename.partition(".")[0]
        for kind, named in find_sudo_includes(text):
            name = named.replace("%h", host)
            name = name if name.startswith("/") else f"/etc/{name}"
            waiting += _list_included(name) if kind == "includedir" else [name]
    return files


def _list_included(folder: str) -> list[str]:
    """Return the files of a folder as sudo reads them: none with a dot or a tilde at its end."""
    names = (name for name in list_folder(folder) if "." not in name and not name.endswith("~"))
    return [f"{folder.rstrip('/')}/{name}" for name in names]
