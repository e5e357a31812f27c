# SPDX-License-Identifier: BSD-2-Clause
"""Name the program that writes a file, by where it lies: authselect, snapd, a system extension.

Sources: authselect-profiles(5), snapd's ``wrappers`` package, systemd-sysext(8).
"""

from __future__ import annotations

import os
import re

from .files import follow_links, list_folder, read_text, under

_AUTHSELECT = "/etc/authselect/"
_UNIT_OF_SNAP = re.compile(r"/etc/systemd/system/snap\.([^./]+)\.[^/]+\.(?:service|socket|timer)")
_BASES = ("/run", "/var/lib", "/usr/local/lib", "/usr/lib")
_EXTENSIONS = {
    "/usr/": ("extensions", "/usr/lib/extension-release.d"),
    "/opt/": ("extensions", "/usr/lib/extension-release.d"),
    "/etc/": ("confexts", "/etc/extension-release.d"),
}
"""By what an extension lays itself over: where extensions lie, and what says that one does."""

_RELEASE = "extension-release."


def name_generator(path: str, root: str = "/") -> str:
    """Return who writes a file, and what becomes of an edit; nothing where that is not known."""
    try:
        real = follow_links(path, root)
        if real.startswith(_AUTHSELECT):
            return _name_profile(root)
        snap = _UNIT_OF_SNAP.fullmatch(real)
        if snap:
            return f"snapd, for the snap {snap[1]}: its next refresh undoes an edit, no drop-in"
        return _find_extension(real, root)
    except OSError:
        return ""


def _name_profile(root: str) -> str:
    rows = (read_text(f"{_AUTHSELECT}authselect.conf", root) or "").split("\n")
    name = rows[0].strip()
    profile = f", by its profile {name}" if re.fullmatch(r"[\w./-]+", name) else ""
    return (
        f"authselect{profile}: an edit is undone by its next apply-changes; what stays is "
        f"a profile below {_AUTHSELECT}custom"
    )


def _find_extension(path: str, root: str) -> str:
    """Return the extension that lays a file over the system's own."""
    top = next((top for top in _EXTENSIONS if path.startswith(top)), "")
    if not top:
        return ""
    kind, releases = _EXTENSIONS[top]
    merged = [name[len(_RELEASE) :] for name in list_folder(releases, root)]
    for name in merged:
        for folder in (f"{base}/{kind}" for base in _BASES):
            if os.path.lexists(under(f"{folder}/{name}", root) + path):
                return f"the system extension {folder}/{name}: an edit of it belongs there"
    images = [f"{base}/{kind}/{name}.raw" for base in _BASES for name in merged]
    found = [image for image in images if os.path.exists(under(image, root))]
    return f"perhaps a system extension: {', '.join(found)}" if found else ""
