# SPDX-License-Identifier: GPL-3.0-or-later
"""Logs of the attacker's that root asks about, and processes that root raises."""

from __future__ import annotations

from .attack import Attack

_STAY = "\nready()\nstay()\n"
_LOG = "HOME + '/logs/train.log'"
_SETUP = """install -d -o mallory -g mallory /home/mallory/logs
echo 'OSError: [Errno 24] Too many open files' > /home/mallory/logs/train.log
chown mallory: /home/mallory/logs/train.log"""


def _log(name: str, kind: str, program: str, verb: str = "why") -> Attack:
    return Attack(name, kind, verb, program + _STAY, _SETUP)


ATTACKS = (
    _log(
        "a log that is a link to a secret of root's",
        "links",
        f"os.unlink({_LOG})\nlink(SECRET, {_LOG})",
    ),
    _log("a log that is a FIFO", "links", f"os.unlink({_LOG})\nos.mkfifo({_LOG})"),
    _log(
        "a log with the bytes of a terminal",
        "names",
        rf"put({_LOG}, b'OSError: [Errno 24] Too many open files: \x1b]0;evil\x07\x9b2J')",
    ),
    _log("a log on a file system that never answers", "FUSE", "fuse(HOME + '/logs', 1)"),
    _log(
        "processes that come and go while they are raised",
        "deep /proc",
        """
def churn():
    while True:
        pid = os.fork()
        if not pid:
            os._exit(0)
        os.waitpid(pid, 0)
for number in range(4):
    fork(churn)""",
        "heal",
    ),
)
