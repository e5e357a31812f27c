"""Every known way to lock a host by limits or sysctls: the plain files that do it, who is lost,
and what a run says that refuses to do it."""

# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any, NamedTuple

from tests.host.upstream_pam import INSTALL, UNINSTALL

CONF = "/etc/security/limits.d/60-lockout.conf"
CLOSED = "closed by remote host|exec request failed|PTY allocation request failed"
# sshd's exit status where PAM opens no session, and what su says then.
PAM_REFUSES = "^exit status 254|su: cannot open session: Permission denied"
PAM_FAILS = "^exit status 254|su: cannot open session: Error in service module"


class Lockout(NamedTuple):
    """One way to lock a host.

    ``lost`` are the logins that fail under ``make``, each ``way user``; ``shows`` is in what they
    say. ``rule`` or ``kernel`` is the policy that asks for it; without either, it is a state of
    the host, in which any policy is refused. ``says`` is the whole refusal, a pattern. ``bare``
    commands are shell builtins, because no process could be started. ``own_guest``: what the host
    does not survive. ``share``: whether `make test` shows it.
    """

    name: str
    make: str
    unmake: str
    lost: tuple[str, ...]
    shows: str
    says: str
    rule: dict[str, Any] | None = None
    kernel: dict[str, Any] | None = None
    bare: bool = False
    own_guest: bool = False
    share: bool = True


def limit(
    name: str,
    item: str,
    value: int | str,
    says: str,
    *,
    users: tuple[str, ...] = ("alice",),
    stated: int | str | None = None,
    lost: tuple[str, ...] = (),
    shows: str = CLOSED,
    make: str = "true",
    unmake: str = "true",
    share: bool = True,
) -> Lockout:
    """Return a limit that is stated in a plain file.

    :param value: As limits.conf(5) has it.
    :param stated: As the policy has it, where that differs.
    """
    lines = " ".join(f"'{user} - {item} {value}'" for user in users)
    rule = {"users": list(users), "limits": {item: value if stated is None else stated}}
    return Lockout(
        name,
        f"printf '%s\\n' {lines} > {CONF} && {make}",
        f"rm {CONF} && {unmake}",
        lost or tuple(f"ssh {user}" for user in users),
        shows,
        rf"sessions\[\d+\]\.limits\.{item}: {says}",
        rule=rule,
        share=share,
    )


def sysctl(
    key: str,
    value: int | str,
    says: str,
    lost: tuple[str, ...] = ("ssh root", "ssh alice"),
    shows: str = "^exit status 255|no answer",
    *,
    asked: dict[str, Any] | int | None = None,
    own_guest: bool = False,
    share: bool = True,
) -> Lockout:
    """Return a kernel value that is written into /proc/sys."""
    path = f"/proc/sys/{key.replace('.', '/')}"
    return Lockout(
        f"{key} {value}",
        f'before=$(<{path}); echo "{value}" > {path}',
        f'echo "$before" > {path}',
        lost,
        shows,
        rf"kernel\.{key}: {says}",
        kernel={key: {"exact": value} if asked is None else asked},
        bare=True,
        own_guest=own_guest,
        share=share,
    )


EVERYONE = ("root", "alice")
ALL_WAYS = ("ssh root", "ssh alice", "su root", "su alice")
SMALL = "{0} is too little to log in: .*; {1} or more is accepted"
REFUSED_OR_IGNORED = (
    "so logins would be refused or keep their old limit; {} or raise kernel.fs.nr_open"
)

OF_LIMITS = [
    limit("a nofile of 4", "nofile", 4, SMALL.format(4, 64), users=EVERYONE),
    limit("an nproc of 1", "nproc", 1, SMALL.format(1, 32)),
    limit(
        "an nproc below what the user runs",
        "nproc",
        40,
        r"40 is too little for alice, who runs \d+ tasks now; \d+ or more is accepted",
        make="{ for i in $(seq 45); do setpriv --reuid alice sleep 300 & done; } 2>/dev/null",
        unmake="pkill -u alice -x sleep",
    ),
    limit("16 MiB of address space", "as", 16384, SMALL.format("16MiB", "128MiB"),
          users=EVERYONE, stated="16MiB"),
    limit("1 MiB of data", "data", 1024, SMALL.format("1MiB", "64MiB"), stated="1MiB"),
    limit("64 KiB of stack", "stack", 64, SMALL.format("64KiB", "1MiB"), stated="64KiB",
          lost=("tty alice",), shows=""),
    limit("files of 0 bytes for root", "fsize", 0, SMALL.format("0B", "1MiB"), users=("root",),
          lost=("tty root",), shows=""),
    limit(
        "files of root smaller than the record of logins",
        "fsize",
        2048,
        r"2MiB is less than /var/log/wtmp holds \(4194304 bytes\) and 1MiB more,"
        " so a login of root ends when it is recorded",
        users=("root",),
        stated="2MiB",
        lost=("tty root",),
        shows="",
        make="cp -a /var/log/wtmp /root/ && truncate -s 4M /var/log/wtmp",
        unmake="mv /root/wtmp /var/log/wtmp",
        share=False,
    ),
    limit("no processor time", "cpu", 0, SMALL.format("0s", "60s")),
    limit("no logins of a user", "maxlogins", 0, SMALL.format(0, 1), shows="too many logins"),
    limit("no logins at all", "maxsyslogins", 0, SMALL.format(0, 1), shows="too many logins",
          share=False),
    limit(
        "no new privileges for whoever manages the host",
        "nonewprivs",
        1,
        "1 takes sudo and su from alice, through whom this host is managed",
        lost=("sudo alice",),
        shows="prevents sudo from running as root",
    ),
    limit(
        "no new privileges for everyone",
        "nonewprivs",
        1,
        r"1 for '\*' takes sudo and su from everyone but root;"
        " users and groups by name are accepted",
        users=("*",),
        lost=("sudo alice",),
        shows="prevents sudo from running as root",
        share=False,
    ),
    limit("a chroot that is not there", "chroot", "/srv/gone",
          "/srv/gone is not a directory with a /bin/sh in it, so every login would end",
          users=EVERYONE, lost=ALL_WAYS, shows=PAM_REFUSES),
    limit("a chroot without a shell", "chroot", "/media",
          "/media is not a directory with a /bin/sh in it, so every login would end",
          shows="/bin/bash: No such file", share=False),
    limit(
        "a nofile above fs.nr_open, with upstream's PAM",
        "nofile",
        2000000,
        "soft 2000000 is above fs.nr_open \\d+, "
        + REFUSED_OR_IGNORED.format("lower it"),
        users=EVERYONE,
        lost=ALL_WAYS,
        shows=PAM_REFUSES,
        make=INSTALL,
        unmake=UNINSTALL,
    ),
    limit(
        "an unlimited nofile, with upstream's PAM",
        "nofile",
        "unlimited",
        "soft 'unlimited' is above fs.nr_open, so logins would be refused or keep their old"
        " limit; a number is accepted",
        users=EVERYONE,
        lost=ALL_WAYS,
        shows=PAM_REFUSES,
        make=INSTALL,
        unmake=UNINSTALL,
    ),
]  # fmt: skip

NO_SESSION = "so no session opens here, not even root's"
LINK = "/etc/security/limits.d/70-gone.conf"

OF_HOSTS = [
    Lockout(
        "a missing limits.conf",
        "mv /etc/security/limits.conf /root/",
        "mv /root/limits.conf /etc/security/",
        ALL_WAYS,
        PAM_FAILS,
        f"/etc/security/limits.conf: is missing, {NO_SESSION}",
    ),
    Lockout(
        "a link in limits.d that leads nowhere",
        f"ln -s /nfs/limits {LINK}",
        f"rm {LINK}",
        ALL_WAYS,
        PAM_FAILS,
        f"{LINK}: is a link to /nfs/limits, which cannot be opened, {NO_SESSION}",
    ),
    Lockout(
        "a named pipe in limits.d",
        f"mkfifo {LINK}",
        f"timeout 1 sh -c ': > {LINK}'; rm {LINK}",  # Whoever waits may go on.
        ("ssh alice",),
        "no answer",
        f"{LINK}: is a named pipe, on which every login waits, {NO_SESSION}",
        share=False,
    ),
    Lockout(
        "a conf= file of PAM that is missing",
        "cp -a /etc/pam.d/sshd /root/ && sed -i 's,pam_limits.so,& conf=/root/gone,'"
        " /etc/pam.d/sshd",
        "mv /root/sshd /etc/pam.d/sshd",
        ("ssh root", "ssh alice"),
        PAM_REFUSES,
        r"/etc/pam\.d/sshd:\d+: conf=/root/gone is missing, so no session of sshd opens here",
    ),
]

TASKS = (
    r"too low: \d+ tasks run now, and no more could start, not even root's; \d+ or more is accepted"
)

OF_KERNELS = [
    sysctl("kernel.pid_max", 301, f"301 is {TASKS}"),
    sysctl("kernel.threads-max", 64, f"64 is {TASKS}"),
    sysctl(
        "vm.max_map_count",
        100,
        "100 is too low: sshd does not start with 200, and no limit exempts root;"
        " 4096 or more is accepted",
    ),
    sysctl(
        "fs.file-max",
        100,
        r"100 is too low: \d+ files are open now, and sshd could open no more;"
        r" \d+ or more is accepted",
        lost=("ssh alice",),
        shows="Permission denied|no answer|closed",
    ),
    sysctl(
        "kernel.pty.max",
        0,
        "0 is too low: a login at a terminal needs one; 64 or more is accepted",
        lost=("tty root", "tty alice"),
        shows="PTY allocation request failed",
    ),
    sysctl(
        "fs.epoll.max_user_watches",
        0,
        "0 is too low: Docker dies without; 4096 or more is accepted",
        lost=("docker root",),
        shows="runtime",
        share=False,
    ),
    Lockout(
        "fs.nr_open below a stated nofile, with upstream's PAM",
        f"printf '%s - nofile 65536\\n' root alice > {CONF}; {INSTALL}; echo 4096 > /proc/sys/fs/nr_open",
        f"echo 1048576 > /proc/sys/fs/nr_open; {UNINSTALL}; rm {CONF}",
        ALL_WAYS,
        PAM_REFUSES,
        r"kernel\.fs\.nr_open: 4096 is too low: \S+ \(pid \d+\) has a nofile of 1048576, which"
        r" setrlimit\(2\) would refuse; 1048576 or more is accepted",
        kernel={"fs.nr_open": {"exact": 4096}},
    ),
    sysctl(
        "vm.nr_hugepages",
        100000,
        r"100000 is too high: pages of 2097152 bytes would take the memory that logins need;"
        r" \d+ or less is accepted",
        lost=("memory root",),
        shows="starved|no answer",
        asked=100000,
        own_guest=True,
        share=False,
    ),
    sysctl(
        "vm.min_free_kbytes",
        900000,
        r"900000 is too high: the kernel kills processes until this much is free;"
        r" \d+ or less is accepted",
        shows="^exit status 255|no answer",
        asked=900000,
        own_guest=True,
        share=False,
    ),
    Lockout(
        "strict accounting of memory that is given out already",
        "echo 10 > /proc/sys/vm/overcommit_ratio; echo 2 > /proc/sys/vm/overcommit_memory",
        "true",
        ("ssh root", "ssh alice"),
        "^exit status 255|no answer",
        r"kernel\.vm\.overcommit_ratio: lets processes have \d+MiB in all, of which \d+MiB are"
        r" taken, so logins could not start; \d+MiB or more is accepted",
        kernel={"vm.overcommit_ratio": {"exact": 10}, "vm.overcommit_memory": {"exact": 2}},
        bare=True,
        own_guest=True,
        share=False,
    ),
]

LOCKOUTS = [*OF_LIMITS, *OF_HOSTS, *OF_KERNELS]
