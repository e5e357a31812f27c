# SPDX-License-Identifier: BSD-2-Clause
"""Find in a tree what will turn a user away at each login.

Sources: pam_nologin(8), pam_access(8), access.conf(5).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..core.cause import cite
from ..core.values import Declaration, User
from ..host.files import list_folder, read_each, read_text
from .pam_limits import LIMITS_CONF
from .pam_stack import PamLine, declare_call, flatten
from .reach import find_skippers
from .sshd_config import find_shut_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .tree_read import SessionsTree

_NOLOGIN = "/etc/nologin"
_ACCESS, _ACCESS_D = "/etc/security/access.conf", "/etc/security/access.d"
_STRICT = ("required", "requisite")


def find_refusal(service: str, user: User, read: SessionsTree) -> str:
    """Return what turns a user away from a service; nothing where nothing is sure to.

    :raises ValueError: If libpam refuses the service.
    """
    lines = [one for kind in ("auth", "account") for one in flatten(service, kind, read.pam_files)]
    for line in (one for one in lines if one.control.lower() in _STRICT):
        at = _ASKED[line.name](line, user, read.root) if line.name in _ASKED else None
        if at:
            where = cite(at) if at.line else at.path
            return f"{where} keeps {user.name} out, by {cite(declare_call(line))}"
    return _find_denial(service, read) or (_find_shut_out(user, read) if service == "sshd" else "")


def _find_shut_out(user: User, read: SessionsTree) -> str:
    """Return the list of sshd's that keeps a user out; who stands for others gets in."""
    path, files = read.sshd_config
    at = find_shut_out(files, path, user) if user.name[:1] not in "*@" else None
    return f"{cite(at)} keeps {user.name} out of sshd" if at else ""


def find_rewriter(read: SessionsTree) -> str:
    """Return the line that may write limits files while the tree boots; or nothing."""
    for path, text in read.boot_scripts.items():
        for number, line in enumerate(text.split("\n"), 1):
            if LIMITS_CONF[:-5] in line and not line.lstrip().startswith("#"):
                at = Declaration(path, number, line, "")
                return f"{cite(at)} may write limits files at boot"
    return ""


def _find_denial(service: str, read: SessionsTree) -> str:
    """Return the call of pam_deny that every session reaches."""
    lines = flatten(service, "session", read.pam_files)
    calls = [one for one in lines if one.name == "pam_deny"]
    for call, skipper in zip(calls, find_skippers(lines, calls)):
        if skipper is None and call.control.lower() in _STRICT:
            return f"{cite(declare_call(call))} keeps everybody out"
    return ""


def _find_nologin(line: PamLine, user: User, root: str) -> Declaration | None:
    """Return the file that keeps all users but root out."""
    given = dict(word.partition("=")[::2] for word in line.args)
    path = given.get("file", _NOLOGIN)
    is_there = user.uid != 0 and read_text(path, root) is not None
    return Declaration(path, 0, "", "") if is_there else None


def _find_access(line: PamLine, user: User, root: str) -> Declaration | None:
    """Return the line of access.conf that refuses a user wherever the login comes from.

    The first line that fits counts; one that may let the user in from somewhere ends the search.
    Who stands for others is not asked for: the policy means those who get in.
    """
    given = dict(word.partition("=")[::2] for word in line.args)
    if user.name[:1] in "*@" or {"fieldsep", "listsep"} & {*given}:
        return None
    own = [given["accessfile"]] if "accessfile" in given else []
    names = [f"{_ACCESS_D}/{one}" for one in list_folder(_ACCESS_D, root) if one.endswith(".conf")]
    for path, text in read_each(own or [_ACCESS, *names], root):
        for at, sign, users, origins in _parse_access(text, path):
            fits = _fits(users, user)
            if sign == "+" and fits is not False:
                return None
            if sign == "-" and fits and origins == ["ALL"]:
                return at
    return None


def _parse_access(
    text: str, path: str
) -> Iterator[tuple[Declaration, str, Sequence[str], Sequence[str]]]:
    for number, line in enumerate(text.split("\n"), 1):
        fields = line.partition("#")[0].split(":", 2)
        if len(fields) == 3:
            sign, users, origins = (re.split(r"[\s,]+", one.strip()) for one in fields)
            yield Declaration(path, number, line, ""), sign[0], users, origins


def _fits(words: Sequence[str], user: User) -> bool | None:
    """Tell whether a list of users has this one; ``None`` where only the host knows."""
    if "EXCEPT" in words:
        place = words.index("EXCEPT")
        first, rest = _fits(words[:place], user), _fits(words[place + 1 :], user)
        return first if rest is False or first is False else (None if rest is None else False)
    names = {"ALL", user.name, *user.groups, *(f"({one})" for one in user.groups)}
    if names & {*words}:
        return True
    return None if any("@" in word for word in words) else False


_ASKED = {"pam_nologin": _find_nologin, "pam_access": _find_access}
