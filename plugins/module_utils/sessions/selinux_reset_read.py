# SPDX-License-Identifier: BSD-2-Clause
"""Find out whether SELinux takes the soft limits that PAM set from a shell that a daemon starts.

A process that gets into another domain as it runs a program keeps its soft limits if the policy
allows ``rlimitinh``. Otherwise they fall to those that the kernel itself began with, which are
those of kthreadd. Source: ``selinux_bprm_committing_creds()`` in security/selinux/hooks.c.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from ..host.daemons import read_comm
from ..host.look import read_limits
from ..host.selinux_read import (
    find_default_context,
    find_domain,
    find_login_context,
    is_allowed,
    is_enforced,
    read_context,
)
from .soft_reset import SoftReset

_STARTED_BY_DAEMON = {
    "login": ("/bin/login",),
    "sshd": ("/usr/libexec/openssh/sshd-session", "/usr/lib/openssh/sshd-session"),
}
"""What a daemon runs to open a session, maybe in a domain of its own; sshd does since 9.8."""

_FIRST = 2
"""The process of kthreadd, the first that the kernel starts beside process 1."""


def find_soft_reset(service: str, user: str, pid: int) -> SoftReset | None:
    """Return what SELinux resets in sessions of a service, or nothing where limits stay.

    :param pid: The daemon of the service; for login a getty.
    :raises OSError: If that cannot be found out.
    """
    if not pid or not is_enforced():
        return None
    source = read_context(pid)
    for program in filter(os.path.exists, _STARTED_BY_DAEMON.get(service, ())):
        source = find_domain(source, program)
    resets = [
        _name_type(target)
        for target in _find_targets(service, user, source)
        if target != source and not is_allowed(source, target, "rlimitinh")
    ]
    if not resets:
        return None
    return SoftReset(_name_type(source), tuple(dict.fromkeys(resets)), _read_first_limits())


def _find_targets(service: str, user: str, source: bytes) -> Iterator[bytes]:
    """Yield the contexts in which a service starts what it starts for a user."""
    yield find_login_context(user, source)
    if service in ("cron", "crond"):
        yield find_default_context(b"system_u", source)  # What /etc/cron.d has of the user.


def _name_type(context: bytes) -> str:
    parts = context.decode("ascii", "replace").split(":")
    if len(parts) < 3 or not parts[2].isidentifier():
        raise OSError(f"SELinux does not tell: {':'.join(parts)!r} is not a context of a process")
    return parts[2]


def _read_first_limits() -> dict[str, int]:
    if read_comm(_FIRST) != "kthreadd":
        raise OSError("the soft limits to which SELinux resets are not known: no kthreadd here")
    return {item: limit.soft for item, limit in read_limits(_FIRST).items()}
