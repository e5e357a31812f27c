# SPDX-License-Identifier: BSD-2-Clause
"""Say whether the SELinux of an image is known to leave sessions their soft limits."""

from __future__ import annotations

import re

from ..host.files import read_text

_CONFIG = "/etc/selinux/config"
_ENFORCING = re.compile(r"^[ \t]*SELINUX[ \t]*=[ \t]*enforcing", re.M | re.I)
_TYPE = re.compile(r"^[ \t]*SELINUXTYPE[ \t]*=[ \t]*([A-Za-z0-9_-]+)", re.M | re.I)
# Fedora's, and Red Hat's which is made of it: authlogin.te has userdom_set_rlimitnh(login_pgm).
_LEAVES = {"targeted": ("sshd", "login")}
_STARTS_SHELLS = ("sshd", "login", "cron", "crond", "atd", "gdm-password", "remote")


def doubt_soft_limits(service: str, root: str) -> str:
    """Return why a soft limit of a service's sessions is not known in an image; or nothing.

    The policy of a tree is not asked: only the kernel that has loaded it could tell.
    """
    try:
        text = read_text(_CONFIG, root) or ""
    except OSError as error:
        return str(error) if service in _STARTS_SHELLS else ""
    kinds = _TYPE.findall(text) or ["targeted"]
    if service not in _STARTS_SHELLS or not _ENFORCING.search(text):
        return ""
    if all(service in _LEAVES.get(kind, ()) for kind in kinds):
        return ""
    return f"SELinux ({_CONFIG}, {kinds[-1]}) may take soft limits from what {service} starts"
