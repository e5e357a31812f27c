# SPDX-License-Identifier: BSD-2-Clause
"""Make a process a user's for good: ids, groups, a keyring and an audit identity of its own.

Source: credentials(7), session-keyring(7), prctl(2) for PR_SET_NO_NEW_PRIVS and PR_SET_DUMPABLE,
and ``audit_set_loginuid()`` of the kernel for loginuid.
"""

from __future__ import annotations

import ctypes
import errno
import os
import pwd
import signal
from collections.abc import Mapping
from contextlib import suppress

from ..core.values import Rlimit
from .own_limits import set_own_limits

PR_SET_CHILD_SUBREAPER = 36
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38
_KEYCTL = {
    "x86_64": 250,
    "aarch64": 219,
    "riscv64": 219,
    "loongarch64": 219,
    "ppc64le": 271,
    "s390x": 280,
}
_GET_KEYRING, _JOIN_SESSION_KEYRING = 0, 1
_SESSION_KEYRING = -3
_NO_KEYRINGS = (errno.ENOSYS, errno.EPERM)


def leave_root(
    person: pwd.struct_passwd, limits: Mapping[str, Rlimit], gains_rights: bool = False
) -> None:
    """Make this process a user's for good, and keep nothing of root's.

    :raises OSError, ValueError: If the kernel does not do all of it.
    """
    _leave_keyrings()
    _tell_audit(person.pw_uid)
    if not gains_rights:
        prctl(_PR_SET_NO_NEW_PRIVS, 1)
    os.setgroups(list_groups(person))
    os.setresgid(person.pw_gid, person.pw_gid, person.pw_gid)
    set_own_limits(limits)
    _become(person.pw_uid)
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getresuid() != (person.pw_uid,) * 3 or os.getresgid() != (person.pw_gid,) * 3:
        raise OSError("the kernel did not make this process the user's")


def _become(uid: int) -> None:
    """Take on a user's id, so that no process of the user's ever reads what is root's in here.

    Where fs.suid_dumpable is 1, as some databases ask for, whose id it is may trace a process that
    became theirs (ptrace(2)). The saved id, which counts as well, stays root's until nobody may.
    """
    if uid:
        os.setresuid(uid, uid, 0)
        prctl(_PR_SET_DUMPABLE, 0)
    os.setresuid(uid, uid, uid)


def list_groups(person: pwd.struct_passwd) -> list[int]:
    """Return the groups of a user; of one that no database knows, the own."""
    if not person.pw_name:
        return [person.pw_gid]
    return os.getgrouplist(person.pw_name, person.pw_gid)


def _leave_keyrings() -> None:
    """Join a session keyring that is new and empty, so that root's is not at hand.

    :raises OSError: If the kernel has keyrings, and gives none.
    """
    number = _KEYCTL.get(os.uname().machine)
    if number is None:
        raise OSError(f"root's keyring cannot be left on {os.uname().machine}")
    if _call(number, _JOIN_SESSION_KEYRING, None) not in (*_NO_KEYRINGS, 0):
        raise OSError("no session keyring could be made")
    if _call(number, _GET_KEYRING, _SESSION_KEYRING) in (0, *_NO_KEYRINGS):
        return
    raise OSError("the session keyring is not the child's own")


def _call(number: int, operation: int, value: int | None) -> int:
    """Call keyctl(2). Return 0, or the error's number."""
    library = ctypes.CDLL(None, use_errno=True)
    argument = ctypes.c_void_p(value) if value is None else ctypes.c_long(value)
    done = library.syscall(
        ctypes.c_long(number), ctypes.c_long(operation), argument, ctypes.c_long(0)
    )
    return 0 if done >= 0 else ctypes.get_errno()


def _tell_audit(uid: int) -> None:
    """Let the audit log name the user, where it may be changed: root did not do what follows."""
    with suppress(OSError):
        handle = os.open("/proc/self/loginuid", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(handle, str(uid).encode("ascii"))
        finally:
            os.close(handle)


def prctl(option: int, value: int) -> None:
    """Call prctl(2) with one value.

    :raises OSError: If the kernel refuses it.
    """
    library = ctypes.CDLL(None, use_errno=True)
    arguments = (option, value, 0, 0, 0)
    if library.prctl(*(ctypes.c_ulong(one) for one in arguments)):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
