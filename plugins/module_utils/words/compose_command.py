# SPDX-License-Identifier: BSD-2-Clause
"""Read ``docker compose run SERVICE``: which files it reads, and which service it starts.

Source: the references of ``docker compose``, ``docker compose run`` and ``docker compose up``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .docker_run import ENGINES
from .facts import COMPOSE, Wanted, Words
from .options import COMMAND_LINE

_ANY = "*compose.y*ml"
"""The first of these, sorted, is the one that Compose prefers."""
_VERBS = ("run", "up", "create", "start")
_VALUED = re.compile(
    r"-[fpevuwl]|--(?:file|project-name|project-directory|profile|env-file|parallel|env|volume"
    r"|name|user|workdir|entrypoint|publish|label|scale|timeout|wait-timeout|pull|cap-add|cap-drop)"
)
_FILE = re.compile("-f|--file")


def is_compose_command(words: Sequence[str]) -> bool:
    """Tell whether a command is one of Compose: ``docker compose``, or ``docker-compose``."""
    name = words[0].rpartition("/")[2]
    return name in ("docker-compose", "podman-compose") or (
        name in ENGINES and list(words[1:2]) == ["compose"]
    )


def read_compose_command(words: Sequence[str], where: str, _depth: int) -> Words:
    """Want the files that a command of Compose reads, for the service that it starts."""
    here = where or COMMAND_LINE
    rest = list(words[1:] if "-" in words[0].rpartition("/")[2] else words[2:])
    before, rest = _split_options(rest)
    verb, rest = (rest[0], rest[1:]) if rest else ("", [])
    options, named = _split_options(rest)
    if verb not in _VERBS or (verb == "run" and not named):
        told = f"{here}: docker compose {verb}".rstrip()
        return Words(problems=(f"{told}: starts no service; such as docker compose run SERVICE",))
    if verb == "run" and len(named) > 1:
        told = f"{here}: docker compose run {named[0]}: the command behind it is not read"
        return Words(problems=(f"{told}; state it in the file",))
    changed = [name for name, _value in options if name in ("-e", "--env", "-v", "--volume")]
    service = named[0] if len(named) == 1 else ""
    files = [value for name, value in before if _FILE.fullmatch(name)] or [_ANY]
    if len(files) > 1 or any(name in ("--env-file", "--profile") for name, _value in before):
        given = " ".join(word for word in words if word not in ("up", "run", service))
        told = f"{here}: docker compose: several files, profiles and --env-file are not read"
        return Words(problems=(f"{told}; give the one file that {given} config prints",))
    notes = [f"{here}: not read: {', '.join(changed)} of docker compose {verb}"] if changed else []
    wanted = tuple(Wanted(file, here, f"{COMPOSE}{service}") for file in files)
    return Words(wanted=wanted, notes=tuple(notes))


def _split_options(words: Sequence[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the options before the first word that is not one, and the words from there on."""
    options, at = [], 0
    while at < len(words) and words[at].startswith("-"):
        name, sign, value = words[at].partition("=")
        at += 1
        if not sign and _VALUED.fullmatch(name) and at < len(words):
            value, at = words[at], at + 1
        options.append((name, value))
    return options, list(words[at:])
