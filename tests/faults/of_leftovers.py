# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of nothing but time: what runs is older than the files that would give it more."""

from __future__ import annotations

from tests.places.sessions.faults import OURS

from .base import LIMITS
from .fault import Culprit, Fault, Policy, write

HIDE, RESTORE = f"mv {OURS} /root/", f"mv /root/90-mlhost.conf {OURS}"
OLD = "older|before|since|start|session"
SHOWS = r"^(process|service|session):.* nofile soft"
STOCK_SHOWS = r"^(process|service|session):.* memlock soft"  # systemd raises its own soft nofile.
MINE = (OURS, "alice's processes")

LINGER = (
    "loginctl enable-linger alice;"
    " for n in $(seq 100); do [ -S /run/user/1000/systemd/private ] && break; sleep 0.1; done"
)
RESTART = "systemctl restart user@1000.service"
USER_CONF = "/etc/systemd/user.conf.d/50-low.conf"
LOW = "DefaultLimitNOFILE=1024:4096"


def as_alice(program: str) -> str:
    """Return how alice leaves a program behind."""
    return f"su alice -c 'setsid {program} < /dev/null > /dev/null 2>&1 & sleep 0.2'"


def user_job(seconds: int) -> str:
    """Return how alice's own manager starts a service."""
    run = f"systemd-run -q --user --unit job sleep {seconds}"
    return f"su alice -c 'export XDG_RUNTIME_DIR=/run/user/1000; {run}; systemctl -q --user is-active job'"


def required(limits: object = LIMITS, **selector: str) -> Policy:
    return {"processes": [{**selector, "limits": limits}]}


FAULTS = [
    Fault(
        "leftover: a process of a user",
        f"{HIDE}; {as_alice('sleep 9001')}; {RESTORE}",
        (Culprit(words=OLD),),
        (SHOWS,),
        required(user="alice"),
        touches=MINE,
        person=f"pkill -x -u alice sleep; {as_alice('sleep 9002')}",
    ),
    Fault(
        "leftover: a process by its name",
        f"cp /usr/bin/sleep /usr/local/bin/loader; {HIDE}; {as_alice('loader 9003')}; {RESTORE}",
        (Culprit(words=OLD),),
        (SHOWS,),
        required(name="loader"),
        touches=MINE,
        person=f"pkill -x loader; {as_alice('loader 9004')}",
    ),
    Fault(
        "leftover: a lingering user manager",
        f"{HIDE}; {LINGER}; {RESTORE}",
        (Culprit(words=f"{OLD}|user@|linger|manager"),),
        (STOCK_SHOWS,),
        required(unit="user@1000.service"),
        touches=MINE,
        person=RESTART,
    ),
    Fault(
        "leftover: a job of a lingering user manager",
        f"{HIDE}; {LINGER}; {user_job(9005)}; {RESTORE}",
        (Culprit(words=f"{OLD}|user@|linger|manager"),),
        (STOCK_SHOWS,),
        required({"memlock": "unlimited"}, unit="job.service"),
        touches=MINE,
        person=f"{RESTART}; {user_job(9006)}",
    ),
    Fault(
        "leftover: user services get less from user.conf",
        f"{write(USER_CONF, '[Manager]', LOW)}; {LINGER}; {user_job(9007)}",
        (Culprit(USER_CONF, LOW),),
        (SHOWS,),
        required(unit="job.service"),
        touches=(USER_CONF, *MINE),
        person=f"{RESTART}; {user_job(9008)}",
    ),
]

BUSY = "docker run -d --name busy tiny /busybox sleep 9999"

MORE = [
    Fault(
        "leftover: lowered by hand in its session",
        f"{as_alice('sleep 9101')}; prlimit --pid $(pgrep -x -u alice sleep) --nofile=1024:4096",
        (Culprit(words="something set|prlimit|by hand"),),
        (SHOWS,),
        required(user="alice"),
        touches=MINE,
    ),
    Fault(
        "leftover: a process of a container",
        BUSY.replace(" tiny ", " --ulimit nofile=1024:4096 tiny "),
        (Culprit(words="container|ulimit"),),
        ("^process:.*busybox.* nofile soft", "^process:.*busybox.* nofile hard"),
        required(name="busybox"),
        touches=("docker running",),
        person=f"docker rm -f busy; {BUSY}",
    ),
]
