# SPDX-License-Identifier: GPL-3.0-or-later
"""Logs of the attacker's that root asks about."""

from __future__ import annotations

from .attack import Attack

_STAY = "\nready()\nstay()\n"
_LOG = "HOME + '/logs/train.log'"
_SETUP = """install -d -o mallory -g mallory /home/mallory/logs
echo 'OSError: [Errno 24] Too many open files' > /home/mallory/logs/train.log
chown mallory: /home/mallory/logs/train.log"""


def _log(name: str, kind: str, program: str) -> Attack:
    return Attack(name, kind, "why", program + _STAY, _SETUP)


ATTACKS = (
    _log(
        "a log that is a link to a secret of root's",
        "links",
        f"os.unlink({_LOG})\nlink(SECRET, {_LOG})",
    ),
    _log("a log that is a FIFO", "links", f"os.unlink({_LOG})\nos.mkfifo({_LOG})"),
)
