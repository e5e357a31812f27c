# SPDX-License-Identifier: BSD-2-Clause
"""Find what a session runs or reads before anything else, and a look at its shell does not show.

Sources: BASH_ENV in bash(1), ENV in dash(1), environment(5), pam_env.conf(5), SetEnv in
sshd_config(5), SHELL in crontab(5), /etc/ssh/sshrc and ``command=`` of authorized_keys in sshd(8),
``--login-program`` in agetty(8).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..core.values import Declaration
from .pam_stack import PamLine
from .shell_commands import list_commands

SSHRC = "/etc/ssh/sshrc"
_ENVIRONMENT, _PAM_ENV = "/etc/environment", "/etc/security/pam_env.conf"
_VARIABLE = r"\s*(?:export\s+)?(?:BASH_ENV|ENV)\s*=(.*)"
_OF_PAM = r"\s*(?:BASH_ENV|ENV)\s.*?\b(?:DEFAULT|OVERRIDE)=(\"[^\"]*\"|\S+).*"
_OF_CRON = r"\s*(?:SHELL|BASH_ENV)\s*=(.*)"
_FORCED = r"""\s*(?:[\w-]+(?:="(?:[^"\\]|\\.)*")?,)*command="((?:[^"\\]|\\.)*)\""""
_OF_GETTY = r"\s*ExecStart\s*=.*getty\s(?:.*\s)?(?:-\w*l|--login-p\w*)[\s=]*(\S+).*"
_STARTS = r"\s*ExecStart\s*=\s*(\S+)"
_SETS_OTHERS = r"\b(?:prlimit|setrlimit)\b"
"""sshrc is a process of its own: what it sets for itself ends with it."""


def list_environments(calls: Sequence[PamLine]) -> list[str]:
    """Return the files of variables that calls of pam_env(8) read."""
    found: list[str] = []
    for call in calls:
        given = dict(arg.partition("=")[::2] for arg in call.args)
        found.append(given.get("conffile", _PAM_ENV))
        if given.get("readenv") != "0":
            found.append(given.get("envfile", _ENVIRONMENT))
    return list(dict.fromkeys(found))


def find_variables(text: str, path: str) -> Iterator[Declaration]:
    """Yield the lines that name a file which shells of scripts read first, with it for value."""
    if "ENV" not in text:
        return
    lines = [(line, number, line) for number, line in enumerate(text.split("\n"), 1)]
    # In pam_env.conf a backslash joins a line to the next, as in a shell.
    joined = [(one.text, *one.rows[0][1:]) for one in list_commands(text)]
    for pattern, found in ((_VARIABLE, lines), (_OF_PAM, joined)):
        for whole, number, line in found:
            match = re.fullmatch(pattern, whole)
            if match and _unquote(match[1]):
                yield Declaration(path, number, line, _unquote(match[1]))


def _unquote(text: str) -> str:
    return text.strip().strip("\"'")


def find_cron_settings(text: str, path: str) -> Iterator[Declaration]:
    """Yield the lines of a crontab that choose the shell of its jobs, or what it reads first."""
    for number, line in enumerate(text.split("\n"), 1):
        found = re.fullmatch(_OF_CRON, line)
        if found and _unquote(found[1]):
            yield Declaration(path, number, line, _unquote(found[1]))


def find_login_programs(line: Declaration) -> Iterator[Declaration]:
    """Yield a line of a getty's unit that has it start another program than login(1)."""
    start = re.match(_STARTS, line.text)
    if start and "getty" not in start[1]:
        yield line._replace(value=start[1])
    found = re.fullmatch(_OF_GETTY, line.text)
    if found and _unquote(found[1]).rpartition("/")[2] != "login":
        yield line._replace(value=_unquote(found[1]))


def find_given_variables(line: Declaration) -> Iterator[Declaration]:
    """Yield what a ``SetEnv`` of sshd gives that names such a file."""
    for word in re.split(r"\s+", str(line.value)):
        for found in find_variables(word.strip("\"'"), line.path):
            yield line._replace(value=found.value)


def find_forced_keys(text: str, path: str) -> Iterator[Declaration]:
    """Yield the lines of authorized_keys whose key runs a command in the place of the shell."""
    for number, line in enumerate(text.split("\n"), 1):
        found = re.match(_FORCED, line, re.IGNORECASE)
        if found:
            yield Declaration(path, number, line, found[1].replace('\\"', '"'))


def find_lines_about_others(text: str, path: str) -> Iterator[Declaration]:
    """Yield the lines that set limits of other processes than the one that runs them."""
    for command in list_commands(text):
        found = re.search(_SETS_OTHERS, command.text)
        if found:
            row = command.find_row(found.start())
            yield Declaration(path, row.number, row.text, "")
