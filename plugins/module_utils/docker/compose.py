# SPDX-License-Identifier: BSD-2-Clause
"""Say which line of a Compose file gave a container a limit of its own, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..core.cause import Cause, cite
from ..core.declaration import Declaration
from ..core.named import NamedTuple
from ..core.quote import one_line
from ..core.remedy import Remedy
from .compose_file import Line, find_line

CODES = {
    "docker-compose-states": "a Compose file gives the container its own limit",
    "docker-compose-not-applied": "the Compose file says otherwise since the container was created",
}


_NUMBER = re.compile("[0-9]{1,40}")
_TASKS_KEYS = (("pids_limit",), ("deploy", "resources", "limits", "pids"))
"""Of a service: the two must agree where both are there."""


class Compose(NamedTuple):
    """Where a container comes from: a service, and the files that state it, the last counts most.

    Each file is a pair of its path and its text, ``None`` where it cannot be read.
    """

    service: str
    files: tuple[tuple[str, str | None], ...]

    @property
    def command(self) -> str:
        """Return how the container is created anew, as the person who did it before types it."""
        return f"docker compose up -d {one_line(self.service)}"


class Stated(NamedTuple):
    """What the files state: the line, and whether it is sure where there is none."""

    at: Declaration | None = None
    sure: bool = False


def find_stated(compose: Compose, *keys: str) -> Stated:
    """Return the line that counts for a key of the service; an ``ulimits`` may end with a bound.

    The last of *keys* is passed over where the value before it is one for both bounds.
    """
    path = ("services", compose.service, *keys)
    for name, text in reversed(compose.files):
        if text is None:
            return Stated()
        try:
            line = _find(text, path)
        except ValueError:
            return Stated()
        if line:
            value = line.value.partition(" #")[0].strip(" \"'")
            number = int(value) if _NUMBER.fullmatch(value) else value
            return Stated(Declaration(name, line.number, line.text, number), True)
    return Stated(sure=True)


def _find(text: str, path: Sequence[str]) -> Line | None:
    if path[-1] not in ("soft", "hard"):
        return find_line(text, path)
    whole = find_line(text, path[:-1])
    if whole is None or whole.value.partition("#")[0].strip():
        return whole
    return find_line(text, path) or whole


def blame_ulimit(
    compose: Compose, name: str, item: str, bound: str, has: str, value: int, asked: str
) -> Cause:
    """Blame what a Compose file gives a container of its own.

    :param value: The bound that the container was created with, as Compose writes it.
    :param has: Both bounds, for people.
    :param asked: What shall be stated.
    """
    stated = find_stated(compose, "ulimits", item, bound)
    instead = f'make it "{item}" {asked} there' if asked else "take it out there"
    return _blame(compose, stated, f"{name} was created with {item} {has}", instead, value)


def blame_shm(compose: Compose, name: str, has: str, asked: str) -> Cause:
    """Blame the size of /dev/shm that a Compose file gives a container, or does not."""
    stated = find_stated(compose, "shm_size")
    if stated.sure and stated.at is None:
        file = one_line(compose.files[-1][0])
        text = f"{name} was created with a /dev/shm of {has}: {file} states no shm_size for it"
        remedy = Remedy(f"state shm_size: {asked} for {one_line(compose.service)} there")
        return Cause("docker-compose-states", text, remedy._replace(then=compose.command))
    created = f"{name} was created with a /dev/shm of {has}"
    return _blame(compose, stated, created, f"make it shm_size: {asked} there", None)


def blame_tasks(compose: Compose, name: str, has: int, asked: int) -> Cause:
    """Blame the bound on tasks that a Compose file gives a container of its own."""
    found = [find_stated(compose, *keys) for keys in _TASKS_KEYS]
    stated = next((one for one in found if one.at), Stated(sure=all(one.sure for one in found)))
    created = f"{name} was created with a pids limit of {has}"
    return _blame(compose, stated, created, f"make it {asked} there", has)


def _blame(
    compose: Compose, stated: Stated, created: str, instead: str, value: int | None
) -> Cause:
    files = ", ".join(one_line(path) for path, _text in compose.files)
    service = one_line(compose.service)
    at = stated.at
    changed = at is not None and isinstance(at.value, int) and value not in (None, at.value)
    if changed or (stated.sure and at is None):
        says = f"{cite(at)} says otherwise" if at else f"{files} says nothing of it"
        remedy = Remedy(f"create it anew: {compose.command}")
        return Cause("docker-compose-not-applied", f"{created}, and {says} by now", remedy, at)
    where = cite(at) if at else f"service {service} of {files}"
    text = f"{created}, which beats every default, by {where}"
    return Cause("docker-compose-states", text, Remedy(instead, then=compose.command), at)
