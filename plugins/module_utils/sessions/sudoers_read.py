# SPDX-License-Identifier: BSD-2-Clause
"""Read what sudo reads."""

from __future__ import annotations

import os
import re
from collections import deque

from ..host.files import list_folder, read_text
from .sudoers import MAIN_FILE, find_sudo_includes

_SUDO_CONF = "/etc/sudo.conf"
_OTHER_FILE = r"^[ \t]*Plugin[ \t]+sudoers_policy[ \t].*?\bsudoers_file=(/\S+)"


def find_main_file(text: str) -> str:
    """Return the file that sudo.conf(5) gives to the plugin of sudoers(5), or the usual one."""
    found = re.findall(_OTHER_FILE, text, re.MULTILINE) if "sudoers_file" in text else []
    return str(found[0]) if found else MAIN_FILE


def read_sudoers(root: str = "/") -> dict[str, str]:
    """Return sudoers(5) and what it includes, by path, in the order in which sudo reads them."""
    files: dict[str, str] = {}
    waiting = deque([find_main_file(read_text(_SUDO_CONF, root) or "")])
    while waiting:
        path = waiting.popleft()
        text = None if path in files else read_text(path, root)
        if text is None:
            continue
        files[path] = text
        host = os.uname().nodename.partition(".")[0]
        for kind, named in find_sudo_includes(text):
            name = named.replace("%h", host)
            name = name if name.startswith("/") else f"/etc/{name}"
            waiting += _list_included(name, root) if kind == "includedir" else [name]
    return files


def _list_included(folder: str, root: str) -> list[str]:
    """Return the files of a folder as sudo reads them: none with a dot or a tilde at its end."""
    names = (
        name for name in list_folder(folder, root) if "." not in name and not name.endswith("~")
    )
    return [f"{folder.rstrip('/')}/{name}" for name in names]
