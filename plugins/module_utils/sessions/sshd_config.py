# SPDX-License-Identifier: BSD-2-Clause
"""Find in sshd's configuration whether its sessions go through PAM at all.

Format: sshd_config(5); ``process_server_config_line_depth()`` in OpenSSH's ``servconf.c``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from itertools import count

from ..core.values import Declaration, User
from ..kernel.glob_pattern import is_pattern, matches_part, matches_path

MAIN_FILE = "/etc/ssh/sshd_config"
VENDOR_FILE = "/usr/etc/ssh/sshd_config"

_KEYWORD = re.compile(r'[ \t\f]*("?)([A-Za-z0-9]+)\1[ \t\f]*=?[ \t\f]*(.*)')
_LISTS = ("denyusers", "allowusers", "denygroups", "allowgroups")
"""In the order in which sshd asks them."""
_READ = frozenset(
    ("authorizedkeysfile", "forcecommand", "include", "pamservicename", "setenv", "usepam", *_LISTS)
)
_ALONE = ("all", "canonical", "final", "invalid-user")
_EVERYBODY = ("all",)
_ABOUT_USERS = {"all", "user", "group"}
_KEY_FILES = ".ssh/authorized_keys .ssh/authorized_keys2"
_NO_COMMANDS = ("none", "internal-sftp")
_OWN_SERVICE = "sshd"
_MOST_LINES = 500_000
"""Lines that are read by way of includes, of which each may be read many times."""
_WORD = re.compile(r"""#.*|(?:"[^"]*"|'[^']*'|[^ \t\f"'])+""")


def find_includes(text: str, path: str = MAIN_FILE) -> list[str]:
    """Return the absolute glob patterns that one file includes, in Match blocks too.

    A relative pattern counts from the main file's directory, whichever file it stands in.
    """
    return [
        pattern
        for keyword, dummy, words, _match in _read_all(path, text)
        if keyword == "include"
        for pattern in words
    ]


def find_use_pam(files: Mapping[str, str], path: str = MAIN_FILE) -> Declaration | None:
    """Return the statement of ``UsePAM`` that counts, with value ``yes`` or ``no``.

    The first one wins, and an ``Include`` is read where it stands, its files in the order of
    their names. ``None`` means that sshd falls back on its built-in ``no``.

    :param files: Text by absolute path of the main file and of everything it includes.
    :raises ValueError: If sshd would refuse the value, or files include each other in a loop.
    """
    return next(_find_all(files, path, (), count(1)), None)


def _find_all(
    files: Mapping[str, str], path: str, trail: tuple[str, ...], read: Iterator[int]
) -> Iterator[Declaration]:
    if path in trail:
        raise ValueError(f"{path}: includes itself, by way of {', '.join(trail)}")
    for keyword, line, words in _read_lines(path, files.get(path, "")):
        if next(read, 0) > _MOST_LINES:
            raise ValueError(f"{line.place}: too much is included to be read")
        if keyword == "include":
            for included in _match_files(files, words):
                yield from _find_all(files, included, (*trail, path), read)
        elif keyword == "usepam":
            yield line._replace(value=_parse_flag(line, words))


def find_forced_commands(files: Mapping[str, str], path: str, user: User) -> Iterator[Declaration]:
    """Yield each ``ForceCommand`` that a user's connection may meet, with the command for value.

    :raises ValueError: As :func:`find_use_pam`.
    """
    found = _find_reached("forcecommand", files, path, user)
    return (line for line in found if str(line.value).lower() not in _NO_COMMANDS)


def find_pam_services(files: Mapping[str, str], path: str, user: User) -> Iterator[Declaration]:
    """Yield each ``PAMServiceName`` that a user's connection may meet and that is not sshd's own.

    Source: sshd_config(5) of OpenSSH 9.8 and later.

    :raises ValueError: As :func:`find_use_pam`.
    """
    found = _find_reached("pamservicename", files, path, user)
    return (line for line in found if str(line.value).strip("\"'") != _OWN_SERVICE)


def _find_reached(
    keyword: str, files: Mapping[str, str], path: str, user: User
) -> Iterator[Declaration]:
    """Yield each line of a keyword that a user's connection may meet.

    The first one in a Match block that holds counts, and else the first one in none. Whether a
    connection comes from an address, or to a port, is not known: a block about those may hold or
    not, and what comes after it counts too. Source: ``parse_server_match_config()``.
    """
    found = list(_find_set(keyword, files, path, user, (), count(1)))
    for line, match in found:
        if match:
            yield line
            if _ABOUT_USERS.issuperset(name for name, _value in _list_criteria(match)):
                return
    yield from [line for line, match in found if not match][:1]


def find_shut_out(files: Mapping[str, str], path: str, user: User) -> Declaration | None:
    """Return the line that keeps a user out, wherever the connection comes from.

    A pattern with a ``!`` or an address may let in whom it names; so may a list of a Match block,
    which takes the place of the one in none. Source: ``allowed_user()`` in OpenSSH's ``auth.c``.

    :raises ValueError: As :func:`find_use_pam`.
    """
    for keyword in _LISTS:
        found = list(_find_set(keyword, files, path, user, (), count(1)))
        words = [word for line, _match in found for word in _split_words(str(line.value))]
        if not words or any(match for _line, match in found) or any("!" in one for one in words):
            continue
        names = user.groups if keyword.endswith("groups") else {user.name}
        if keyword.startswith("allow"):
            heads = [word.partition("@")[0] for word in words]
            if not any(_fits(names, head) for head in heads):
                return found[0][0]
            continue
        for line, _match in found:
            plain = [word for word in _split_words(str(line.value)) if "@" not in word]
            if any(_fits(names, word) for word in plain):
                return line
    return None


def find_given_environments(
    files: Mapping[str, str], path: str, user: User
) -> Iterator[Declaration]:
    """Yield each ``SetEnv`` that a user's connection may meet, with its words for value.

    :raises ValueError: As :func:`find_use_pam`.
    """
    return (line for line, _match in _find_set("setenv", files, path, user, (), count(1)))


def list_key_files(files: Mapping[str, str], path: str, user: User) -> list[str]:
    """Return the names of the files that hold a user's keys, relative to the home or absolute.

    They have sshd's marks in them: ``%h`` for the home, ``%u`` and ``%U`` for the user.

    :raises ValueError: As :func:`find_use_pam`.
    """
    lines = [str(line.value) for line in _find_reached("authorizedkeysfile", files, path, user)]
    return [word for text in lines or [_KEY_FILES] for word in _split_words(text)]


def find_key_file(name: str, user: str, uid: int, home: str) -> str:
    """Return where a user's keys lie, by a name that :func:`list_key_files` returns."""
    marks = {"%h": home, "%u": user, "%U": str(uid), "%%": "%"}
    path = re.sub("%[huU%]", lambda mark: marks[mark[0]], name)
    return path if path.startswith("/") else f"{home.rstrip('/')}/{path}"


def _find_set(
    wanted: str,
    files: Mapping[str, str],
    path: str,
    user: User,
    trail: tuple[str, ...],
    read: Iterator[int],
) -> Iterator[tuple[Declaration, tuple[str, ...]]]:
    if path in trail:
        raise ValueError(f"{path}: includes itself, by way of {', '.join(trail)}")
    for keyword, line, words, match in _read_all(path, files.get(path, "")):
        if next(read, 0) > _MOST_LINES:
            raise ValueError(f"{line.place}: too much is included to be read")
        if keyword not in ("include", wanted) or not _may_match(match, user):
            continue
        if keyword == "include":
            for included in _match_files(files, words):
                inner = _find_set(wanted, files, included, user, (*trail, path), read)
                yield from ((line, (*match, *more)) for line, more in inner)
        else:
            found = _KEYWORD.fullmatch(line.text.rstrip(" \t\f\r"))
            yield line._replace(value=found[3].strip() if found else ""), match


def _may_match(words: tuple[str, ...], user: User) -> bool:
    """Tell whether a Match block may hold for a user, by its criteria User and Group."""
    asked = {"user": {user.name}, "group": user.groups}
    return all(
        name != "invalid-user" and (name not in asked or _fits(asked[name], patterns))
        for name, patterns in _list_criteria(words)
    )


def _list_criteria(words: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield the criteria of a Match block with what each asks for, some of which ask nothing."""
    rest = iter(words)
    for word in rest:
        name = word.lower()
        yield name, "" if name in _ALONE else next(rest, "")


def _fits(names: Collection[str], patterns: str) -> bool:
    """Tell whether a list of patterns takes one of these names; a ``!`` that fits refuses all."""
    refused = []
    for pattern in patterns.split(","):
        wanted = re.sub(r"\*+", "*", pattern[pattern.startswith("!") :])
        plain = re.sub(r"([\[\]\\])", r"\\\1", wanted)
        if any(matches_part(plain, name) for name in names):
            refused.append(pattern.startswith("!"))
    return bool(refused) and not any(refused)


def _match_files(files: Mapping[str, str], patterns: list[str]) -> Iterator[str]:
    """Expand as glob(3) does: a star stays within its directory and skips dot files."""
    for pattern in patterns:
        hidden = pattern.rpartition("/")[2].startswith(".")
        plain = [pattern] if pattern in files else []
        for path in sorted(files) if is_pattern(pattern) else plain:
            shown = hidden or not path.rpartition("/")[2].startswith(".")
            if shown and matches_path(pattern, path):
                yield path


def _read_lines(path: str, text: str) -> Iterator[tuple[str, Declaration, list[str]]]:
    """Yield keyword, statement and arguments of each line that holds for every connection."""
    for keyword, line, words, match in _read_all(path, text):
        if match in ((), _EVERYBODY):
            yield keyword, line, words


@lru_cache(maxsize=64)
def _read_all(
    path: str, text: str
) -> tuple[tuple[str, Declaration, list[str], tuple[str, ...]], ...]:
    """Return each line of a keyword in ``_READ``: the keyword, it, its words, the Match around it.

    A Match block reaches to the next one or to the end of its file. Each question reads the same
    files again, so that they are kept.
    """
    found = []
    around: tuple[str, ...] = ()
    for number, line in enumerate(text.split("\n"), 1):
        match = _KEYWORD.fullmatch(line.rstrip(" \t\f\r"))
        if not match:
            continue
        keyword = match[2].lower()
        if keyword == "match":
            words = _split_words(match[3])
            is_all = tuple(map(str.lower, words)) == _EVERYBODY
            around = _EVERYBODY if is_all else tuple(words)
        elif keyword in _READ:
            words = _split_words(match[3])
            if keyword == "include":
                words = [word if word.startswith("/") else f"/etc/ssh/{word}" for word in words]
            found.append((keyword, Declaration(path, number, line, ""), words, around))
    return tuple(found)


def _split_words(text: str) -> list[str]:
    if not any(mark in text for mark in "\"'#"):
        return [word for word in re.split("[ \t\f]+", text) if word]
    found = (word for word in _WORD.findall(text) if not word.startswith("#"))
    return [re.sub("[\"']", "", word) for word in found]


def _parse_flag(line: Declaration, words: list[str]) -> str:
    value = words[0].lower() if words else ""
    if value not in ("yes", "no"):
        raise ValueError(
            f"{line.place}: {line.text.strip()!r}: sshd accepts yes or no, and does not start with"
            " this"
        )
    return value
