# SPDX-License-Identifier: BSD-2-Clause
"""Ask SELinux of this host: through libselinux, of the policy that is loaded.

Sources: selinux(8), getseuserbyname(3), get_default_context_with_level(3), security_compute_av(3).
"""

from __future__ import annotations

import ctypes
import os
from functools import lru_cache

from .door import read_kernel_file

LOADED = "/sys/fs/selinux/enforce"
LIBRARY = "libselinux.so.1"
_PERMISSIVE = 1
"""Flag of a decision about a domain of which everything is let pass."""


class _Decision(ctypes.Structure):
    """``struct av_decision`` of selinux.h."""

    _fields_ = [
        (name, ctypes.c_uint32)
        for name in ("allowed", "decided", "auditallow", "auditdeny", "seqno", "flags")
    ]


def is_enforced() -> bool:
    """Tell whether SELinux is on and refuses what its policy does not allow."""
    try:
        return read_kernel_file(LOADED).strip() == b"1"
    except OSError:
        return False


@lru_cache(maxsize=1)
def load_library() -> ctypes.CDLL | None:
    """Return libselinux, or nothing where the host has none."""
    try:
        return ctypes.CDLL(LIBRARY, use_errno=True)
    except OSError:
        return None


def read_context(pid: int) -> bytes:
    """Return the context of a process.

    :raises OSError: If there is no such process.
    """
    return read_kernel_file(f"/proc/{pid}/attr/current").rstrip(b"\0\n")


def find_login_context(user: str, source: bytes) -> bytes:
    """Return the context of a session of a user that a process of another one opens.

    :raises OSError: If the policy has none, or libselinux is missing.
    """
    library, own, level = _need(), ctypes.c_char_p(), ctypes.c_char_p()
    _demand(
        library.getseuserbyname(os.fsencode(user), ctypes.byref(own), ctypes.byref(level)), user
    )
    known = own.value or b""
    for text in (own, level):
        library.free(text)
    return find_default_context(known, source)


def find_default_context(known: bytes, source: bytes) -> bytes:
    """Return the same of a user as SELinux knows them, such as ``system_u``."""
    library, found = _need(), ctypes.c_char_p()
    status = library.get_default_context(known, source, ctypes.byref(found))
    _demand(status, f"no context from {source.decode('ascii', 'replace')}")
    return _take(library, found)


def find_domain(source: bytes, program: str) -> bytes:
    """Return the context that a process has once it runs a program.

    :raises OSError: If that cannot be found out.
    """
    library, found = _need(), ctypes.c_char_p()
    label = os.getxattr(os.path.realpath(program), "security.selinux").rstrip(b"\0")
    number = library.string_to_security_class(b"process")
    status = library.security_compute_create(
        source, label, ctypes.c_ushort(number), ctypes.byref(found)
    )
    _demand(status, program)
    return _take(library, found)


def is_allowed(source: bytes, target: bytes, permission: str) -> bool:
    """Tell whether one process may do something to another, or as another.

    :param permission: One of the class ``process``.
    :raises OSError: If the policy cannot be asked, or does not know the permission.
    """
    library, answer = _need(), _Decision()
    number = library.string_to_security_class(b"process")
    bit = ctypes.c_uint32(library.string_to_av_perm(number, permission.encode())).value
    if not number or not bit:
        raise OSError(f"SELinux does not know the permission {permission}")
    # Without _flags a domain of which everything is let pass looks like any other.
    status = library.security_compute_av_flags(
        source, target, ctypes.c_ushort(number), ctypes.c_uint32(bit), ctypes.byref(answer)
    )
    _demand(status, permission)
    return bool(answer.allowed & bit or answer.flags & _PERMISSIVE)


def _need() -> ctypes.CDLL:
    library = load_library()
    if library is None:
        raise OSError(f"SELinux is on, and {LIBRARY}, which knows its policy, is missing")
    return library


def _demand(status: int, what: str) -> None:
    if status != 0:
        raise OSError(f"SELinux does not tell: {what}: {os.strerror(ctypes.get_errno())}")


def _take(library: ctypes.CDLL, found: ctypes.c_char_p) -> bytes:
    text = found.value or b""
    library.freecon(found)
    return text
