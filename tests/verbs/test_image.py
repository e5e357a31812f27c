# SPDX-License-Identifier: GPL-3.0-or-later
"""An image is judged by its files alone: nothing passes, and what they are sure to lack fails."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from mlhost_limits.check_host import CheckResult, check_host
from mlhost_limits.cli import FALLS_SHORT, REFUSED, main
from mlhost_limits.core.finding import Finding
from mlhost_limits.core.policy import CheckOptions, ProvisionOptions
from mlhost_limits.provision import find_foretold
from mlhost_limits.schema import load_policy

LIMITS_CONF = "/etc/security/limits.conf"
OURS = "/etc/security/limits.d/90-mlhost.conf"
GOOD = (
    "* soft nofile 65536\n* hard nofile 1048576\n* - memlock unlimited\n"
    "root soft nofile 65536\nroot hard nofile 1048576\nroot - memlock unlimited\n"
)
FILES = {
    "/etc/os-release": "ID=debian\nVERSION_ID=12\n",
    "/etc/passwd": "root:x:0:0::/:/bin/sh\nalice:x:1001:1001::/:/bin/sh\n",
    "/etc/group": "root:x:0:\nalice:x:1001:\n",
    "/etc/security/limits.conf": "",
    "/etc/pam.d/sshd": "session required pam_limits.so\n",
    "/etc/ssh/sshd_config": "Include /etc/ssh/sshd_config.d/*.conf\n",
    "/etc/ssh/sshd_config.d/a.conf": "UsePAM yes\n",
    "/usr/lib/systemd/systemd-sysctl": "",
    "/usr/lib/x86_64-linux-gnu/systemd/libsystemd-shared-252.so": "",
    "/usr/bin/dockerd": "",
    "/usr/bin/podman": "",
}
SIZE = 8 << 30


def lay_out(tree: Path, files: dict[str, str]) -> None:
    gone = files.get("-")
    for path, text in {**FILES, **files}.items():
        if path in ("-", gone):
            continue
        target = tree / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        target.chmod(0o755 if text.startswith("#!") else 0o644)


def check(tree: Path, policy: Mapping[str, object], files: dict[str, str]) -> CheckResult:
    lay_out(tree, files)
    options = CheckOptions(services=("sshd",), root=str(tree))
    return check_host(load_policy(policy, "none"), options)


def tell(finding: Finding) -> tuple[str, str, str]:
    """Return what is told of a finding: its status, what a boot gives, and why."""
    codes = ",".join(cause.code for cause in finding.causes)
    return finding.status, finding.outlook.after_boot, codes or finding.observation.reason


def users(*names: str, **limits: object) -> dict[str, object]:
    return {"sessions": [{"users": list(names), "limits": limits}]}


def units(**rules: object) -> dict[str, object]:
    return {"services": {"units": {f"{name}.service": rule for name, rule in rules.items()}}}


DECIDES = "so the first boot decides"
NOFILE = {"nofile": {"soft": 65536}}
HUGE = {"nofile": {"soft": 2000000}}
MANY, NR_OPEN = "root - nofile 2000000\n", "/etc/sysctl.d/50-a.conf"
SCRIPT = "/etc/rc.d/rc.local"
IF_RAISED = "#!/bin/sh\nif test -e /srv; then sysctl -w fs.nr_open=3000000; fi\n"
MAY_RAISE = '/etc/rc.local:2 "if test -e /srv; then sysctl -w fs.nr_open=3000000; fi"'
COMPUTED = "#!/bin/sh\nsysctl -w fs.nr_open=$N\n"
MANY_OF_PODMAN = '[containers]\ndefault_ulimits = ["nofile=2000000:2000000"]\n'
MAPS, STATES = "vm.max_map_count", "/etc/sysctl.d/90-a.conf"
STATED = {STATES: f"{MAPS} = 262144\n"}
OF_PACKAGES = "/usr/lib/systemd/system"
LOCAL = "/usr/local/lib/systemd/system"
APPLIES = {
    f"{OF_PACKAGES}/systemd-sysctl.service": (
        "[Unit]\nConditionPathIsReadWrite=/proc/sys/\n"
        "[Service]\nExecStart=/usr/lib/systemd/systemd-sysctl\n"
    )
}
APPLIER_D = "/etc/systemd/system/systemd-sysctl.service.d/x.conf"
RUNS_TRUE = "[Service]\nExecStart=\nExecStart=/bin/true\n"
LOWERS = f"[Service]\nType=oneshot\nExecStart=/sbin/sysctl -w {MAPS}=65530\n"
REMOUNTS = "[Service]\nType=oneshot\nExecStart=/bin/mount -o remount,size=1g /dev/shm\n"
RED_HAT = {"/etc/os-release": "ID=rhel\nVERSION_ID=9.4\n"}
OWN = "/etc/security/own.conf"
OWN_FILE = f"session required pam_limits.so conf={OWN}\n"
UNIT_NOFILE = {"nofile": {"soft": 65536, "hard": 131072}}
A_UNIT, SYSTEM_CONF = "/etc/systemd/system/a.service", "/etc/systemd/system.conf"
DAEMON, DOCKER = "/etc/docker/daemon.json", "/etc/systemd/system/docker.service"
SHM = {"containers": {"docker": {"shm_size": "8GiB"}}}
ENOUGH = '{"default-shm-size": "8G"}'
SSHD_STACK, ACCESS = "/etc/pam.d/sshd", "/etc/security/access.conf"
GUARDED = {
    SSHD_STACK: (
        "session required pam_limits.so\naccount required pam_nologin.so\n"
        "account requisite pam_access.so\n"
    )
}
RECORD = "/etc/userdb/carol.user"
LIMITED = '{"uid": 1500, "resourceLimits": {"RLIMIT_NOFILE": {"cur": 512, "max": 512}}}'
OPENS_SYSTEMD = {
    "/etc/pam.d/sshd": "session required pam_limits.so\nsession optional pam_systemd.so\n"
}
LESS = "hard nofile 4096"
CASES: dict[str, tuple[dict[str, Any], dict[str, str], tuple[str, str, str]]] = {
    "a limit for root": (
        users("root", **NOFILE), {OURS: GOOD},
        ("unknown", "pass", f"predicted nofile soft 65536 by {OURS}:4"),
    ),
    "a limit for everyone, whom nobody has met": (
        users("*", **NOFILE), {OURS: GOOD},
        ("unknown", "pass", f"predicted nofile soft 65536 by {OURS}:1"),
    ),
    "a user of the image": (
        users("alice", **NOFILE), {OURS: GOOD + "alice soft nofile 512\n"},
        ("fail", "fail", "pam-user-beats-wildcard"),
    ),
    "a limit below the fs.nr_open that a boot will have": (
        users("root", **HUGE), {OURS: MANY, NR_OPEN: "fs.nr_open = 4000000\n"},
        ("unknown", "pass", f"predicted nofile soft 2000000 by {OURS}:1"),
    ),
    "a limit above the fs.nr_open that it will have": (
        users("root", **HUGE), {OURS: MANY, NR_OPEN: "fs.nr_open = 1999999\n"},
        ("fail", "fail", "pam-above-nr-open"),
    ),
    "a limit that ends the login, if a script does not raise fs.nr_open": (
        users("root", **HUGE),
        {OURS: MANY, **RED_HAT, NR_OPEN: "fs.nr_open = 1999999\n", SCRIPT: IF_RAISED},
        ("unknown", "unknown",
         f'{OURS}:1 "root - nofile 2000000" states more than 1999999, the least that fs.nr_open'
         f" may be: where it is no more, PAM refuses the login, {DECIDES}"),
    ),
    "a limit that ends the login": (
        users("root", memlock=1), {OURS: MANY, **RED_HAT, NR_OPEN: "fs.nr_open = 1999999\n"},
        ("fail", "fail", "pam-above-nr-open"),
    ),
    "a call of pam_limits whose file is missing": (
        users("root", **NOFILE), {OURS: GOOD, SSHD_STACK: OWN_FILE},
        ("fail", "fail", "pam-limits-fails"),
    ),
    "such a call that the stack does not mind": (
        users("root", **NOFILE),
        {OURS: GOOD, SSHD_STACK: OWN_FILE.replace("required", "optional")},
        ("unknown", "unknown", f'{SSHD_STACK}:1 "session optional pam_limits.so conf={OWN}" fails, '
         f"since {OWN} is missing, and the stack goes on without it, {DECIDES}"),
    ),
    "such a call before one that is right": (
        users("root", **NOFILE),
        {OURS: GOOD, SSHD_STACK: f"{OWN_FILE}session required pam_limits.so\n"},
        ("fail", "fail", "pam-limits-fails"),
    ),
    "a call whose file states it, before one that starts over": (
        users("root", **NOFILE),
        {OWN: GOOD, SSHD_STACK: f"{OWN_FILE}session required pam_limits.so\n"},
        ("fail", "fail", "pam-not-stated"),
    ),
    "a call whose file states it, before one that takes it over": (
        users("root", **NOFILE),
        {OWN: GOOD, SSHD_STACK: f"{OWN_FILE}session required pam_limits.so\n", **RED_HAT},
        ("unknown", "pass", "predicted nofile soft 65536"),
    ),
    "a call whose file ends the login, before one that is right": (
        users("root", **NOFILE),
        {OWN: MANY, OURS: GOOD, SSHD_STACK: f"{OWN_FILE}session required pam_limits.so\n",
         **RED_HAT, NR_OPEN: "fs.nr_open = 1999999\n"},
        ("unknown", "unknown",
         f'{OWN}:1 "root - nofile 2000000" states more than 1999999, the least that fs.nr_open'
         f" may be: where it is no more, PAM refuses the login, {DECIDES}"),
    ),
    "a call that reads no file of limits.d": (
        users("root", **NOFILE),
        {OURS: GOOD, SSHD_STACK: OWN_FILE.replace(OWN, "/etc/security/limits.conf")},
        ("fail", "fail", "pam-limits-elsewhere"),
    ),
    "a user whom it lacks": (
        users("bob", **NOFILE), {}, ("unknown", "unknown", f"has no user 'bob', {DECIDES}"),
    ),
    "a user whom only a record states": (
        users("carol", **NOFILE), {OURS: GOOD, RECORD: '{"userName": "carol", "uid": 1500}'},
        ("unknown", "pass", f"predicted nofile soft 65536 by {OURS}:1"),
    ),
    "a user whose group only a record states": (
        users("carol", **NOFILE),
        {OURS: GOOD + f"@ml {LESS}\n", RECORD: '{"uid": 1500, "memberOf": ["ml"]}'},
        ("fail", "fail", "pam-hard-clamps-soft"),
    ),
    "a user whose record holds limits": (
        users("carol", **NOFILE), {OURS: GOOD, RECORD: LIMITED, **OPENS_SYSTEMD},
        ("unknown", "unknown", f'{RECORD} "resourceLimits" may change it after PAM, {DECIDES}'),
    ),
    "a user whose record says nothing": (
        users("carol", **NOFILE), {OURS: GOOD, RECORD: "[]"},
        ("unknown", "unknown", f"{RECORD}: is not a record of 'carol' with a uid, {DECIDES}"),
    ),
    "what depends on the start": (
        users("root", memlock="64MiB"), {},
        ("unknown", "unknown", f"no limits file states memlock soft, {DECIDES}"),
    ),
    "what no start can give": (users("root", **NOFILE), {}, ("fail", "fail", "pam-not-stated")),
    "sshd without PAM": (
        users("root", **NOFILE), {OURS: GOOD, "/etc/ssh/sshd_config.d/a.conf": ""},
        ("unknown", "unknown",
         "/etc/ssh/sshd_config: UsePAM is not set, so that no limits file counts for sshd's sessions"
         f", {DECIDES}"),
    ),
    "a shell's startup file that lowers it": (
        users("root", **NOFILE), {OURS: GOOD, "/etc/profile.d/low.sh": "ulimit -n 1024\n"},
        ("unknown", "unknown", '/etc/profile.d/low.sh:1 "ulimit -n 1024" may change it after PAM, '
         f"{DECIDES}"),
    ),
    "a unit whose script lowers it": (
        units(a=UNIT_NOFILE),
        {A_UNIT: "[Service]\nExecStart=/opt/a\nLimitNOFILE=131072\n",
         "/opt/a": "#!/bin/sh\nulimit -n $MOST\n"},
        ("unknown", "unknown", '/opt/a:2 "ulimit -n $MOST" may set the limit after systemd has, each '
         f"time that a.service starts, {DECIDES}"),
    ),
    "sshd whose options keep PAM out": (
        users("root", **NOFILE),
        {OURS: GOOD, "/etc/sysconfig/sshd": '# -oUsePAM=yes\nOPTIONS="-oUsePAM=no"\n'},
        ("unknown", "unknown", '/etc/sysconfig/sshd:2 "-o UsePAM=no" keeps PAM, and with it every '
         f"limits file, out of sshd's sessions, {DECIDES}"),
    ),
    "a file that keeps everybody but root out": (
        users("alice", **NOFILE), {OURS: GOOD, "/etc/nologin": "", **GUARDED},
        ("unknown", "unknown", f'/etc/nologin keeps alice out, by {SSHD_STACK}:2 "account required '
         f'pam_nologin.so", {DECIDES}'),
    ),
    "a user with too little who is kept out": (
        users("alice", **NOFILE), {OURS: "* hard nofile 9\n", "/etc/nologin": "", **GUARDED},
        ("fail", "fail", "pam-hard-clamps-soft"),
    ),
    "a file that keeps root in": (
        users("root", **NOFILE), {OURS: GOOD, "/etc/nologin": "", **GUARDED},
        ("unknown", "pass", f"predicted nofile soft 65536 by {OURS}:4"),
    ),
    "a file that no stack asks for": (
        users("alice", **NOFILE), {OURS: GOOD, "/etc/nologin": ""},
        ("unknown", "pass", f"predicted nofile soft 65536 by {OURS}:1"),
    ),
    "a line of access.conf against a user": (
        users("alice", **NOFILE), {OURS: GOOD, ACCESS: "# x\n-:ALL EXCEPT root:ALL\n", **GUARDED},
        ("unknown", "unknown", f'{ACCESS}:2 "-:ALL EXCEPT root:ALL" keeps alice out, by '
         f'{SSHD_STACK}:3 "account requisite pam_access.so", {DECIDES}'),
    ),
    "access.conf and who stands for others": (
        users("*", **NOFILE), {OURS: GOOD, ACCESS: "-:ALL EXCEPT (ml):ALL\n", **GUARDED},
        ("unknown", "pass", f"predicted nofile soft 65536 by {OURS}:1"),
    ),
    "a distribution whose pam_limits nobody knows": (
        users("root", **NOFILE), {OURS: GOOD, "/etc/os-release": "ID=azurelinux\nVERSION_ID=3.0\n"},
        ("unknown", "unknown", "pam_limits.so is not here to ask, and how this distribution builds "
         f"it is not known, {DECIDES}"),
    ),
    "a unit whose drop-in opens a session": (
        units(a=UNIT_NOFILE),
        {A_UNIT: "[Service]\nLimitNOFILE=131072\n", f"{A_UNIT}.d/a.conf": "[Service]\nPAMName=su\n"},
        ("unknown", "unknown", f"PAM can change it, {DECIDES}"),
    ),
    "a unit that opens none": (
        units(a=UNIT_NOFILE),
        {A_UNIT: "[Service]\n#PAMName=su\nLimitNOFILE=131072\n"},
        ("unknown", "pass", f"predicted nofile soft 131072 by {A_UNIT}:3"),
    ),
    "a dockerd that a script starts": (
        SHM, {DAEMON: ENOUGH, DOCKER: "[Service]\nExecStart=-/opt/start\n"},
        ("unknown", "unknown", f'{DOCKER}:2 "ExecStart=-/opt/start" may give dockerd flags of its own, '
         f"{DECIDES}"),
    ),
    "a dockerd that is masked": (
        SHM, {DAEMON: ENOUGH, DOCKER: ""},
        ("unknown", "unknown", f"docker.service is masked, or starts nothing, {DECIDES}"),
    ),
    "a dockerd with its own unit": (
        SHM, {DAEMON: ENOUGH, DOCKER: "[Service]\nExecStart=/usr/bin/dockerd -H fd://\n"},
        ("unknown", "pass", "predicted shm_size 8GiB"),
    ),
    "a service that it lacks": (
        users("root", **NOFILE), {"-": "/etc/pam.d/sshd"},
        ("unknown", "unknown", f"no PAM service 'sshd' in this image, {DECIDES}"),
    ),
    "a service that libpam refuses": (
        users("root", **NOFILE), {"/etc/pam.d/sshd": "@include nowhere\n"},
        ("unknown", "unknown", DECIDES),
    ),
    "a group": (
        users("@ml", **NOFILE), {OURS: "@ml soft nofile 65536\n@ml hard nofile 65536\n"},
        ("unknown", "pass", f"predicted nofile soft 65536 by {OURS}:1"),
    ),
    "users by number, of whom none is known": (
        users("1000:2000", **NOFILE), {OURS: GOOD},
        ("unknown", "unknown", f"no rule of the policy is about them, {DECIDES}"),
    ),
    "a limits file without which nobody logs in": (
        users("root", **NOFILE),
        {OURS: GOOD, "/etc/os-release": "ID=debian\nVERSION_ID=11\n", "-": LIMITS_CONF},
        ("unknown", "unknown", f"PAM refuses every login, {DECIDES}"),
    ),
    "another limits file": (
        users("root", **NOFILE),
        {
            "/etc/pam.d/sshd": "session required pam_limits.so conf=/etc/own.conf\n",
            "/etc/own.conf": "root soft nofile 1000\n",
            OURS: GOOD,
        },
        ("fail", "fail", "pam-limits-elsewhere"),
    ),
    "a setting of logins": (
        users("root", maxlogins=4), {}, ("unknown", "unknown", DECIDES),
    ),
    "a sysctl": (
        {"kernel": {"vm.max_map_count": 262144}},
        {"/etc/sysctl.d/a.conf": "vm.max_map_count = 262144\n"},
        ("unknown", "pass", "predicted vm.max_map_count 262144 by /etc/sysctl.d/a.conf:1"),
    ),
    "a sysctl that nobody states": (
        {"kernel": {"vm.max_map_count": 262144}}, {}, ("fail", "fail", "sysctl-not-stated"),
    ),
    "a sysctl that the kernel starts with": (
        {"kernel": {"fs.nr_open": 1048576}}, {},
        ("unknown", "pass", "predicted fs.nr_open 1048576"),
    ),
    "a sysctl of which nothing is known": (
        {"kernel": {"kernel.threads-max": 1}}, {},
        ("unknown", "unknown", f"no file states it, {DECIDES}"),
    ),
    "a unit": (
        units(a=UNIT_NOFILE), {A_UNIT: "[Service]\nLimitNOFILE=65536:131072\n"},
        ("unknown", "pass", f"predicted nofile soft 65536 by {A_UNIT}:2"),
    ),
    "a unit below the fs.nr_open that a boot will have": (
        units(a={"nofile": 2000000}),
        {A_UNIT: "[Service]\nLimitNOFILE=2000000\n", NR_OPEN: "fs.nr_open = 4000000\n"},
        ("unknown", "pass", f"predicted nofile soft 2000000 by {A_UNIT}:2"),
    ),
    "a sysctl that a replaced systemd-sysctl never sets": (
        {"kernel": {MAPS: 262144}}, {**STATED, **APPLIES, APPLIER_D: RUNS_TRUE},
        ("fail", "fail", "sysctl-service-masked"),
    ),
    "a sysctl that a condition keeps from being set": (
        {"kernel": {MAPS: 262144}},
        {**STATED, **APPLIES, APPLIER_D: "[Unit]\nConditionPathExists=/nope\n"},
        ("fail", "fail", "sysctl-service-masked"),
    ),
    "a sysctl whose reader has other drop-ins": (
        {"kernel": {MAPS: 262144}}, {**STATED, **APPLIES, APPLIER_D: "[Service]\nNice=5\n"},
        ("unknown", "pass", f"predicted {MAPS} 262144 by {STATES}:1"),
    ),
    "a sysctl that a file in /run states": (
        {"kernel": {MAPS: 262144}}, {"/run/sysctl.d/1.conf": STATED[STATES]},
        ("fail", "fail", "sysctl-file-not-read"),
    ),
    "a sysctl that a file in /run lowers": (
        {"kernel": {MAPS: 262144}}, {**STATED, "/run/sysctl.d/zz.conf": f"{MAPS} = 1000\n"},
        ("unknown", "pass", f"predicted {MAPS} 262144 by {STATES}:1"),
    ),
    "a unit that a drop-in in /run lowers": (
        units(a=UNIT_NOFILE),
        {A_UNIT: "[Service]\nLimitNOFILE=65536:131072\n",
         "/run/systemd/system/a.service.d/x.conf": "[Service]\nLimitNOFILE=5\n"},
        ("unknown", "pass", f"predicted nofile soft 65536 by {A_UNIT}:2"),
    ),
    "a sysctl that a package's unit lowers": (
        {"kernel": {MAPS: 262144}},
        {**STATED, f"{OF_PACKAGES}/x.service": LOWERS,
         f"{OF_PACKAGES}/multi-user.target.wants/x.service": LOWERS},
        ("fail", "fail", "sysctl-script-wins"),
    ),
    "a sysctl that a unit lowers which a package's unit requires": (
        {"kernel": {MAPS: 262144}},
        {**STATED, f"{OF_PACKAGES}/x.service": LOWERS,
         f"{OF_PACKAGES}/y.service": "[Unit]\nRequires=x.service\n[Service]\nExecStart=/bin/y\n",
         f"{OF_PACKAGES}/multi-user.target.wants/y.service": ""},
        ("fail", "fail", "sysctl-script-wins"),
    ),
    "a sysctl that a unit of /usr/local lowers": (
        {"kernel": {MAPS: 262144}},
        {**STATED, f"{LOCAL}/x.service": LOWERS, f"{LOCAL}/multi-user.target.wants/x.service": LOWERS},
        ("fail", "fail", "sysctl-script-wins"),
    ),
    "a sysctl of a unit that nothing starts": (
        {"kernel": {MAPS: 262144}}, {**STATED, f"{OF_PACKAGES}/x.service": LOWERS},
        ("unknown", "pass", f"predicted {MAPS} 262144 by {STATES}:1"),
    ),
    "a module that nobody knows": (
        users("root", **NOFILE),
        {OURS: GOOD, SSHD_STACK: "session required pam_limits.so\nsession required pam_site.so\n"},
        ("unknown", "unknown",
         f'{SSHD_STACK}:2 "session required pam_site.so" may change it after PAM, {DECIDES}'),
    ),
    "such a module that calls nothing": (
        users("root", **NOFILE),
        {OURS: GOOD, "/usr/lib64/security/pam_site.so": "\x7fELF",
         SSHD_STACK: "session required pam_limits.so\nsession required pam_site.so\n"},
        ("unknown", "pass", f"predicted nofile soft 65536 by {OURS}:4"),
    ),
    "a startup file that becomes a program": (
        users("root", **NOFILE), {OURS: GOOD, "/etc/profile.d/x.sh": "exec /opt/low\n"},
        ("unknown", "unknown",
         f'/etc/profile.d/x.sh:1 "exec /opt/low" may change it after PAM, {DECIDES}'),
    ),
    "startup files that read each other": (
        users("root", **NOFILE),
        {OURS: GOOD, "/etc/profile.d/x.sh": ". /opt/1\n",
         **{f"/opt/{one}": f". /opt/{one + 1}\n" for one in range(1, 9)}},
        ("unknown", "unknown", f'/opt/3:1 ". /opt/4" may change it after PAM, {DECIDES}'),
    ),
    "sshd of each login without PAM": (
        users("root", **NOFILE),
        {OURS: GOOD, "/etc/systemd/system/sockets.target.wants/ssh.socket": "",
         "/etc/systemd/system/ssh@.service": "[Service]\nExecStart=-/usr/sbin/sshd -i -oUsePAM=no\n"},
        ("unknown", "unknown", '/etc/systemd/system/ssh@.service:2 "-o UsePAM=no" keeps PAM, and '
         f"with it every limits file, out of sshd's sessions, {DECIDES}"),
    ),
    "a limit above what fs.nr_open may be": (
        users("root", **HUGE), {OURS: MANY, "/etc/rc.local": IF_RAISED},
        ("unknown", "unknown", f"fs.nr_open may be 1048576 or 3000000, by {MAY_RAISE}, {DECIDES}"),
    ),
    "a unit above what it may be": (
        units(a={"nofile": 2000000}),
        {A_UNIT: "[Service]\nLimitNOFILE=2000000\n", "/etc/rc.local": IF_RAISED},
        ("unknown", "unknown", f"fs.nr_open may be 1048576 or 3000000, by {MAY_RAISE}, {DECIDES}"),
    ),
    "a unit above what a script computes": (
        units(a={"nofile": 2000000}),
        {A_UNIT: "[Service]\nLimitNOFILE=2000000\n", "/etc/rc.local": COMPUTED},
        ("unknown", "unknown",
         f'fs.nr_open may be anything, by /etc/rc.local:2 "sysctl -w fs.nr_open=$N", {DECIDES}'),
    ),
    "containers above what it may be": (
        {"containers": {"docker": {"limits": {"nofile": 2000000}}}},
        {DAEMON: '{"default-ulimits": {"nofile": {"Name": "nofile", "Soft": 2000000, "Hard": 2000000}}}',
         "/etc/rc.local": IF_RAISED},
        ("unknown", "unknown", f"fs.nr_open may be 1048576 or 3000000, by {MAY_RAISE}, {DECIDES}"),
    ),
    "containers of Podman above what it may be": (
        {"containers": {"podman": {"limits": {"nofile": 2000000}}}},
        {"/etc/containers/containers.conf": MANY_OF_PODMAN, "/etc/rc.local": IF_RAISED},
        ("unknown", "unknown", f"fs.nr_open may be 1048576 or 3000000, by {MAY_RAISE}, {DECIDES}"),
    ),
    "containers of Podman above what it is": (
        {"containers": {"podman": {"limits": {"nofile": 2000000}}}},
        {"/etc/containers/containers.conf": MANY_OF_PODMAN}, ("fail", "fail", "podman-above-nr-open"),
    ),
    "a unit that raises its own limit": (
        units(a=UNIT_NOFILE),
        {A_UNIT: "[Service]\nLimitNOFILE=1024\nExecStart=/usr/bin/prlimit --nofile=131072 /opt/a\n"},
        ("unknown", "unknown", f'{A_UNIT}:3 "ExecStart=/usr/bin/prlimit --nofile=131072 /opt/a" '
         f"sets the limit after systemd has, {DECIDES}"),
    ),
    "a unit that changes to a user": (
        units(a=UNIT_NOFILE),
        {A_UNIT: "[Service]\nLimitNOFILE=131072\nExecStart=/bin/su - alice -c /opt/a\n"},
        ("unknown", "unknown", f"PAM can change it, {DECIDES}"),
    ),
    "a limit that the first builds of Red Hat 8 refuse": (
        users("root", **NOFILE), {OURS: "root - nofile unlimited\n", "/etc/os-release": "ID=rhel\nVERSION_ID=8.4\n"},
        ("fail", "fail", "pam-above-nr-open"),
    ),
    "a limit that later ones take for fs.nr_open": (
        users("root", **NOFILE), {OURS: "root - nofile unlimited\n", "/etc/os-release": "ID=rhel\nVERSION_ID=8.9\n"},
        ("unknown", "pass", f"predicted nofile soft 1048576 by {OURS}:1"),
    ),
    "a limits file that tmpfiles writes": (
        users("root", **NOFILE),
        {OURS: GOOD, "/etc/tmpfiles.d/a.conf": "f+ /etc/security/limits.d/99-z.conf - - - - root - nofile 5\n"},
        ("unknown", "unknown", '/etc/tmpfiles.d/a.conf:1 "f+ /etc/security/limits.d/99-z.conf - - - - '
         f'root - nofile 5" may write limits files at boot, {DECIDES}'),
    ),
    "a limits file that cloud-init writes": (
        users("root", **NOFILE),
        {OURS: GOOD, "/etc/cloud/cloud.cfg.d/a.cfg": "write_files:\n- path: /etc/security/limits.d/99.conf\n"},
        ("unknown", "unknown", '/etc/cloud/cloud.cfg.d/a.cfg:2 "- path: /etc/security/limits.d/99.conf" '
         f"may write limits files at boot, {DECIDES}"),
    ),
    "a session that pam_deny refuses": (
        users("root", **NOFILE),
        {OURS: GOOD, SSHD_STACK: "session required pam_limits.so\nsession required pam_deny.so\n"},
        ("unknown", "unknown",
         f'{SSHD_STACK}:2 "session required pam_deny.so" keeps everybody out, {DECIDES}'),
    ),
    "a pam_deny that is jumped over, as Debian has it": (
        users("root", **NOFILE),
        {OURS: GOOD,
         SSHD_STACK: "session required pam_limits.so\nsession [default=1] pam_permit.so\n"
                     "session requisite pam_deny.so\nsession required pam_permit.so\n"},
        ("unknown", "pass", f"predicted nofile soft 65536 by {OURS}:4"),
    ),
    "a unit with too little": (
        units(a=UNIT_NOFILE), {A_UNIT: "[Service]\nLimitNOFILE=1024\n"},
        ("fail", "fail", "unit-stated-too-low"),
    ),
    "a unit that states nothing": (
        units(a={"memlock": "64MiB"}), {A_UNIT: "[Service]\n"},
        ("unknown", "unknown", f"no file states memlock soft, {DECIDES}"),
    ),
    "a unit that has systemd's default": (
        units(a=UNIT_NOFILE), {A_UNIT: "[Service]\n"}, ("fail", "fail", "unit-not-stated"),
    ),
    "a unit that PAM has a say in": (
        units(a=UNIT_NOFILE), {A_UNIT: "[Service]\nPAMName=login\n"},
        ("unknown", "unknown", f"PAM can change it, {DECIDES}"),
    ),
    "a unit that it lacks": (units(a=UNIT_NOFILE), {}, ("unknown", "unknown", DECIDES)),
    "new services": (
        {"services": {"default": UNIT_NOFILE}},
        {SYSTEM_CONF: "[Manager]\nDefaultLimitNOFILE=65536:524288\n"},
        ("unknown", "pass", f"predicted nofile soft 65536 by {SYSTEM_CONF}:2"),
    ),
    "services of users": ({"services": {"user_default": UNIT_NOFILE}}, {}, ("unknown", "unknown", DECIDES)),
    "new services with too little": (
        {"services": {"default": UNIT_NOFILE}}, {SYSTEM_CONF: "[Manager]\nDefaultLimitNOFILE=512\n"},
        ("fail", "fail", "unit-manager-too-low"),
    ),
    "tasks of new services": (
        {"services": {"default": {"tasks": 4096}}}, {SYSTEM_CONF: "[Manager]\nDefaultTasksMax=4096\n"},
        ("unknown", "pass", f"predicted tasks 4096 by {SYSTEM_CONF}:2"),
    ),
    "tasks that are a share of the host's": (
        {"services": {"default": {"tasks": 4096}}}, {},
        ("unknown", "unknown", f"a share of what the host can hold bounds it, {DECIDES}"),
    ),
    "tasks of a unit": (
        units(a={"tasks": 4096}), {A_UNIT: "[Service]\nTasksMax=infinity\n"},
        ("unknown", "pass", f"predicted tasks unlimited by {A_UNIT}:2"),
    ),
    "tasks of a unit in a slice with too little": (
        units(a={"tasks": 4096}),
        {
            A_UNIT: "[Service]\nTasksMax=infinity\nSlice=ml.slice\n",
            "/etc/systemd/system/ml.slice.d/a.conf": "[Slice]\nTasksMax=9\n",
        },
        ("fail", "fail", "tasks-slice-too-low"),
    ),
    "tasks where the root of all slices has too little": (
        units(a={"tasks": 4096}),
        {A_UNIT: "[Service]\nTasksMax=infinity\n",
         "/etc/systemd/system/-.slice.d/a.conf": "[Slice]\nTasksMax=9\n"},
        ("fail", "fail", "tasks-slice-too-low"),
    ),
    "a unit whose script opens a session": (
        units(a=UNIT_NOFILE),
        {A_UNIT: "[Service]\nLimitNOFILE=131072\nExecStart=/usr/bin/nice /opt/a\n",
         "/opt/a": "#!/bin/sh\n# su x\nexec su alice -c /bin/x\n"},
        ("unknown", "unknown", '/opt/a:3 "exec su alice -c /bin/x" opens a session, and PAM can '
         f"change it, {DECIDES}"),
    ),
    "a unit whose script speaks of one": (
        units(a=UNIT_NOFILE),
        {A_UNIT: "[Service]\nLimitNOFILE=131072\nExecStart=/opt/a --su x\n",
         "/opt/a": "#!/bin/sh\n# su alice -c x\nexec /opt/sudo.d/x /opt/su\n"},
        ("unknown", "pass", f"predicted nofile soft 131072 by {A_UNIT}:2"),
    ),
    "tasks of a slice that has no file": (
        {"services": {"units": {"ml.slice": {"tasks": 4096}}}},
        {"/etc/systemd/system/ml.slice.d/a.conf": "[Slice]\nTasksMax=4096\n"},
        ("unknown", "pass", "predicted tasks 4096 by /etc/systemd/system/ml.slice.d/a.conf:2"),
    ),
    "tasks of a slice that states nothing": (
        {"services": {"units": {"ml.slice": {"tasks": 4096}}}},
        {SYSTEM_CONF: "[Manager]\nDefaultTasksMax=9\n"},
        ("unknown", "pass", "predicted tasks unlimited"),
    ),
    "logind": (
        {"services": {"logind": {"remove_ipc": False}}}, {"/etc/systemd/logind.conf": "[Login]\nRemoveIPC=no\n"},
        ("unknown", "pass", "predicted RemoveIPC no by /etc/systemd/logind.conf:2"),
    ),
    "logind by default": (
        {"services": {"logind": {"remove_ipc": False}}}, {},
        ("fail", "fail", "logind-not-stated"),
    ),
    "Docker": (
        {"containers": {"docker": {"shm_size": "8GiB"}}},
        {"/etc/docker/daemon.json": '{"default-shm-size": "8G"}'},
        ("unknown", "pass", "predicted shm_size 8GiB"),
    ),
    "Docker with nothing stated": (
        {"containers": {"docker": {"shm_size": "8GiB"}}}, {},
        ("fail", "fail", "docker-shm-not-stated"),
    ),
    "Docker that does not start": (
        {"containers": {"docker": {"shm_size": "8GiB"}}}, {"/etc/docker/daemon.json": "{"},
        ("fail", "fail", "docker-dockerd-refuses"),
    ),
    "what containerd gives": (
        {"containers": {"docker": {"limits": {"memlock": "64MiB"}}}}, {},
        ("unknown", "unknown", f"what containerd has decides, {DECIDES}"),
    ),
    "Podman": (
        {"containers": {"podman": {"shm_size": "8GiB"}}},
        {"/etc/containers/containers.conf": '[containers]\nshm_size = "8589934592"\n'},
        ("unknown", "pass", "predicted shm_size"),
    ),
    "Podman with too little": (
        {"containers": {"podman": {"shm_size": "8GiB"}}},
        {"/etc/containers/containers.conf": '[containers]\nshm_size = "1g"\n'},
        ("fail", "fail", "podman-conf-line"),
    ),
    "tasks of Podman": (
        {"containers": {"podman": {"tasks": 4096}}},
        {"/etc/containers/containers.conf": "[containers]\npids_limit = 4096\n"},
        ("unknown", "pass", "predicted tasks"),
    ),
    "tasks of Podman that nobody states": (
        {"containers": {"podman": {"tasks": 4096}}}, {},
        ("fail", "fail", "podman-not-stated"),
    ),
    "tasks of Docker": (
        {"containers": {"docker": {"tasks": 4096}}}, {},
        ("unknown", "unknown", f"what starts it decides, and the slice above it, {DECIDES}"),
    ),
    "Podman that stops at its files": (
        {"containers": {"podman": {"shm_size": "8GiB"}}},
        {"/etc/containers/containers.conf": "[containers"},
        ("fail", "fail", "podman-conf-unreadable"),
    ),
    "/dev/shm": (
        {"shared_memory": {"size": "8GiB"}}, {"/etc/fstab": "tmpfs /dev/shm tmpfs size=8g 0 0\n"},
        ("unknown", "pass", "predicted size 8GiB by /etc/fstab:1"),
    ),
    "/dev/shm with too little": (
        {"shared_memory": {"size": "8GiB"}}, {"/etc/fstab": "tmpfs /dev/shm tmpfs size=1g 0 0\n"},
        ("fail", "fail", "shm-stated-too-small"),
    ),
    "/dev/shm with a number that is octal": (
        {"shared_memory": {"size": "10GiB"}}, {"/etc/fstab": "tmpfs /dev/shm tmpfs size=010g 0 0\n"},
        ("fail", "fail", "shm-stated-too-small"),
    ),
    "/dev/shm that a package's unit mounts anew": (
        {"shared_memory": {"size": "8GiB"}},
        {"/etc/fstab": "tmpfs /dev/shm tmpfs size=8g 0 0\n",
         f"{OF_PACKAGES}/x.service": REMOUNTS,
         f"{OF_PACKAGES}/multi-user.target.wants/x.service": REMOUNTS},
        ("unknown", "unknown", f"{OF_PACKAGES}/x.service:3 mounts it anew, {DECIDES}"),
    ),
    "/dev/shm by the memory of the host": (
        {"shared_memory": {"size": "8GiB"}}, {"/etc/fstab": "tmpfs /dev/shm tmpfs size=90% 0 0\n"},
        ("unknown", "unknown", f"its size depends on the memory of the host, {DECIDES}"),
    ),
    "/dev/shm that nobody states": (
        {"shared_memory": {"size": "8GiB"}}, {}, ("unknown", "unknown", DECIDES),
    ),
    "what runs": (
        {"processes": [{"user": "root", "limits": {"nofile": 1024}}]}, {},
        ("unknown", "unknown", f"nothing of an image runs, {DECIDES}"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_the_files_will_give(name: str, tmp_path: Path) -> None:
    policy, files, wanted = CASES[name]
    result = check(tmp_path, policy, files)
    status, later, why = tell(result.findings[0])
    assert (status, later) == wanted[:2]
    assert why.endswith(wanted[2]) or wanted[2] in why.split(",")


@pytest.mark.parametrize("engine", ["docker", "podman"])
def test_an_engine_that_is_not_installed_is_unknown(engine: str, tmp_path: Path) -> None:
    lay_out(tmp_path, {})
    (tmp_path / "usr/bin" / {"docker": "dockerd"}.get(engine, engine)).unlink()
    policy = load_policy({"containers": {engine: {"shm_size": "8GiB"}}}, "none")
    (finding,) = check_host(policy, CheckOptions(root=str(tmp_path))).findings
    assert finding.status == "unknown"
    assert "in this image" in finding.observation.reason


def test_remedies_are_for_the_tree_and_start_nothing(tmp_path: Path) -> None:
    policy = {"kernel": {"vm.max_map_count": 262144}}
    (finding,) = check(tmp_path, policy, {}).findings
    commands = finding.causes[0].remedy.commands
    assert commands
    assert {words[:2] for words in commands} == {("chroot", str(tmp_path))}
    assert not any("sysctl" in words[2:3] for words in commands)


def test_who_else_writes_a_file_is_told_of_the_tree(tmp_path: Path) -> None:
    files = {LIMITS_CONF: "# Managed by Puppet\nroot - nofile 9\n"}
    (tmp_path / "var/lib/dpkg/info").mkdir(parents=True)
    (tmp_path / "var/lib/dpkg/info/p.list").write_text(f"{LIMITS_CONF}\n")
    finding = check(tmp_path, users("root", **NOFILE), files).findings[0]
    said = 'line 1 says "# Managed by Puppet"; a configuration file of package p'
    assert finding.causes[0].writer == said


def test_nothing_is_measured_of_the_machine_that_looks(tmp_path: Path) -> None:
    result = check(tmp_path, users("root", nofile={"soft": 1}), {OURS: GOOD})
    assert result.connection == {}
    assert result.lines[-1] == (
        "0 pass, 0 fail, 1 unknown until the first boot (1 predicted to pass)"
    )


def test_the_sections_that_files_decide_are_named() -> None:
    policy = load_policy(
        {"kernel": {"fs.nr_open": 1}, "processes": CASES["what runs"][0]["processes"]}, "none"
    )
    assert find_foretold(policy, ProvisionOptions()) == ["kernel"]


def test_the_command_judges_a_tree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lay_out(tmp_path, {})
    assert main(["check", "--root", str(tmp_path)]) == FALLS_SHORT
    assert "state it" in capsys.readouterr().out
    assert main(["check", "--root", str(tmp_path / "none")]) == REFUSED
    assert "is not a directory" in capsys.readouterr().err


OTHERS = {
    "/etc/passwd": (
        f"{FILES['/etc/passwd']}daemon:x:1:1::/:/usr/sbin/nologin\nbob:x:1002:5555::/:/opt/low\n"
        "postgres:x:110:110::/:/bin/bash\n"
    ),
    "/etc/group": f"{FILES['/etc/group']}ml:x:2001:alice\nempty:x:2002:\n",
    "/opt/low": "#!/bin/sh\nulimit -n 100\n",
}


@pytest.mark.parametrize(
    ("line", "who"),
    [
        (f"alice {LESS}", {"alice": "fail"}),
        (f"@ml {LESS}", {"alice": "fail"}),
        (f"@empty {LESS}", {"@empty": "fail"}),
        (f"@unknown {LESS}", {"@unknown": "fail"}),
        (f"1001:1001 {LESS}", {"alice": "fail"}),
        (f"alice {LESS}\n@ml {LESS}", {"alice": "fail"}),
        (f"carol {LESS}", {"carol": "fail"}),
        (f"daemon {LESS}", {}),
        (f"postgres {LESS}", {"postgres": "fail"}),
        ("alice hard nofile 1048575", {}),
        (f"root {LESS}", {}),
        ("alice -", {"alice": "unknown"}),
        ("alice hard nproc 5", {}),
    ],
)
def test_everyone_is_more_than_who_stands_for_them(
    tmp_path: Path, line: str, who: dict[str, str]
) -> None:
    """Users, groups and shells of a tree are judged where its files give them less."""
    tree = {OURS: GOOD, "/etc/security/limits.d/99-less.conf": f"{line}\n", **OTHERS}
    found = check(tmp_path, users("*", nofile={"soft": 65536}), tree).findings
    told = {one.requirement.place: one for one in found}
    assert told.pop("session:*@sshd").outlook.after_boot == "pass"
    bob = told.pop("session:bob@sshd")
    assert (bob.status, bob.outlook.after_boot) == ("unknown", "unknown")
    assert "/etc/passwd:4" in bob.observation.reason
    assert {place[8:-5]: one.status for place, one in told.items()} == who


FROM_SSSD = {"/etc/nsswitch.conf": "passwd: files sss\ngroup: files [SUCCESS=merge] sss\n"}
AT_BOOT = {"/usr/lib/sysusers.d/ml.conf": "g ml 900\nm alice ml\n"}


@pytest.mark.parametrize(
    ("line", "source", "told"),
    [
        (f"@ml {LESS}", FROM_SSSD, f"{next(iter(FROM_SSSD))}:2"),
        (f"@ml {LESS}", AT_BOOT, f"{next(iter(AT_BOOT))}:2"),
        (f"@gpu {LESS}", AT_BOOT, ""),
        ("@ml soft nofile 70000", FROM_SSSD, ""),
        (f"@ml {LESS}\nalice - nofile 65536", FROM_SSSD, ""),
        (f"@ml {LESS}\n@gpu - nofile 65536", FROM_SSSD, f"{next(iter(FROM_SSSD))}:2"),
        (f"@ml {LESS}", {"/etc/nsswitch.conf": "group: files systemd # sss\n"}, ""),
        (f"@ml {LESS}", {**AT_BOOT, "/etc/sysusers.d/ml.conf": ""}, ""),
    ],
)
def test_a_group_that_is_not_known_yet_may_give_less(
    tmp_path: Path, line: str, source: dict[str, str], told: str
) -> None:
    tree = {OURS: "* - nofile 65536\n", "/etc/security/limits.d/99.conf": f"{line}\n", **source}
    (found,) = check(tmp_path, users("alice", nofile={"soft": 65536}), tree).findings
    assert found.outlook.after_boot == ("unknown" if told else "pass")
    assert told in found.observation.reason


@pytest.mark.parametrize(
    ("version", "status"),
    [("20.10.24+dfsg1-1", "pass"), ("5:27.5.1-1~debian.12", "fail"), ("", "fail")],
)
def test_the_package_of_docker_tells_what_it_takes(
    tmp_path: Path, version: str, status: str
) -> None:
    """dockerd 25 takes no log level ``warning`` any more; an unknown one is taken for a new one."""
    entry = "Package: {}\nStatus: install ok installed\nVersion: {}\n\n"
    packages = entry.format("docker.io-doc", "9") + entry.format("docker.io", version)
    tree = {
        DAEMON: f'{ENOUGH[:-1]}, "log-level": "warning"}}',
        **({"/var/lib/dpkg/status": packages} if version else {}),
    }
    told = check(tmp_path, SHM, tree).findings
    assert {one.outlook.after_boot for one in told if "docker" in one.requirement.place} == {status}


LISTS = "/etc/ssh/sshd_config.d/lists.conf"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("DenyUsers bob al*", 1),
        ("DenyUsers bob\nDenyUsers alice", 2),
        ("AllowUsers bob root@10.0.0.1", 1),
        ("AllowUsers bob\nAllowUsers alice@10.0.0.1", 0),
        ("DenyUsers alice@10.0.0.1", 0),
        ("DenyUsers !alice al*", 0),
        ("DenyUsers al?ce", 1),
        (f"DenyUsers {'*' * 600}", 1),
        ("DenyUsers a[l]ice", 0),
        (f"DenyUsers {'*a' * 900}*b\nDenyUsers {'*a' * 40}*", 0),
        ("DenyGroups wheel alice", 1),
        ("AllowGroups wheel", 1),
        ("AllowGroups wheel alice", 0),
        ("AllowUsers alice\nDenyGroups alice", 2),
        ("Match Address 10.0.0.0/8\nDenyUsers alice", 0),
        ("AllowUsers bob\nMatch Address 10.0.0.0/8\nAllowUsers alice", 0),
    ],
)
def test_whom_sshd_keeps_out_is_not_predicted_to_have_enough(
    tmp_path: Path, text: str, line: int
) -> None:
    tree = {OURS: GOOD.replace("root", "alice"), LISTS: f"{text}\n"}
    (found,) = check(tmp_path, users("alice", nofile={"soft": 65536}), tree).findings
    assert found.outlook.after_boot == ("unknown" if line else "pass")
    assert (f"{LISTS}:{line} " in found.observation.reason) == bool(line)
    assert ("keeps alice out of sshd" in found.observation.reason) == bool(line)


def test_who_has_a_record_with_limits_is_judged_beside_everyone(tmp_path: Path) -> None:
    records = {RECORD: LIMITED, "/etc/userdb/1500.user": LIMITED, "/etc/userdb/bob.user": "{}"}
    tree = {OURS: GOOD, **records, **OPENS_SYSTEMD}
    found = check(tmp_path, users("*", nofile={"soft": 65536}), tree).findings
    told = {one.requirement.place: one.outlook.after_boot for one in found}
    assert told == {"session:*@sshd": "pass", "session:carol@sshd": "unknown"}


def test_a_file_that_nobody_can_read_leaves_the_other_places_standing(tmp_path: Path) -> None:
    lay_out(tmp_path, {OURS: GOOD})
    (tmp_path / "etc/docker").mkdir()
    (tmp_path / DAEMON[1:]).write_bytes(ENOUGH.encode("utf-16"))
    findings = check(tmp_path, {**SHM, **users("root", **NOFILE)}, {OURS: GOOD}).findings
    told = [(one.requirement.place, *tell(one)[:2]) for one in findings]
    assert told == [("session:root@sshd", "unknown", "pass"), ("docker", "unknown", "")]


@pytest.mark.parametrize("kind", ["directory", "named pipe"])
def test_a_daemon_json_that_is_no_file_is_told_as_what_it_is(tmp_path: Path, kind: str) -> None:
    lay_out(tmp_path, {})
    path = tmp_path / DAEMON[1:]
    path.parent.mkdir()
    path.mkdir() if kind == "directory" else os.mkfifo(path)
    (found,) = check(tmp_path, SHM, {}).findings
    assert (found.status, found.outlook.after_boot) == ("unknown", "")
    said = f"{DAEMON}: is a {kind}, with which dockerd does not start: a file is accepted"
    assert said in found.observation.reason


@pytest.mark.parametrize(
    ("target", "commands"), [("/usr/local/lib/low", 1), ("/opt/low", 0), ("/etc/low", 1)]
)
def test_the_fix_of_a_limits_file_that_is_a_link_edits_what_it_leads_to(
    tmp_path: Path, target: str, commands: int
) -> None:
    """Where that is not in root's folders, a person must."""
    link = "/etc/security/limits.d/95-low.conf"
    lay_out(tmp_path, {OURS: GOOD, target: "root soft nofile 512\n"})
    (tmp_path / link[1:]).symlink_to(target)
    (found,) = check(tmp_path, users("root", **NOFILE), {OURS: GOOD}).findings
    (cause,) = found.causes
    named = link if target.startswith("/etc/") else target
    assert cause.at
    assert (cause.at.place, len(cause.remedy.commands)) == (f"{named}:1", commands)
    assert all(f"grep ^/{named.split('/')[1]}/" in one[-1] for one in cause.remedy.commands)


def test_a_key_that_stands_there_twice_is_named_without_its_neighbors(tmp_path: Path) -> None:
    text = f'{ENOUGH[:-1]}, "labels": ["site=hush"], "default-shm-size": "64M"}}'
    findings = check(tmp_path, SHM, {DAEMON: text}).findings
    (cause,) = {cause for one in findings if one.status == "fail" for cause in one.causes}
    assert cause.code == "docker-stated-twice"
    assert cause.at
    assert (cause.at.place, cause.at.text) == (f"{DAEMON}:1", '"default-shm-size": "64M"')
    assert not cause.remedy.commands


def test_a_line_behind_a_link_out_of_roots_folders_is_overruled(tmp_path: Path) -> None:
    """No command follows such a link: what it leads to is somebody else's."""
    low, key = "/etc/sysctl.d/99-low.conf", "vm.max_map_count"
    lay_out(tmp_path, {"/opt/low.conf": f"{key} = 65530\n", "/etc/sysctl.d/90-a.conf": ""})
    (tmp_path / low[1:]).symlink_to("/opt/low.conf")
    (found,) = check(tmp_path, {"kernel": {key: 262144}}, {}).findings
    (cause,) = found.causes
    assert cause.at
    assert cause.at.place == "/opt/low.conf:1"
    said = " ".join(word for command in cause.remedy.commands for word in command)
    assert "99-zz-site.conf" in said
    assert "low.conf" not in said


def test_of_many_users_whose_lines_give_less_some_are_judged_and_the_others_counted(
    tmp_path: Path,
) -> None:
    policy = {"sessions": [{"users": ["*"], "limits": {"nofile": 65536}}]}
    lines = "".join(f"user{number} - nofile {number + 1}\n" for number in range(300))
    found = check(tmp_path, policy, {LIMITS_CONF: f"{GOOD}{lines}"}).findings
    judged = {one.requirement.place for one in found}
    assert len(judged) == 12
    assert "session:user9@sshd" in judged
    (told,) = [one for one in found if one.requirement.place == "session:*"]
    assert told.status == "unknown"
    assert told.observation.reason == (
        "lines of limits files state less for 290 more kinds of users, so the first boot decides"
    )


def test_no_remedy_for_an_image_changes_the_machine_that_builds_it(tmp_path: Path) -> None:
    """In a chroot /proc/sys is its own."""
    result = check(tmp_path, users("root", **HUGE), {OURS: MANY})
    commands = [one for cause in result.findings[0].causes for one in cause.remedy.commands]
    assert result.findings[0].causes[0].remedy.text == "raise fs.nr_open to 2000000"
    make, words = commands
    assert make == ("chroot", str(tmp_path), "mkdir", "-p", "/etc/sysctl.d")
    assert words[0] == "chroot"
    assert words[-1].endswith(">> /etc/sysctl.d/95-site.conf")
    (tmp_path / "etc/sysctl.d").mkdir()
    result = check(tmp_path, users("root", **HUGE), {OURS: MANY})
    assert [cause.remedy.commands for cause in result.findings[0].causes] == [(words,)]


def test_a_tree_that_is_named_from_here_is_meant_from_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out(tmp_path, {OURS: MANY})
    monkeypatch.chdir(tmp_path)
    policy = load_policy(users("root", **HUGE), "none")
    result = check_host(policy, CheckOptions(services=("sshd",), root="."))
    commands = [one for cause in result.findings[0].causes for one in cause.remedy.commands]
    assert {one[:2] for one in commands} == {("chroot", str(tmp_path))}


def test_a_mask_keeps_fstab_from_dev_shm(tmp_path: Path) -> None:
    unit = tmp_path / "etc/systemd/system/systemd-remount-fs.service"
    unit.parent.mkdir(parents=True)
    unit.symlink_to("/dev/null")
    files = {"/etc/fstab": "tmpfs /dev/shm tmpfs size=8g 0 0\n"}
    (finding,) = check(tmp_path, {"shared_memory": {"size": "8GiB"}}, files).findings
    assert tell(finding)[:2] == ("unknown", "unknown")
    assert "systemd-remount-fs.service is masked" in finding.observation.reason


@pytest.mark.parametrize(
    ("text", "start"),
    [("x = 1\n", "echo"), ("", "echo"), ("x = 1", "printf '%s\\n' ''"), (None, "echo")],
)
def test_no_line_is_glued_to_one_without_its_end(
    text: str | None, start: str, tmp_path: Path
) -> None:
    site = "/etc/security/limits.d/95-site.conf"
    files = {} if text is None else {site: text.replace("x = 1", "bob - nofile 5")}
    result = check(tmp_path, users("root", **NOFILE), files)
    commands = [one for cause in result.findings[0].causes for one in cause.remedy.commands]
    assert commands[-1][-1] == f"{start} 'root soft nofile 65536' >> {site}"


@pytest.mark.parametrize(
    ("lines", "name", "status"),
    [
        ("* hard maxlogins 0\n", "alice", "unknown"),
        ("@alice - maxsyslogins 0\n", "alice", "unknown"),
        ("alice soft maxlogins 0\n", "alice", "unknown"),
        ("alice - maxlogins 0\nalice - maxlogins 5\n", "alice", "pass"),
        ("@other - maxlogins 0\n", "alice", "pass"),
        ("* hard maxlogins 0\nroot - maxlogins 0\n", "root", "pass"),
    ],
)
def test_nobody_passes_who_may_have_no_login(
    tmp_path: Path, lines: str, name: str, status: str
) -> None:
    files = {LIMITS_CONF: f"{GOOD}{lines}", "/etc/group": "root:x:0:\nalice:x:1001:\nother:x:5:\n"}
    found = check(tmp_path, users(name, **NOFILE), files).findings
    assert {one.outlook.after_boot for one in found} == {status}
    told = f"refuses every login of {name}"
    assert all((told in one.observation.reason) is (status == "unknown") for one in found)


@pytest.mark.parametrize(
    "word",
    [
        "fstab=no",
        "systemd.mount-extra=tmpfs:/dev/shm:tmpfs:size=64M",
        "systemd.mask=systemd-remount-fs",
    ],
)
def test_a_word_for_the_kernel_keeps_fstab_from_dev_shm(tmp_path: Path, word: str) -> None:
    files = {
        "/etc/fstab": "tmpfs /dev/shm tmpfs size=8g 0 0\n",
        "/etc/kernel/cmdline": f"quiet {word}\n",
    }
    (finding,) = check(tmp_path, {"shared_memory": {"size": "8GiB"}}, files).findings
    assert finding.outlook.after_boot == "unknown"
    told = f'/etc/kernel/cmdline:1 "{word}" may keep systemd from applying /etc/fstab to /dev/shm'
    assert finding.observation.reason.startswith(told)


@pytest.mark.parametrize(
    ("stack", "gecos", "status"),
    [
        ("pam_umask.so", "Al,,,,ulimit=100", "unknown"),
        ("pam_umask.so", "ULIMIT=100,Al", "unknown"),
        ("pam_umask.so", "Al,,,,umask=022", "pass"),
        ("pam_unix.so", "Al,,,,ulimit=100", "pass"),
    ],
)
def test_a_limit_in_the_line_of_a_user(tmp_path: Path, stack: str, gecos: str, status: str) -> None:
    files = {
        LIMITS_CONF: "alice - fsize unlimited\n",
        "/etc/passwd": f"root:x:0:0::/:/bin/sh\nalice:x:1001:1001:{gecos}:/:/bin/sh\n",
        SSHD_STACK: f"session required pam_limits.so\nsession optional {stack}\n",
    }
    found = check(tmp_path, users("alice", fsize="unlimited"), files).findings
    assert {one.outlook.after_boot for one in found} == {status}


@pytest.mark.parametrize(
    ("stated", "told"),
    [
        ('"storage-driver": "overlay2"', ""),
        ('"storage-driver": "foo"', f"{DAEMON}: no storage-driver 'foo' is known"),
        ('"userns-remap": "default"', ""),
        ('"userns-remap": "alice"', ""),
        ('"userns-remap": "1001:1001"', ""),
        ('"userns-remap": "root"', f"{DAEMON}: userns-remap 'root' is not in /etc/subuid"),
        ('"userns-remap": "nobodyx"', f"{DAEMON}: userns-remap 'nobodyx' is not in /etc/passwd"),
    ],
)
def test_a_dockerd_that_may_not_start(tmp_path: Path, stated: str, told: str) -> None:
    ranges = dict.fromkeys(("/etc/subuid", "/etc/subgid"), "alice:100000:65536\n")
    files = {DAEMON: f'{{"default-shm-size": "8G", {stated}}}', **ranges}
    (finding,) = check(tmp_path, SHM, files).findings
    assert finding.outlook.after_boot == ("unknown" if told else "pass")
    assert not told or finding.observation.reason.startswith(told)
