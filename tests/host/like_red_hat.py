"""What lies otherwise on a Red Hat than on a Debian, as far as limits are concerned.

The sessions of PAM, and the release, are those of ``tests/worlds``; what is added here lets people
log in on Debian's programs, which have other names for a few of them.
"""

# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from tests.worlds.trees import TREES

REPLACED = (
    "/etc/pam.d/*",
    "/usr/lib/pam.d/*",
    "/etc/debian_version",
    "/etc/os-release",
    "/usr/lib/systemd/system/ssh.*",
    "/usr/lib/systemd/system/ssh@.service",
    "/etc/systemd/system/sshd.service",
    "/etc/systemd/system/multi-user.target.wants/ssh.service",
    "/usr/lib/systemd/system/cron.service",
    "/etc/systemd/system/multi-user.target.wants/cron.service",
)

_STACK = """\
auth required pam_env.so
auth sufficient pam_unix.so nullok
auth required pam_deny.so
account required pam_unix.so
password sufficient pam_unix.so sha512 shadow nullok use_authtok
password required pam_deny.so
"""
_STACKS = ("system-auth", "password-auth")
_THROUGH_PASSWORD = ("sshd", "crond")
_AS_ROOT = ("su", "runuser")
_SSHD = """\
[Unit]
Description=OpenSSH server daemon
After=network.target
[Service]
Type=notify
EnvironmentFile=-/etc/sysconfig/sshd
ExecStart=/usr/sbin/sshd -D $OPTIONS
ExecReload=/bin/kill -HUP $MAINPID
KillMode=process
Restart=on-failure
RestartSec=42s
RuntimeDirectory=sshd
RuntimeDirectoryMode=0755
[Install]
WantedBy=multi-user.target
"""
_CROND = """\
[Unit]
Description=Command Scheduler
After=systemd-user-sessions.service
[Service]
EnvironmentFile=-/etc/sysconfig/crond
ExecStart=/usr/sbin/cron -f $CRONDARGS
KillMode=process
[Install]
WantedBy=multi-user.target
"""


def list_files(version: str) -> dict[str, str]:
    """Return the files by their path; an existing one is replaced.

    :param version: As VERSION_ID states it, such as ``9.6``.
    """
    tree = TREES[f"Red Hat {version.split('.', maxsplit=1)[0]}"]
    stacks = {
        path: _begin_stack(path.rpartition("/")[2]) + text
        for path, text in tree.items()
        if path.startswith("/etc/pam.d/") and not path.endswith("/other")
    }
    passwd = "".join(f"{kind} include system-auth\n" for kind in ("auth", "account", "password"))
    return {
        **stacks,
        "/etc/pam.d/other": tree["/etc/pam.d/other"],
        "/etc/pam.d/passwd": passwd,
        "/etc/pam.d/chpasswd": passwd,
        "/etc/pam.d/cron": stacks["/etc/pam.d/crond"],  # Debian's program calls itself so.
        "/usr/lib/os-release": f'{tree["/etc/os-release"]}PRETTY_NAME="built like {version}"\n',
        "/etc/os-release": f'{tree["/etc/os-release"]}PRETTY_NAME="built like {version}"\n',
        "/usr/lib/systemd/system/sshd.service": _SSHD,
        "/usr/lib/systemd/system/crond.service": _CROND,
        "/etc/sysconfig/sshd": "",
        "/etc/sysconfig/crond": "CRONDARGS=\n",
    }


def _begin_stack(service: str) -> str:
    """Return what stands before the sessions of a service."""
    if service in _STACKS:
        return _STACK
    if service == "postlogin":
        return ""
    through = "password-auth" if service in _THROUGH_PASSWORD else "system-auth"
    first = "auth sufficient pam_rootok.so\n" if service.split("-")[0] in _AS_ROOT else ""
    last = "account required pam_permit.so\n" if service.startswith("runuser") else ""
    kinds = ("auth",) if last else ("auth", "account", "password")
    return first + "".join(f"{kind} include {through}\n" for kind in kinds) + last
