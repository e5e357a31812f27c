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

GATE = "/usr/local/bin/gate"
LIMITED = "/usr/local/bin/limited"
SUDOERS = "/etc/sudoers.d/site"
RECORD = "/etc/userdb/alice.user"
FORCED = "/etc/ssh/sshd_config.d/20-site.conf"


def script(path: str, *lines: str) -> str:
    """Return the script that makes a program of these lines."""
    return f"{write(path, '#!/bin/sh', *lines)}; chmod 0755 {path}"


def after_pam(name: str, path: str, line: str, make: str, undo: str, *where: str) -> Fault:
    """Return what changes limits where nobody looks, and what a person does about it."""
    return Fault(
        name, make, (Culprit(path, line),), where or shows("sshd"), touches=(path,), person=undo
    )


AFTER_PAM = [
    Fault(
        "shell: prlimit in /etc/profile.d",
        write("/etc/profile.d/cap.sh", "prlimit --nofile=1024:1024 --pid $$"),
        (Culprit("/etc/profile.d/cap.sh", "prlimit --nofile=1024:1024 --pid $$"),),
        (SHELLS,),
        touches=("/etc/profile.d/cap.sh",),
    ),
    after_pam(
        "shell: eval in /etc/profile.d", "/etc/profile.d/eval.sh", "eval",
        write("/etc/profile.d/eval.sh", "N=1024", 'eval "ulimit -n $N"'),
        "rm /etc/profile.d/eval.sh", SHELLS,
    ),
    after_pam(
        "shell: a login shell that is a script", LIMITED, "ulimit",
        script(LIMITED, "ulimit -n 1024", 'exec /bin/bash "$@"') + f"; usermod -s {LIMITED} alice",
        "usermod -s /bin/bash alice", SHELLS,
    ),
    after_pam(
        "pam: pam_exec runs prlimit (sshd)", stack("sshd"), "pam_exec.so",
        script(GATE, "prlimit --nofile=512:512 --pid $PPID")
        + f"; {append(stack('sshd'), f'session optional pam_exec.so {GATE}')}",
        "sed -i /pam_exec/d /etc/pam.d/sshd",
    ),
    after_pam(
        "sshd: ForceCommand lowers it", FORCED, "ForceCommand",
        write(FORCED, "ForceCommand ulimit -n 100; $SHELL") + "; systemctl restart ssh",
        f"rm {FORCED}; systemctl restart ssh",
    ),
    after_pam(
        "sshd: ForceCommand of a group", FORCED, "ForceCommand",
        f"{script(GATE, 'ulimit -n 100', 'exec /bin/bash')};"
        + write(FORCED, "Match Group team", f"  ForceCommand {GATE} -l") + "; systemctl restart ssh",
        f"rm {FORCED}; systemctl restart ssh",
    ),
    after_pam(
        "sshd: SetEnv has scripts read a file that lowers it", FORCED, "SetEnv",
        f"{write('/etc/low.sh', 'ulimit -n 100')};"
        + write(FORCED, "SetEnv BASH_ENV=/etc/low.sh") + "; systemctl restart ssh",
        f"rm {FORCED}; systemctl restart ssh",
    ),
    after_pam(
        "sshd: sshrc lowers the shell that comes after it", "/etc/ssh/sshrc", "prlimit",
        write("/etc/ssh/sshrc", "prlimit --nofile=100:100 --pid $PPID"), "rm /etc/ssh/sshrc",
    ),
    after_pam(
        "pam: pam_env has scripts read a file that lowers it", "/etc/environment", "BASH_ENV",
        f"{write('/etc/low.sh', 'ulimit -n 100')}; {append('/etc/environment', 'BASH_ENV=/etc/low.sh')}",
        "sed -i /BASH_ENV/d /etc/environment",
    ),
    after_pam(
        "shell: profile.d has scripts read a file that lowers it", "/etc/low.sh", "ulimit -n 100",
        f"{write('/etc/low.sh', 'ulimit -n 100')};"
        + write("/etc/profile.d/low.sh", "F=/etc/low.sh", "BASH_ENV=$F", "export BASH_ENV"),
        "rm /etc/profile.d/low.sh /etc/low.sh", SHELLS,
    ),
    after_pam(
        "pam: pam_exec in the stack of auth runs prlimit", "/etc/pam.d/su", "pam_exec",
        f"{script(LIMITED, 'prlimit --nofile=100:100 --pid $PPID')};"
        f" sed -i '1i auth optional pam_exec.so {LIMITED}' /etc/pam.d/su",
        "sed -i /pam_exec/d /etc/pam.d/su", *shows("su"),
    ),
    after_pam(
        "cron: the shell of its jobs is a script", "/etc/crontab", "SHELL",
        script(LIMITED, "ulimit -n 1024", 'exec /bin/sh "$@"')
        + f"; sed -i 's,^SHELL=.*,SHELL={LIMITED},' /etc/crontab; grep -q {LIMITED} /etc/crontab",
        "sed -i 's,^SHELL=.*,SHELL=/bin/sh,' /etc/crontab", *shows("cron"),
    ),
    after_pam(
        "shell: /etc/profile reads files by a variable", "/etc/site/low", "ulimit -n 1024",
        write("/etc/site/low", "ulimit -n 1024")
        + "; " + write("/etc/profile.d/site.sh", "D=/etc/site", "for f in $D/*; do . $f; done"),
        "rm -r /etc/site", SHELLS,
    ),
    after_pam(
        "pam: a record of the user holds limits", RECORD, "",
        write(RECORD, '{"userName":"alice","resourceLimits":{"RLIMIT_NOFILE":{"cur":99,"max":99}}}'),
        f"rm {RECORD}",
    ),
    after_pam(
        "sudo: another service of PAM", SUDOERS, "pam_service",
        write(SUDOERS, "Defaults pam_service=passwd"), f"rm {SUDOERS}", *shows("sudo"),
    ),
    after_pam(
        "sshd: ForceCommand of one user beats that of all", FORCED, "ulimit",
        write(FORCED, "ForceCommand none", "Match User alice", "  ForceCommand ulimit -n 100; $SHELL")
        + "; systemctl restart ssh",
        f"rm {FORCED}; systemctl restart ssh",
    ),
    after_pam(
        "sudo: rlimit_nofile in sudoers", SUDOERS, "rlimit_nofile",
        write(SUDOERS, "# of the vendor", 'Defaults rlimit_nofile="1024,2048"'),
        f"rm {SUDOERS}", *shows("sudo"),
    ),
    after_pam(
        "sudo: no session of PAM", SUDOERS, "pam_session",
        write(SUDOERS, "Defaults !pam_session"), f"rm {SUDOERS}", *shows("sudo"),
    ),
]  # fmt: skip

MORE = [
    *AFTER_PAM,
    Fault(
        "pam: its file is gone (cron)",
        f"rm {stack('cron')}",
        (Culprit(words="no PAM file|other"),),
        shows("cron"),
        touches=(stack("cron"),),
    ),
]
