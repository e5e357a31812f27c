# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of ssh_config(5) and sshd(8): the connection that checks has less than a new one would."""

from __future__ import annotations

from tests.faults.fault import Culprit, Fault, session
from tests.faults.of_leftovers import HIDE, RESTORE
from tests.places.sessions.faults import OURS

SOCKET = "/run/kept"
ASK = f"ssh -S {SOCKET} localhost"
# PAM has its say when the first program of a connection is started, not before.
OPEN = (
    f"ssh -o ControlMaster=yes -o ControlPersist=600 -S {SOCKET} -o StrictHostKeyChecking=no"
    " -o LogLevel=ERROR localhost true > /dev/null 2>&1"
)
ANEW = f"ssh -q -S {SOCKET} -O exit localhost; {OPEN}"
BECOME = "/usr/local/sbin/become"
CONFINED = "setpriv --bounding-set=-sys_resource"
KEYS = "/root/.ssh/authorized_keys"
WRAPPER = 'command="ulimit -Sn 1024; eval \\"$SSH_ORIGINAL_COMMAND\\""'


def let_in(options: str = "") -> str:
    """Return how root of this host comes to log in to it by a key of its own."""
    key = "ssh-keygen -q -t ed25519 -N '' -f /root/.ssh/id_ed25519"
    return f"{key}; echo '{options}' $(cat /root/.ssh/id_ed25519.pub) >> {KEYS}"


FAULTS: list[Fault] = []
MORE = [
    # As ControlPersist of Ansible keeps one.
    Fault(
        "connection: it was opened before the limits were raised",
        f"{let_in()}; {HIDE}; {OPEN}; {RESTORE}; touch {OURS}",
        (Culprit(OURS, words="older|before|since"),),
        ("^connection",),
        person=ANEW,
        through=ASK,
    ),
    Fault(
        "connection: its key has a command that lowers a limit",
        f"{let_in(WRAPPER)}; {OPEN}",
        (Culprit(KEYS, "command="),),
        ("^session:root@sshd",),
        person=f"sed -i 's/^command=.* ssh-ed/ssh-ed/' {KEYS}; {ANEW}",
        through=ASK,
    ),
    # The become method of Ansible: sudo, or what a site has in its place.
    Fault(
        "connection: the way to root has a wrapper that lowers a limit",
        f"printf '#!/bin/sh\\nulimit -Sn 1024\\nexec \"$@\"\\n' > {BECOME}; chmod +x {BECOME}",
        (Culprit(words="on the way|lower"),),
        ("^connection",),
        person=f"sed -i '/ulimit/d' {BECOME}",
        through=f"{BECOME} sh -c",
    ),
    # What root of a container has by default.
    Fault(
        "connection: root has no capability to raise limits",
        f"printf '#!/bin/sh\\nexec {CONFINED} \"$@\"\\n' > {BECOME}; chmod +x {BECOME}",
        (Culprit(words="CAP_SYS_RESOURCE"),),
        (*session("nofile", bound="hard"), *session("memlock")),
        person=f"sed -i 's/{CONFINED} //' {BECOME}",
        through=f"{BECOME} sh -c",
    ),
]
