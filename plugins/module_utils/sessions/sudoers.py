# SPDX-License-Identifier: BSD-2-Clause
"""Find what sudo does to limits of its own accord: ``rlimit_*``, and which PAM it asks.

Format: sudoers(5), "SUDOERS OPTIONS" and "Including other files from within sudoers".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..core.values import UNLIMITED, Declaration, NamedTuple, Rlimit

MAIN_FILE, SUDO_CONF = "/etc/sudoers", "/etc/sudo.conf"
_OTHER_FILE = r"^[ \t]*Plugin[ \t]+sudoers_policy[ \t].*?\bsudoers_file=(/\S+)"

_INCLUDE = r'\s*[@#](include|includedir)\s+("[^"]+"|(?:\\.|[^\s\\])+)\s*'
_DEFAULTS = r"(?s)\s*Defaults([@:!>]\S*)?\s+(.*)"
_SETTING = (
    r"(?:(?<!!)(!+)\s*)?(rlimit_[a-z]+|pam_session|pam_service|pam_login_service)\b"
    r'\s*(?:=\s*("[^"]*"|[^,\s]+))?'
)
_AS_IT_IS = "default"
_OWN_SERVICES = {"pam_service": "sudo", "pam_login_service": "sudo-i"}
_WHOLE = "[0-9]{1,19}"
_NAME = r"(?![A-Z][A-Z0-9_]*$)[A-Za-z_][\w.-]*"  # Capitals are an alias, or ALL.
_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|#(?!-?\d).*', re.DOTALL)
"""A number sign begins one, but in quotes and before the number of a user."""


class SudoSetting(NamedTuple):
    """A line that sets a limit; ``item`` is empty for one by which no session of sudo's own opens.

    ``limit`` is what it sets, where it states numbers. ``scope`` is whom or what it is about, with
    the mark before it: ``@`` hosts, ``:`` who calls sudo, ``!`` programs, ``>`` who is become.
    """

    item: str
    at: Declaration
    limit: Rlimit | None = None
    scope: str = ""

    def may_mean(self, user: str) -> bool:
        """Tell whether it may be about a session of this user, who is become."""
        names = self.scope[1:].split(",")
        plain = self.scope[:1] == ">" and all(re.fullmatch(_NAME, name) for name in names)
        return not plain or user in names


def find_main_file(text: str) -> str:
    """Return the file that sudo.conf(5) gives to the plugin of sudoers(5), or the usual one."""
    found = re.findall(_OTHER_FILE, text, re.MULTILINE) if "sudoers_file" in text else []
    return str(found[0]) if found else MAIN_FILE


def find_sudo_includes(text: str) -> list[tuple[str, str]]:
    """Return the words ``include`` or ``includedir`` of a file, each with the path it names."""
    found = (re.fullmatch(_INCLUDE, line) for line in text.split("\n") if "include" in line)
    return [(match[1], match[2].strip('"').replace("\\", "")) for match in found if match]


def find_sudo_settings(files: dict[str, str]) -> list[SudoSetting]:
    """Return what may change the limits of sudo's sessions; the last line of each file counts.

    What an include states counts from where it stands, so that each file may be the last.

    :param files: Text by path.
    """
    everyone: dict[tuple[str, str], SudoSetting | None] = {}
    some: list[SudoSetting] = []
    for path, text in files.items():
        for scope, key, setting in _read_settings(path, text):
            if not scope:
                everyone[path, key] = setting
            elif setting:
                some.append(setting)
    return [*filter(None, everyone.values()), *some]


def _read_settings(path: str, text: str) -> Iterator[tuple[str, str, SudoSetting | None]]:
    """Yield whom each setting is about, its name, and what it does, nothing for the default."""
    for number, line in _join_lines(text):
        may_set = "rlimit_" in line or "pam_" in line
        match = re.fullmatch(_DEFAULTS, line) if may_set else None
        scope = (match and match[1]) or ""
        for no, key, value in re.findall(_SETTING, match[2]) if match else ():
            item = key.partition("_")[2]
            at = Declaration(path, number, line, value)
            if key == "pam_session":
                setting = SudoSetting("", at, scope=scope) if len(no) % 2 else None
            elif key in _OWN_SERVICES:
                is_own = not value or value.strip('"') in (_OWN_SERVICES[key], "sudo")
                setting = None if is_own else SudoSetting("", at, scope=scope)
            else:
                plain = len(no) % 2 or value.strip('"') in ("", _AS_IT_IS)
                setting = None if plain else SudoSetting(item, at, _read_limit(value), scope)
            yield scope, key, setting


def _read_limit(value: str) -> Rlimit | None:
    """Return what ``soft,hard`` or one value for both states, in the kernel's unit."""
    words = [word.strip() for word in value.strip('"').split(",")]
    numbers = [
        UNLIMITED if word == "infinity" else re.fullmatch(_WHOLE, word) and int(word)
        for word in words
    ]
    if len(numbers) > 2 or any(number is None for number in numbers):
        return None
    return Rlimit(int(numbers[0] or 0), int(numbers[-1] or 0))


def _join_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line without its comment, those that a backslash continues as one."""
    pending, start = "", 1
    for number, line in enumerate(text.split("\n"), 1):
        start = start if pending else number
        if line.endswith("\\"):
            pending += line[:-1] + " "
            continue
        yield start, _COMMENT.sub(r"\1", pending + line)
        pending = ""
