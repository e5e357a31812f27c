# SPDX-License-Identifier: BSD-2-Clause
"""Say why a process of a login session has less than a session opened now would get.

A session keeps what it was opened with, and what lives on after a login keeps it for longest:
tmux and screen, a user's lingering service manager, a connection that Ansible holds.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..core.cause import Cause, Remedy, cite
from ..core.values import Declaration, NamedTuple, Rlimit, format_pair
from ..systemd.want import is_enough
from .causes import Moment, raise_in_place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.reader import Limit
    from .causes import Commands

START_AGAIN = "start what it ran again"

CODES = {
    "session-older-than-files": "the session was opened before the limits were changed",
    "terminal-server-older": "tmux or screen keeps the limits of the login that started it",
    "process-changed-in-session": "the process was changed in its session, and no file says so",
    "user-manager-older": "the user's service manager has run since before the limits were changed",
}


class Server(NamedTuple):
    """The tmux or screen that holds a process; its limits are those of new windows."""

    pid: int
    name: str
    limits: Mapping[str, Rlimit]


class Login(NamedTuple):
    """A process of a session, or of what a session left.

    ``who`` names the session, ``opened`` when it was, and ``again`` how one comes to a new one.
    ``changed`` is when and ``what`` changed last of that which decides sessions, and ``line`` the
    one that counts there.
    """

    pid: int
    who: str
    again: str
    limits: Mapping[str, Rlimit]
    opened: Moment
    changed: Moment
    what: str
    line: Declaration | None = None
    server: Server | None = None


def find_login_cause(item: str, limit: Limit, login: Login, fresh: Rlimit) -> Cause:
    """Return why a process falls short where a session opened now does not.

    :param fresh: What a session opened now gets.
    """
    has = format_pair(item, login.limits[item])
    gets = f"a session opened now gets {format_pair(item, fresh)}"
    again = f"end {login.who}, and {login.again}"
    if login.server:
        name = f"{login.server.name} (pid {login.server.pid})"
        code = "terminal-server-older"
        text = f"{name} was started in {login.who} and keeps {has}; {gets}"
        again = f"end {name}, and start it from a new login"
    elif login.opened.seconds < login.changed.seconds:
        code = "session-older-than-files"
        since = cite(login.line) if login.line else login.what
        text = (
            f"{login.who} was opened {login.opened.text} and keeps {has}; {since} was changed"
            f" {login.changed.text}, and {gets}"
        )
    else:
        code = "process-changed-in-session"
        text = f"something set process {login.pid} to {has} in {login.who}; {gets}"
    commands = raise_login(item, limit, login)
    return Cause(code, text, Remedy(f"set it in place, or {again}", commands), login.line)


def raise_login(item: str, limit: Limit, login: Login) -> Commands:
    """Return the commands that give a running process, and what holds it, what is asked for."""
    pids = {login.pid: login.limits[item]}
    if login.server:
        pids = {login.server.pid: login.server.limits[item], **pids}
    short = {pid: has for pid, has in pids.items() if not is_enough(limit, has)}
    return raise_in_place(item, limit, short)


def blame_user_manager(who: str, pair: tuple[str, str], since: str, commands: Commands) -> Cause:
    """Blame a user's manager that is older than what would give its services enough.

    :param who: The unit of the manager.
    :param pair: What its services have, and what they would get.
    """
    text = (
        f"{who} has run since {since} and gives its services {pair[0]}; started now, it would give"
        f" them {pair[1]}"
    )
    end = f"restart {who}, which ends the services of that user"
    remedy = Remedy(end, commands, START_AGAIN)
    return Cause("user-manager-older", text, remedy)
