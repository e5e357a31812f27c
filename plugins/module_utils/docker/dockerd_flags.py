# SPDX-License-Identifier: BSD-2-Clause
"""Read the flags of dockerd: what its unit gives it, and what follows for its files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..systemd.unit_file import Setting


def is_before_23(version: str) -> bool | None:
    """Tell whether a version, ``20.10.24+dfsg1`` or the like, is older than 23.0.

    23.0 reads daemon.json as a whole and checks it as UTF-8, takes a byte order mark and an
    empty file, and reads sizes anew. ``None`` where the version is not known.
    """
    release = re.match("[0-9]+", version)
    return int(release[0]) < 23 if release else None


CONFIG_PATH = "/etc/docker/daemon.json"
SOCKET_PATH = "/var/run/docker.sock"

_SHORT_FLAGS = {
    "b": "bridge",
    "D": "debug",
    "G": "group",
    "g": "data-root",
    "H": "host",
    "l": "log-level",
    "p": "pidfile",
    "s": "storage-driver",
}


class Flag(NamedTuple):
    """A flag of dockerd without its dashes, and where it is given; line 0 is outside of files."""

    name: str
    value: str
    path: str
    line: int

    @property
    def text(self) -> str:
        """Return it as it is written; two spellings of one flag look alike."""
        return f"--{self.name}={self.value}" if self.value else f"--{self.name}"


def parse_flags(words: Iterable[tuple[str, str, int]]) -> list[Flag]:
    """Read flags as dockerd does: ``--name=value``, ``--name value``, ``-H value``, ``-Hvalue``.

    :param words: Each with its path and line. The program's own name is not among them.
    """
    flags: list[Flag] = []
    for word, path, line in words:
        while re.match("-D[^=]", word):  # A switch takes no value: -DH means -D -H.
            flags.append(Flag("debug", "", path, line))
            word = f"-{word[2:]}"
        if word.startswith("--"):
            name, value = word[2:].partition("=")[::2]
        elif word.startswith("-") and word[1:2] in _SHORT_FLAGS:
            name, value = _SHORT_FLAGS[word[1]], word[2:].lstrip("=")
        else:
            if flags and not flags[-1].value:
                flags[-1] = flags[-1]._replace(value=word)
            continue
        flags.append(Flag(name, value, path, line))
    return flags


def find_flags(settings: Iterable[Setting], environment: Mapping[str, Setting]) -> list[Flag]:
    """Return the flags that a unit gives dockerd, each with its place.

    :param settings: Of the section ``Service``, drop-ins merged in.
    """
    return parse_flags(find_words(settings, environment))


def find_words(
    settings: Iterable[Setting], environment: Mapping[str, Setting]
) -> list[tuple[str, str, int]]:
    """Return the words that follow the program in ``ExecStart=``, variables expanded.

    A word that comes out of a variable has the place where the variable is set.
    """
    from ..systemd.unit_file import (  # Long; a running daemon needs none of it.
        expand_word,
        split_words,
    )

    starts = [setting for setting in settings if setting.key == "ExecStart"]
    values = {name: setting.value for name, setting in environment.items()}
    words = []
    for start in starts[-1:]:
        for word in split_words(start.value.replace("%%", "%"))[1:]:
            used = re.search(r"\$\{?(\w+)", word)
            origin = environment.get(used[1], start) if used else start
            words += [(part, origin.path, origin.line) for part in expand_word(word, values)]
    return words


def find_start(settings: Iterable[Setting]) -> Setting | None:
    """Return the line by which a unit starts its program."""
    starts = [one for one in settings if (one.section, one.key) == ("Service", "ExecStart")]
    return starts[-1] if starts else None


def starts_program(settings: Iterable[Setting], program: str) -> bool:
    """Tell whether a unit starts that itself, so that it has no flags but those of the unit."""
    start = find_start(settings)
    words = start.value.lstrip("-@:+!|").split() if start else []
    return bool(words) and words[0].rpartition("/")[2] == program


def find_socket(flags: Iterable[Flag], default: str = SOCKET_PATH) -> str:
    """Return the Unix socket of the daemon: the first ``-H``, or the default."""
    prefix = "unix://"
    hosts = (flag.value for flag in flags if flag.name == "host")
    paths = (host[len(prefix) :] for host in hosts if host.startswith(prefix))
    return next(filter(None, paths), default)


def find_config_path(flags: Iterable[Flag]) -> str:
    """Return the path of daemon.json: the last ``--config-file``, or the default."""
    return [CONFIG_PATH, *(flag.value for flag in flags if flag.name == "config-file")][-1]
