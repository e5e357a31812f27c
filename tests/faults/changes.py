# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of a host that mean nothing to its policy: of others, of other keys, of nothing."""

from __future__ import annotations

from .fault import append, sed, write

LIMITS = "/etc/security/limits.d"
SYSCTL = "/etc/sysctl.d"
OURS = f"{LIMITS}/90-mlhost.conf"
JSON = "/etc/docker/daemon.json"
RELOAD = "systemctl daemon-reload"
RESTART = "systemctl reset-failed docker; systemctl restart docker"

OF_SESSIONS = {
    "a new user": "useradd -m bob",
    "limits of a user that is not here": write(f"{LIMITS}/95-zed.conf", "zed - nofile 1024"),
    "limits of a group without alice": "groupadd oracle; "
    + write(f"{LIMITS}/96-oracle.conf", "@oracle hard nofile 4096", "@oracle - memlock 64"),
    "limits of user ids that nobody has": write(f"{LIMITS}/97-ids.conf", "5000:5999 - nofile 10"),
    "limits of group ids that nobody has": write(f"{LIMITS}/97-gids.conf", "@7000: - nofile 10"),
    "another item": write(f"{LIMITS}/20-nproc.conf", "* soft nproc 65536"),
    "the wildcard in an earlier file": write(f"{LIMITS}/10-old.conf", "* soft nofile 1024"),
    "the wildcard in limits.conf": append("/etc/security/limits.conf", "* hard nofile 4096"),
    "higher limits of alice": write(f"{LIMITS}/98-alice.conf", "alice soft nofile 131072"),
    "the right limits once more": write(f"{LIMITS}/99-same.conf", "* soft nofile 65536"),
    "lines that are commented out": write(f"{LIMITS}/99-old.conf", "# alice - nofile 10", "#* - nofile 9"),
    "a backup with other limits": write(f"{OURS}.bak", "* - nofile 100"),
    "an editor's copy": write(f"{LIMITS}/90-mlhost.conf~", "* - nofile 100"),
    "what dpkg leaves": write(f"{LIMITS}/90-mlhost.conf.dpkg-old", "* - nofile 100"),
    "a limit of processes for the logins of one user": append(f"{LIMITS}/95-zed.conf", "zed - maxlogins 4"),
    "an empty file in limits.d": f": > {LIMITS}/50-empty.conf",
    "a note in limits.d": write(f"{LIMITS}/README", "Put files here."),
    "an unreadable line of another user": append(f"{LIMITS}/95-zed.conf", 'bob soft nofile "10"'),
    "limits of another user that are right": write(f"{LIMITS}/95-bob.conf", "bob soft nofile 131072"),
    "a folder in limits.d": f"mkdir {LIMITS}/old.d",
    "core files": append("/etc/security/limits.conf", "* soft core 0", "root hard core 100000"),
}  # fmt: skip

OF_LOGINS = {
    "another service's stack without pam_limits": write(
        "/etc/pam.d/backup", "@include common-account", "@include common-session"
    ),
    "a comment in sshd's stack": append("/etc/pam.d/sshd", "# session required pam_limits.so conf=/x"),
    "a module after pam_limits": append("/etc/pam.d/cron", "session sufficient pam_permit.so"),
    "pam_limits twice": append("/etc/pam.d/su", "session optional pam_limits.so"),
    "an account module that is sufficient": sed(
        "1iaccount sufficient pam_permit.so", "/etc/pam.d/login"
    ),
    "another option of sshd": write("/etc/ssh/sshd_config.d/50-motd.conf", "PrintMotd no")
    + "; systemctl restart ssh",
    "UsePAM no in a comment": write("/etc/ssh/sshd_config.d/60-old.conf", "# UsePAM no")
    + "; systemctl restart ssh",
    "a backup of sshd's configuration": write("/etc/ssh/sshd_config.bak", "UsePAM no"),
    "an ulimit that only reads": write("/etc/profile.d/show.sh", "ulimit -n > /dev/null"),
    "a shell that raises its soft limit": append("/home/alice/.bashrc", "ulimit -Sn 131072"),
    "an ulimit in a comment": append("/home/alice/.profile", "# ulimit -n 1024"),
    "a program of pam_exec that sets no limit": write("/usr/local/bin/tell", "#!/bin/sh", "logger $PAM_USER")
    + "; chmod 755 /usr/local/bin/tell; "
    + append("/etc/pam.d/sshd", "session optional pam_exec.so /usr/local/bin/tell"),
    "a command for those of sftp": write(
        "/etc/ssh/sshd_config.d/40-sftp.conf", "Match Group sftp", "  ForceCommand internal-sftp"
    ),
    "another setting of sudo": write("/etc/sudoers.d/lecture", "Defaults lecture=never, rlimit_core=default"),
    "a variable for all": append("/etc/environment", "OMP_NUM_THREADS=8"),
}  # fmt: skip

OF_KERNELS = {
    "another key": write(f"{SYSCTL}/50-net.conf", "net.core.somaxconn = 4096")
    + "; systemctl restart systemd-sysctl",
    "a lower value in an earlier file": write(f"{SYSCTL}/10-old.conf", "vm.max_map_count = 65530"),
    "a higher value in a later file": write(f"{SYSCTL}/99-more.conf", "vm.max_map_count = 1048576")
    + "; systemctl restart systemd-sysctl",
    "a backup of a sysctl file": write(f"{SYSCTL}/95-x.conf.bak", "vm.max_map_count = 1"),
    "a key that this kernel has not": write(f"{SYSCTL}/60-zfs.conf", "vm.no_such_key = 1"),
    "a line that is commented out": write(f"{SYSCTL}/96-old.conf", "# vm.max_map_count = 1"),
    "another running value": "sysctl -q -w vm.swappiness=10",
    "a running value above the file's": "sysctl -q -w vm.max_map_count=2097152",
    "a hidden file of a vendor": f"ln -s /dev/null {SYSCTL}/50-pid-max.conf",
}

OF_UNITS = {
    "another service with low limits": write(
        "/etc/systemd/system/other.service", "[Service]", "ExecStart=/usr/bin/sleep infinity",
        "LimitNOFILE=64", "LimitMEMLOCK=64k")
    + f"; {RELOAD}; systemctl start other",
    "a drop-in about something else": write(
        "/etc/systemd/system/trainer.service.d/10-nice.conf", "[Service]", "Nice=5")
    + f"; {RELOAD}; systemctl restart trainer",
    "a drop-in that gives more": write(
        "/etc/systemd/system/trainer.service.d/20-more.conf", "[Service]",
        "LimitNOFILE=131072:1048576")
    + f"; {RELOAD}; systemctl restart trainer",
    "a low default of the manager": write(
        "/etc/systemd/system.conf.d/50-low.conf", "[Manager]", "DefaultLimitNOFILE=1024:4096")
    + f"; {RELOAD}",
    "a low default for user services": write(
        "/etc/systemd/user.conf.d/50-low.conf", "[Manager]", "DefaultLimitNOFILE=1024:2048"),
    "a file that is not a drop-in": write(
        "/etc/systemd/system/trainer.service.d/notes.txt", "LimitNOFILE=1"),
    "an instance of a template": write(
        "/etc/systemd/system/many@.service", "[Service]", "ExecStart=/usr/bin/sleep infinity",
        "LimitNOFILE=100")
    + f"; {RELOAD}; systemctl start many@one",
}  # fmt: skip

OF_DOCKER = {
    "another key of daemon.json": sed('1s/{/{"debug": false, "labels": ["a=b"],/', JSON)
    + f"; {RESTART}",
    "a container as it shall be": "docker run -d --name job tiny /busybox sleep 9999",
    "an image that was removed": "tar -C /bin -c busybox | docker import - gone; docker rmi gone",
    "a stopped container with low limits": "docker run --name done --ulimit nofile=64 tiny /busybox true",
    "a drop-in of docker.service": write(
        "/etc/systemd/system/docker.service.d/10-slow.conf", "[Service]", "TimeoutStartSec=300")
    + f"; {RELOAD}",
    "a client's configuration": write("/root/.docker/config.json", "{}"),
    "a backup of daemon.json": f"cp {JSON} {JSON}.bak; sed -i s/65536/64/ {JSON}.bak",
    "an old job of another user": "su bob -c 'setsid sleep 9999 > /dev/null 2>&1 &'; sleep 0.2",
}  # fmt: skip

CHANGES = {**OF_SESSIONS, **OF_LOGINS, **OF_KERNELS, **OF_UNITS, **OF_DOCKER}
assert len(CHANGES) >= 50
