# SPDX-License-Identifier: GPL-3.0-or-later
"""What decides limits in the files of distributions that are not booted here, stock.

Only what a test needs is here: of PAM the lines of sessions, of others the lines that state a
limit. README.md has the origin of each fact.
"""

from __future__ import annotations

from pathlib import Path

LINK = "-> "

_OTHER = "auth required pam_deny.so\naccount required pam_deny.so\nsession required pam_deny.so\n"
_PEOPLE = {
    "/etc/passwd": "root:x:0:0::/root:/bin/sh\nalice:x:1000:1000::/home/alice:/bin/sh\n",
    "/etc/group": "root:x:0:\nalice:x:1000:\nml:x:2000:alice\n",
    "/etc/security/limits.conf": "# Each line: <domain> <type> <item> <value>\n",
    "/etc/sysctl.conf": "# See sysctl.d(5)\n",
    "/etc/sysctl.d/99-sysctl.conf": f"{LINK}../sysctl.conf",
    "/etc/pam.d/other": _OTHER,
}
_MANAGER = "[Manager]\n#DefaultLimitNOFILE=1024:524288\n#DefaultLimitMEMLOCK=8M\n"
_MAP_COUNT = "vm.max_map_count=1048576\n"


def _sessions(*lines: str) -> str:
    return "".join(f"session {line}\n" for line in lines)


_AUTH = _sessions(
    "optional pam_keyinit.so revoke",
    "required pam_limits.so",
    "optional pam_systemd.so",
    "[success=1 default=ignore] pam_succeed_if.so service in crond quiet use_uid",
    "required pam_unix.so",
)
_OPEN = ("required pam_selinux.so open", "optional pam_keyinit.so force revoke")
_RED_HAT = {
    **_PEOPLE,
    "/etc/pam.d/system-auth": _AUTH,
    "/etc/pam.d/password-auth": _AUTH,
    "/etc/pam.d/postlogin": _sessions("optional pam_umask.so silent"),
    "/etc/pam.d/sshd": _sessions(*_OPEN, "include password-auth", "include postlogin"),
    "/etc/pam.d/login": _sessions(*_OPEN, "include system-auth", "include postlogin"),
    "/etc/pam.d/su": _sessions("include system-auth", "include postlogin", "optional pam_xauth.so"),
    "/etc/pam.d/su-l": _sessions("optional pam_keyinit.so force revoke", "include su"),
    "/etc/pam.d/sudo": _sessions("optional pam_keyinit.so revoke", "include system-auth"),
    "/etc/pam.d/sudo-i": _sessions("optional pam_keyinit.so force revoke", "include sudo"),
    "/etc/pam.d/crond": _sessions("required pam_loginuid.so", "include password-auth"),
    "/etc/pam.d/runuser": _sessions("required pam_limits.so", "required pam_unix.so"),
    "/etc/pam.d/runuser-l": _sessions("optional pam_systemd.so", "include runuser"),
    "/etc/pam.d/systemd-user": _sessions(*_OPEN, "include system-auth"),
    "/usr/lib/systemd/system/sshd.service": "[Service]\nExecStart=/usr/sbin/sshd -D\n",
    "/usr/lib/systemd/system/crond.service": "[Service]\nExecStart=/usr/sbin/crond -n\n",
}

_COMMON = ("[default=1] pam_permit.so", "requisite pam_deny.so", "required pam_permit.so")
_OWN = "session required pam_limits.so\n"
_UBUNTU = {
    **_PEOPLE,
    "/etc/pam.d/common-session": _sessions(*_COMMON, "required pam_unix.so"),
    "/etc/pam.d/common-session-noninteractive": _sessions(*_COMMON, "required pam_unix.so"),
    "/etc/pam.d/sshd": f"@include common-session\n{_OWN}",
    "/etc/pam.d/login": f"{_OWN}@include common-session\n",
    "/etc/pam.d/su": f"{_OWN}@include common-session\n",
    "/etc/pam.d/su-l": "@include su\n",
    "/etc/pam.d/sudo": f"{_OWN}@include common-session-noninteractive\n",
    "/etc/pam.d/sudo-i": f"{_OWN}@include common-session\n",
    "/etc/pam.d/cron": f"{_OWN}@include common-session-noninteractive\n",
    "/etc/pam.d/runuser": f"{_OWN}session required pam_unix.so\n",
    "/etc/pam.d/runuser-l": "session include runuser\n",
    "/usr/lib/systemd/system/ssh.service": "[Service]\nExecStart=/usr/sbin/sshd -D\n",
    "/usr/lib/systemd/system/cron.service": "[Service]\nExecStart=/usr/sbin/cron -f\n",
}
_USER = f"session required pam_loginuid.so\n{_OWN}@include common-session-noninteractive\n"

TREES = {
    "Red Hat 8": {
        **_RED_HAT,
        "/etc/os-release": 'ID="rhel"\nID_LIKE="fedora"\nVERSION_ID="8.10"\n',
        "/etc/systemd/system.conf": _MANAGER,
        "/usr/lib/systemd/libsystemd-shared-239.so": "",
    },
    "Red Hat 9": {
        **_RED_HAT,
        "/etc/os-release": 'ID="rhel"\nID_LIKE="fedora"\nVERSION_ID="9.6"\n',
        "/etc/systemd/system.conf": _MANAGER,
        "/usr/lib64/systemd/libsystemd-shared-252.so": "",
    },
    "Red Hat 10": {
        **_RED_HAT,
        "/etc/os-release": 'ID="rhel"\nID_LIKE="centos fedora"\nVERSION_ID="10.0"\n',
        "/usr/lib/systemd/system.conf": _MANAGER,
        "/usr/lib/sysctl.d/10-map-count.conf": _MAP_COUNT,
        "/usr/lib64/systemd/libsystemd-shared-257.so": "",
    },
    "Ubuntu 22.04": {
        **_UBUNTU,
        "/etc/os-release": 'ID=ubuntu\nID_LIKE=debian\nVERSION_ID="22.04"\n',
        "/etc/pam.d/systemd-user": _USER,
        "/etc/systemd/system.conf": _MANAGER,
        "/usr/lib/systemd/libsystemd-shared-249.so": "",
    },
    "Ubuntu 24.04": {
        **_UBUNTU,
        "/etc/os-release": 'ID=ubuntu\nID_LIKE=debian\nVERSION_ID="24.04"\n',
        "/usr/lib/pam.d/systemd-user": _USER,
        "/etc/systemd/system.conf": _MANAGER,
        "/etc/sysctl.d/10-map-count.conf": _MAP_COUNT,
        "/usr/lib/x86_64-linux-gnu/systemd/libsystemd-shared-255.so": "",
    },
}


def plant(name: str, root: Path) -> Path:
    """Write the tree of a distribution into an empty folder."""
    for path, text in TREES[name].items():
        write(root, path, text)
    return root


def write(root: Path, path: str, text: str) -> None:
    """Write one file into a tree; an arrow stands for a link."""
    target = root / path.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    if text.startswith(LINK):
        target.symlink_to(text[len(LINK) :])
    else:
        target.write_text(text, encoding="latin-1")
