# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of nothing but time: what runs is older than the files that would give it more."""

from __future__ import annotations

from .base import LIMITS
from .fault import Culprit, Fault, write
from .of_limits_files import OURS

HIDE, RESTORE = f"mv {OURS} /root/", f"mv /root/90-mlhost.conf {OURS}"
SLEEP = "setsid sleep {} < /dev/null > /dev/null 2>&1 & sleep 0.2"
OLD = "older|before|since|start|session"
SHOWS = r"^(process|service|session):.* nofile soft"


def as_alice(seconds: int) -> str:
    return f"su alice -c '{SLEEP.format(seconds)}'"


FAULTS = [
    Fault(
        "leftover: a process of a user",
        f"{HIDE}; {as_alice(9001)}; {RESTORE}",
        (Culprit(words=OLD),),
        (SHOWS,),
        {"processes": [{"user": "alice", "limits": LIMITS}]},
        touches=(OURS, "alice's processes"),
        person=f"pkill -x -u alice sleep; {as_alice(9002)}",
    ),
    Fault(
        "leftover: a process by its name",
        "cp /usr/bin/sleep /usr/local/bin/loader; "
        f"{HIDE}; {as_alice(9003).replace('sleep 9003', 'loader 9003')}; {RESTORE}",
        (Culprit(words=OLD),),
        (SHOWS,),
        {"processes": [{"name": "loader", "limits": LIMITS}]},
        touches=(OURS, "alice's processes"),
        person=f"pkill -x loader; {as_alice(9004).replace('sleep 9004', 'loader 9004')}",
    ),
    Fault(
        "leftover: a lingering user manager",
        f"{HIDE}; loginctl enable-linger alice; sleep 1; {RESTORE}",
        (Culprit(words=f"{OLD}|user@|linger|manager"),),
        (SHOWS,),
        {"processes": [{"unit": "user@1000.service", "limits": LIMITS}]},
        touches=(OURS, "alice's processes"),
    ),
    Fault(
        "leftover: a job of a lingering user manager",
        f"{HIDE}; loginctl enable-linger alice; sleep 1;"
        " systemd-run -q --machine=alice@ --user --unit job sleep 9005 ||"
        " su alice -c 'XDG_RUNTIME_DIR=/run/user/1000 systemd-run -q --user --unit job sleep 9005';"
        f" {RESTORE}",
        (Culprit(words=f"{OLD}|user@|linger|manager"),),
        (SHOWS,),
        {"processes": [{"unit": "job.service", "limits": LIMITS}]},
        touches=(OURS, "alice's processes"),
        person="systemctl restart user@1000.service; sleep 1;"
        " su alice -c 'XDG_RUNTIME_DIR=/run/user/1000 systemd-run -q --user --unit job sleep 9006'",
    ),
    Fault(
        "leftover: user services get less from user.conf",
        write("/etc/systemd/user.conf.d/50-low.conf", "[Manager]", "DefaultLimitNOFILE=1024:4096")
        + "; loginctl enable-linger alice; sleep 1;"
        " su alice -c 'XDG_RUNTIME_DIR=/run/user/1000 systemd-run -q --user --unit job sleep 9007'",
        (Culprit("/etc/systemd/user.conf.d/50-low.conf", "DefaultLimitNOFILE=1024:4096"),),
        (SHOWS,),
        {"processes": [{"unit": "job.service", "limits": LIMITS}]},
        touches=("/etc/systemd/user.conf.d/50-low.conf", "alice's processes"),
        person="systemctl restart user@1000.service; sleep 1;"
        " su alice -c 'XDG_RUNTIME_DIR=/run/user/1000 systemd-run -q --user --unit job sleep 9008'",
    ),
]
