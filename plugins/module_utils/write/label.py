# SPDX-License-Identifier: BSD-2-Clause
"""Give what is written the SELinux label that restorecon(8) would give it in its place.

Sources: selinux(8), matchpathcon(3), is_context_customizable(3).
"""

from __future__ import annotations

import ctypes
import errno
import os

from ..host.selinux_read import LIBRARY, LOADED, load_library

_ATTRIBUTE = "security.selinux"


def apply_label(file: str | int, path: str, root: str = "/") -> None:
    """Label a file or folder that waits for its name, or has it.

    Where SELinux is off nothing is done, nor in a tree that will be another host: that one labels
    its files when it first boots. One that somebody labeled otherwise on purpose stays so, if the
    policy calls such labels customizable.

    :param file: What to label: a path, or what :func:`os.open` returned.
    :param path: The name that decides.
    :raises OSError: If SELinux is on and the label cannot be found out or set.
    """
    if root != "/" or not os.path.exists(LOADED):
        return
    library = load_library()
    if library is None:
        raise OSError(f"{path}: SELinux is on, and {LIBRARY}, which knows its label, is missing")
    if library.is_selinux_enabled() != 1:
        return
    label = _find_label(library, path, os.stat(file).st_mode)
    now = _read_label(file)
    if label in (None, now) or (now and library.is_context_customizable(now) == 1):
        return
    try:
        os.setxattr(file, _ATTRIBUTE, label or b"")
    except OSError as exc:
        if exc.errno != errno.ENOTSUP:  # Its file system is labeled as a whole.
            shown = (label or b"").rstrip(b"\0").decode("ascii", "replace")
            raise OSError(f"{path}: cannot be labeled {shown} for SELinux: {exc}") from exc


def _find_label(library: ctypes.CDLL, path: str, mode: int) -> bytes | None:
    """Return the label that the policy has for a name, as it is stored; ``None`` for none."""
    found = ctypes.c_char_p()
    if library.matchpathcon(os.fsencode(path), ctypes.c_uint(mode), ctypes.byref(found)) != 0:
        code = ctypes.get_errno()
        if code in (0, errno.ENOENT):  # The policy says <<none>>, or nothing.
            return None
        raise OSError(f"{path}: its label for SELinux is not known: {os.strerror(code)}")
    label = found.value
    library.freecon(found)
    return None if label is None else label + b"\0"


def _read_label(file: str | int) -> bytes:
    try:
        return os.getxattr(file, _ATTRIBUTE)
    except OSError:
        return b""
