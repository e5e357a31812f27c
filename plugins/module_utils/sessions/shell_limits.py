# SPDX-License-Identifier: BSD-2-Clause
"""Find the lines of a shell's startup files that set limits: they run after PAM.

Sources: ulimit in bash(1) and dash(1), limit in tcsh(1), the lists of startup files there and in
zsh(1).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..core.values import ITEMS, UNLIMITED, Declaration, NamedTuple
from .shell_commands import list_commands
from .shell_prints import find_printed

LOGIN, INTERACTIVE = "login", "interactive"

_FLAG_NAMES = (
    "c:core d:data e:nice f:fsize i:sigpending l:memlock m:rss n:nofile q:msgqueue r:rtprio"
    " R:rttime s:stack t:cpu u:nproc v:as x:locks"
)
_WORD_NAMES = (
    "cputime:cpu filesize:fsize datasize:data stacksize:stack coredumpsize:core memoryuse:rss"
    " vmemoryuse:as descriptors:nofile openfiles:nofile memorylocked:memlock maxproc:nproc"
    " maxlocks:locks maxsignal:sigpending maxmessage:msgqueue maxnice:nice maxrtprio:rtprio"
)
_FLAGS, _WORDS = (
    dict(pair.split(":") for pair in names.split()) for names in (_FLAG_NAMES, _WORD_NAMES)
)
"""By the flag of Bourne's shells, and by C's word, the limit that each sets."""

_CALL = re.compile(
    r"(?:^|[\s;&|({])(?:\\|/(?:usr/)?s?bin/)?(ulimit|limit|prlimit)\s+((?:(?<=[<>])&|&(?=>)|[^;&|)}#])+)"
)
_REDIRECTED = r"(?:&|\d{1,4})?(?:>+[&|]?|<+&?)\s*\S*"
_HINT = re.compile(r"\b(?:u|pr)limit\b|setrlimit|softlimit|RLIMIT_")
"""What sets a limit in a way that is not read here: by an alias, by eval, in another language."""

_TELLS = r"\s*(?:echo|printf(?!\s+-))\s[^|;&`$]*$"

BOTH = ("soft", "hard")
_VARIABLE = r"\$[\w{@*(]|`"  # It may stand for options.
_PID = ("-p", "--p")
KNOWN_SHELLS = ("sh", "bash", "dash", "ash", "rbash", "zsh", "ksh", "ksh93", "mksh", "csh", "tcsh")
"""Shells that the system brings, whose startup files are known."""
_OF_SYSTEM = ("/bin", "/usr/bin")
_WHOLE = "[0-9]{1,40}"
_OPTION = r"(?:--([a-z]+)=|-([a-zA-Z])=?)([^-=].*)"
_BOURNE = {
    LOGIN: (
        *("/etc/profile", "/etc/profile.d/*.sh", "/etc/profile.d/sh.local"),
        *("~/.bash_profile", "~/.bash_login", "~/.profile"),
    ),
    INTERACTIVE: ("/etc/bash.bashrc", "/etc/bashrc", "~/.bashrc"),
}
_Z = {
    LOGIN: (
        *("/etc/zsh/zprofile", "/etc/zsh/zlogin", "/etc/zprofile", "/etc/zlogin"),
        *("~/.zprofile", "~/.zlogin"),
    ),
    INTERACTIVE: (
        *("/etc/zsh/zshenv", "/etc/zsh/zshrc", "/etc/zshenv", "/etc/zshrc"),
        *("~/.zshenv", "~/.zshrc"),
    ),
}
"""Debian has zsh's files in a folder of their own, Red Hat has not."""
_C = {
    LOGIN: ("/etc/csh.login", "/etc/profile.d/*.csh", "/etc/profile.d/csh.local", "~/.login"),
    INTERACTIVE: ("/etc/csh.cshrc", "~/.tcshrc", "~/.cshrc"),
}
OF_ROOT = tuple(
    path
    for kinds in (_BOURNE, _Z, _C)
    for paths in kinds.values()
    for path in paths
    if path.startswith("/etc/")
)
"""The startup files of all users, as patterns."""


class ShellLine(NamedTuple):
    """One statement of a startup file that sets a limit; ``item`` is empty where it may be any.

    ``bounds`` are empty if it has the shell read or become what a check does not follow.
    """

    item: str
    bounds: tuple[str, ...]
    at: Declaration


def is_known_shell(shell: str) -> bool:
    """Tell whether a shell's startup files are known; it may be a script around another one."""
    folder, _slash, name = shell.rpartition("/")
    return not shell or (name in KNOWN_SHELLS and folder in _OF_SYSTEM)


def list_startup_files(shell: str) -> tuple[str, ...]:
    """Return the patterns of the files that a shell may read, login or not; ``~`` is the home."""
    name = shell.rpartition("/")[2]
    kinds = _C if name.endswith("csh") else _BOURNE
    if name.startswith("zsh"):
        return (*_BOURNE[LOGIN][:3], *_Z[LOGIN], *_Z[INTERACTIVE])
    return (*kinds[LOGIN], *kinds[INTERACTIVE])


def find_shell_limits(text: str, path: str, hints: bool = False) -> Iterator[ShellLine]:
    """Yield every statement that sets a limit; one that only shows it sets nothing.

    :param hints: Yield lines, too, that may set one in a way that is not read here.
    """
    commands = list(list_commands(text))
    printed = find_printed(commands) if "limit" in text else ()
    for command in (one for place, one in enumerate(commands) if place not in printed):
        for call in _CALL.finditer(command.text):
            row = command.find_row(call.start(1))
            words = [_unquote(word) for word in re.sub(_REDIRECTED, " ", call[2]).split()]
            for item, bounds, value in _READERS[call[1]](words):
                yield ShellLine(item, bounds, Declaration(path, row.number, row.text, value))
        hint = _find_hint(command.text) if hints else None
        if hint:
            row = command.find_row(hint.start())
            yield ShellLine("", BOTH, Declaration(path, row.number, row.text, ""))


def _unquote(word: str) -> str:
    return word.lstrip("\\").strip("\"'")


def _find_hint(content: str) -> re.Match[str] | None:
    """Return what may set a limit besides the calls that are read."""
    if re.match(_TELLS, content):
        return None
    return _HINT.search(_CALL.sub(lambda call: " " * len(call[0]), content))


def _read_ulimit(words: list[str]) -> Iterator[tuple[str, tuple[str, ...], int | str]]:
    """Read the arguments of ulimit: a flag names the item, and the word after it the value."""
    bounds: tuple[str, ...] = BOTH
    item = "fsize"
    is_named = False
    for word in words:
        flags, value = _split_flags(word)
        for flag in flags:
            if flag in "SH":
                bounds = ("soft",) if flag == "S" else ("hard",)
            is_named = is_named or flag in _FLAGS
            item = _FLAGS.get(flag, item)
        if not is_named and re.match(_VARIABLE, value):
            yield "", BOTH, value
            return
        if value:
            yield item, bounds, _read_value(item, value)


def _split_flags(word: str) -> tuple[str, str]:
    """Return the flags of a word and the value in it, which bash takes behind a flag as well."""
    found = re.fullmatch("-([a-zA-Z-]*)(.*)", word)
    return (found[1], found[2]) if found else ("", word)


def _read_limit(words: list[str]) -> Iterator[tuple[str, tuple[str, ...], int | str]]:
    """Read the arguments of csh's limit; a name may be cut as long as it is one's alone."""
    hard = words[:1] == ["-h"]
    names = words[1:] if hard else words
    if len(names) < 2:
        return
    items = {item for word, item in _WORDS.items() if word.startswith(names[0])}
    if len(items) == 1:
        item = items.pop()
        yield item, ("hard",) if hard else ("soft",), _read_value(item, names[1])


def _read_prlimit(words: list[str]) -> Iterator[tuple[str, tuple[str, ...], int | str]]:
    """Read the arguments of prlimit(1): ``--nofile=SOFT:HARD``, ``-n=LIMIT``, one side empty."""
    is_named = False
    for before, word in zip(["", *words], words):
        if re.match(_VARIABLE, word) and not is_named and not before.startswith(_PID):
            yield "", BOTH, word
        match = re.fullmatch(_OPTION, word)
        item = match and (match[1] if match[1] in ITEMS else _FLAGS.get(match[2] or ""))
        if not match or not item:
            continue
        is_named = True  # What comes then may be the program.
        soft, colon, hard = match[3].partition(":")
        sides = ((("soft",), soft), (("hard",), hard)) if colon else ((BOTH, soft),)
        for bounds, value in sides:
            if value:
                yield item, bounds, _read_plain(value.strip("\"'"))


def _read_plain(word: str) -> int | str:
    """Return a value that is in the kernel's unit already, or the text where it is not a number."""
    if word in ("unlimited", "-1"):
        return UNLIMITED
    return int(word) if re.fullmatch(_WHOLE, word) else word


def _read_value(item: str, word: str) -> int | str:
    """Return a value in the kernel's unit, or the text where it is not a number."""
    word = word.strip("\"'")
    if word in ("unlimited", "infinity"):
        return UNLIMITED
    plain = item in ("cpu", "msgqueue", "nice", "rtprio", "rttime")
    return int(word) * (1 if plain else ITEMS[item].scale) if re.fullmatch(_WHOLE, word) else word


_READERS = {"ulimit": _read_ulimit, "limit": _read_limit, "prlimit": _read_prlimit}
