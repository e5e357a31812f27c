# SPDX-License-Identifier: BSD-2-Clause
"""Say whether the SELinux of an image is known to leave sessions their soft limits."""

from __future__ import annotations

import re

from ..host.files import read_text

_CONFIG = "/etc/selinux/config"
_LINE = re.compile(r"^\s*(SELINUX|SELINUXTYPE)\s*=\s*([A-Za-z0-9_-]+)", re.MULTILINE)
# Fedora's, and Red Hat's which is made of it: authlogin.te has userdom_set_rlimitnh(login_pgm).
_LEAVES = {"targeted": ("sshd", "login")}
_STARTS_SHELLS = ("sshd", "login", "cron", "crond")


def doubt_soft_limits(service: str, root: str) -> str:
    """Return why a soft limit of a service's sessions is not known in an image; or nothing.

    The policy of a tree is not asked: only the kernel that has loaded it could tell.
    """
    text = read_text(_CONFIG, root) or ""
    stated = dict(_LINE.findall(text))
    kind = stated.get("SELINUXTYPE", "targeted")
    if stated.get("SELINUX") != "enforcing" or service not in _STARTS_SHELLS:
        return ""
    if service in _LEAVES.get(kind, ()):
        return ""
    return f"SELinux ({_CONFIG}, {kind}) may take soft limits from what {service} starts"
