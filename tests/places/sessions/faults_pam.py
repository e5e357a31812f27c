# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of pam.d(5) and of sshd_config(5): the limits files are right, and nobody reads them."""

from __future__ import annotations

from tests.faults.fault import Culprit, Fault, append, sed, session, write


def stack(service: str) -> str:
    return f"/etc/pam.d/{service}"


def shows(service: str) -> tuple[str, ...]:
    return session("nofile", service, bound="soft")


def changed(name: str, service: str, script: str, line: str, words: str, before: str = "") -> Fault:
    """Return an edit of one service's stack.

    :param line: What the line at fault holds after the edit; nothing where there is none.
    :param before: What else must be there, made first.
    """
    path = stack(service)
    make = f"{before}; {sed(script, path)}" if before else sed(script, path)
    return Fault(
        f"pam: {name} ({service})",
        make,
        (Culprit(path, line, words),),
        shows(service),
        touches=(path,),
    )


def commented(service: str) -> Fault:
    return changed(
        "pam_limits is commented out", service, "/pam_limits.so/s/^/# /", "", "pam_limits|limits"
    )


def elsewhere(service: str) -> Fault:
    """Return a stack that reads another file, with a lower limit for all."""
    other = f"/etc/security/{service}.conf"
    fault = changed(
        "conf= names another file",
        service,
        f"s,pam_limits.so,& conf={other},",
        f"conf={other}",
        "conf|file|limits",
        write(other, "* - nofile 4096", "root - nofile 4096"),
    )
    return fault._replace(
        culprits=(
            *fault.culprits,
            Culprit(other, "* - nofile 4096"),
            Culprit(other, "root - nofile 4096"),
        ),
        touches=(*fault.touches, other),
    )


def before_limits(name: str, service: str, line: str, words: str) -> Fault:
    """Return a line before that of pam_limits, after which it is not called."""
    return changed(name, service, f"/pam_limits.so/i{line}", line, words)


STACKS = [
    *map(commented, ("sshd", "cron", "login")),
    changed("pam_limits is missing", "sshd", "/pam_limits.so/d", "", "pam_limits|limits"),
    changed("pam_limits is missing", "cron", "/pam_limits.so/d", "", "pam_limits|limits"),
    *map(elsewhere, ("sshd", "su", "sudo", "cron")),
    changed(
        "an optional line whose file is missing", "sshd",
        "s,required *pam_limits.so,optional pam_limits.so conf=/etc/security/gone.conf,",
        "conf=/etc/security/gone.conf", "gone|missing|conf",
    ),
    changed(
        "a line of the wrong kind", "sshd", "s/^session *required *pam_limits.so/auth required pam_limits.so/",
        "", "pam_limits|limits",
    ),
    changed(
        "a line of a module that is misspelled", "cron",
        "s/^session *required *pam_limits.so/-session optional pam_limit.so/", "",
        "pam_limits|limits",
    ),
    before_limits("sufficient before it", "cron", "session sufficient pam_permit.so",
                  "sufficient|before|ends|reach|stop"),
    before_limits("sufficient before it", "sshd", "session sufficient pam_permit.so",
                  "sufficient|before|ends|reach|stop"),
    before_limits("a jump over it", "sshd", "session [success=1 default=ignore] pam_permit.so",
                  "jump|skip|success=1|reach"),
    before_limits("a jump for one user", "cron",
                  "session [success=1 default=ignore] pam_succeed_if.so quiet user = alice",
                  "jump|skip|success=1|reach"),
    before_limits("an end for ordinary users", "login",
                  "session [success=done default=ignore] pam_succeed_if.so quiet uid >= 1000",
                  "done|before|ends|reach|stop"),
    Fault(
        "pam: a stack that includes the common one alone (cron)",
        write(stack("cron"), "@include common-auth", "@include common-account",
              "@include common-session-noninteractive"),
        (Culprit(stack("cron"), "", "pam_limits|limits"),),
        shows("cron"),
        touches=(stack("cron"),),
    ),
    Fault(
        "pam: an early end in what is included (common-session-noninteractive)",
        "sed -i '1isession sufficient pam_permit.so' /etc/pam.d/common-session-noninteractive",
        (Culprit("/etc/pam.d/common-session-noninteractive", "session sufficient pam_permit.so",
                 "sufficient|before|ends|reach|stop"),),
        shows("cron"),
        touches=("/etc/pam.d/common-session-noninteractive",),
    ),
]  # fmt: skip

# alice has no password: without PAM, sshd takes that for a locked account.
UNLOCK = "usermod -p '*' alice"
MAIN = "/etc/ssh/sshd_config"
DROP_IN = "/etc/ssh/sshd_config.d/10-site.conf"

SSHD = [
    Fault(
        "sshd: UsePAM no in sshd_config",
        f"{UNLOCK}; {sed('s/^UsePAM yes/UsePAM no/', MAIN)}; systemctl restart ssh",
        (Culprit(MAIN, "UsePAM no", "UsePAM"),),
        (*shows("sshd"), *session("nofile", "sshd", user="root")),
        touches=(MAIN,),
    ),
    Fault(
        "sshd: UsePAM no in sshd_config.d",
        f"{UNLOCK}; {write(DROP_IN, '# hardened', 'usepam no')}; systemctl restart ssh",
        (Culprit(DROP_IN, "usepam no", "UsePAM"),),
        (*shows("sshd"), *session("nofile", "sshd", user="root")),
        touches=(DROP_IN,),
    ),
]

HOME = "/home/alice"
SHELLS = "^(session|shell|login):.*alice.* nofile "

OF_SHELLS = [
    Fault(
        "shell: /etc/profile.d lowers it",
        write("/etc/profile.d/limits.sh", "# keep the host calm", "ulimit -n 1024"),
        (Culprit("/etc/profile.d/limits.sh", "ulimit -n 1024", "ulimit|shell|lower"),),
        (SHELLS,),
        touches=("/etc/profile.d/limits.sh",),
    ),
    Fault(
        "shell: ~/.bashrc lowers it",
        f"sed -i '1iulimit -Sn 4096' {HOME}/.bashrc",
        (Culprit(f"{HOME}/.bashrc", "ulimit -Sn 4096", "ulimit|shell|lower"),),
        (SHELLS,),
        touches=(f"{HOME}/.bashrc",),
    ),
    Fault(
        "shell: ~/.profile lowers it",
        append(f"{HOME}/.profile", "ulimit -S -n 2048"),
        (Culprit(f"{HOME}/.profile", "ulimit -S -n 2048", "ulimit|shell|lower"),),
        (SHELLS,),
        touches=(f"{HOME}/.profile",),
    ),
    Fault(
        "shell: /etc/profile lowers memlock",
        append("/etc/profile", "ulimit -l 65536"),
        (Culprit("/etc/profile", "ulimit -l 65536", "ulimit|shell|lower"),),
        (SHELLS.replace("nofile", "memlock"),),
        touches=("/etc/profile",),
    ),
]

FAULTS = [*STACKS, *SSHD, *OF_SHELLS]

MORE = [
    Fault(
        "pam: its file is gone (cron)",
        f"rm {stack('cron')}",
        (Culprit(words="no PAM file|other"),),
        shows("cron"),
        touches=(stack("cron"),),
    ),
]
