# SPDX-License-Identifier: BSD-2-Clause
"""Say why logind does something else about users' shared memory than a policy asks."""

from __future__ import annotations

from ..core.cause import Cause, Remedy, cite
from ..systemd.edits import add_lines, pick_site_file
from .logind_conf import KEY, LOGIND, predict_remove_ipc, read_remove_ipc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..systemd.model import Files

CODES = {
    "logind-states-otherwise": "the line of logind.conf that counts says otherwise",
    "logind-not-stated": "no file says it, and logind removes shared memory by default",
    "logind-not-reloaded": "logind has not read its files since they were changed",
}

RELOAD = ("systemctl", "kill", "--kill-who=main", "-s", "HUP", "systemd-logind.service")
"""The signal on which logind reads its files; sessions are left alone."""


def find_logind_causes(wanted: bool, files: Files, seen: bool | None) -> tuple[Cause, ...]:
    """Return why logind does not do what is asked, or will not; nothing where it does.

    :param seen: What it does now, ``None`` where it does not run.
    """
    ranked = read_remove_ipc(files)
    at = ranked[-1] if ranked else None
    given = predict_remove_ipc(files)
    if given is None and seen in (None, wanted):
        return ()
    if given == wanted:
        if seen in (None, wanted):
            return ()
        what = cite(at) if at else "what the files say now"
        remedy = Remedy("let logind read its files", (RELOAD,))
        return (Cause("logind-not-reloaded", f"{what} is not read yet by logind", remedy, at),)
    path = pick_site_file(f"/etc/systemd/{LOGIND}.d", files.manager_dropins)
    remedy = add_lines(path, "Login", f"{KEY}={format_flag(wanted)}")
    remedy = remedy._replace(commands=(*remedy.commands, RELOAD))
    if at is None:
        text = f"no file states {KEY}, and logind's default is {format_flag(not wanted)}"
        return (Cause("logind-not-stated", text, remedy),)
    return (Cause("logind-states-otherwise", f"{cite(at)} says otherwise", remedy, at),)


def format_flag(value: bool) -> str:
    """Write a yes or a no as systemd does."""
    return "yes" if value else "no"
