# SPDX-License-Identifier: BSD-2-Clause
"""Say which line of a Compose file gave a container a limit of its own, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..core.cause import Cause, Remedy, cite
from ..core.quote import one_line
from ..core.values import Declaration, NamedTuple

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

    The last of *keys* is skipped where the value before it is one for both bounds.
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
            return Stated(Declaration(name, line.number, line.text, number))
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
        return Cause("docker-compose-not-applied", f"{created}, and {says} now", remedy, at)
    where = cite(at) if at else f"service {service} of {files}"
    text = f"{created}, which beats every default, by {where}"
    return Cause("docker-compose-states", text, Remedy(instead, then=compose.command), at)


_KEY = re.compile(
    r"""("[^"\\]*"|'[^']*'|[A-Za-z0-9_./$<][^\s#:"'{}\[\],&*]*)[ ]*:(?:[ ]+(.*)|)""", re.DOTALL
)
_MARKS = re.compile(r"^(?:[&!]\S*(?:[ ]+|$))+")  # Anchors and tags before a value.
_BLOCK = re.compile(r"[|>][-+0-9]*[ ]*(?:#.*)?")
_STRING = re.compile(r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*')[ ]*(?:[ ]#.*)?""")
_TEXT = re.compile(r"""([\[{,:][ ]*)(?:"(?:[^"\\]|\\.)*"|'[^']*')(?=[ ]*[\]},:])""")
_UNNAMED = re.compile(r""":[ ]+(?:[&!]\S*[ ]+){0,3}["'\[{|>]""")
_ODD = re.compile("[\t\r\x0b\x0c\x85\u2028\u2029\ufeff]")  # Some end a line of YAML.
_MARKERS = ("---", "...", "%", "? ")
_ELSEWHERE = ("<<", "extends", "include")


class Line(NamedTuple):
    """A line that says something. ``number`` counts from 1, ``indent`` is its column.

    ``key`` is empty in an item of a list, and where a text goes on.
    """

    number: int
    indent: int
    key: str
    value: str
    text: str
    item: bool = False


def find_line(text: str, path: Sequence[str]) -> Line | None:
    """Return the line that states a key, by the keys that lead to it; ``None`` if none does.

    This is not a reader of YAML: it follows mappings in block style by their indentation, and gives
    up where a line could mean something else, so that it gives no line rather than a wrong one.

    :raises ValueError: Where that is not sure.
    """
    lines = top = list(_read_lines(text))
    found = None
    for key in path:
        if found and _strip_comment(_unmark(found.value)):
            raise _refuse(found, "is not a mapping in block style")
        found, lines = _descend(lines, key)
        if found is None:
            _refuse_merge(line for line in top if line.indent <= top[0].indent)
            return None
        if found.value.startswith("*") or re.search("(?:^|[ ])!", found.value):
            raise _refuse(found, "has an alias or a tag")
    return found


def _descend(lines: list[Line], key: str) -> tuple[Line | None, list[Line]]:
    """Return the line of a key among those of the highest level, and the lines below it."""
    if not lines:
        return None, []
    indent = lines[0].indent
    here = [line for line in lines if line.indent <= indent]
    if not lines[0].key:
        raise _refuse(lines[0], "is not a mapping in block style")
    for line in here:
        if line.indent < indent or not (line.key or line.item):
            raise _refuse(line, "cannot be understood")
    found = [line for line in here if line.key == key]
    if len(found) > 1:
        raise _refuse(found[1], "states a key again")
    if not found:
        _refuse_merge(here)
        return None, []
    start = lines.index(found[0]) + 1
    ends = (n for n in range(start, len(lines)) if lines[n].key and lines[n].indent <= indent)
    return found[0], lines[start : next(ends, len(lines))]


def _refuse_merge(lines: Iterator[Line] | list[Line]) -> None:
    """Refuse what takes keys from elsewhere, so that one that is absent may be there."""
    for line in lines:
        if line.key in _ELSEWHERE:
            raise _refuse(line, "takes keys from elsewhere")


def _read_lines(text: str) -> Iterator[Line]:
    """Yield the lines that say something, without the texts in block style."""
    text = text.replace("\r\n", "\n")
    if _ODD.search(text):
        raise ValueError("has a character that may end a line")
    hidden, begun = None, False
    for number, whole in enumerate(text.split("\n"), 1):
        rest = whole.lstrip(" ")
        indent = len(whole) - len(rest)
        if not rest or (hidden is not None and indent > hidden):
            continue
        hidden = None
        if rest.startswith("#") or (not begun and whole.rstrip() == "---"):
            continue
        begun = True
        line, column = _read_line(number, indent, rest)
        if _BLOCK.fullmatch(_unmark(line.value)):
            hidden = column
        else:
            _refuse_open(line)
        # What an item holds is the item's, as deep as its first key may stand.
        yield line._replace(key="") if line.item else line


def _read_line(number: int, indent: int, rest: str) -> tuple[Line, int]:
    """Return a line, and the column that what it holds is indented deeper than."""
    inner, column = rest.rstrip(" "), indent
    while inner == "-" or inner.startswith("- "):
        column = indent + len(rest.rstrip(" ")) - len(inner)
        inner = inner[1:].lstrip(" ")
    line = Line(number, indent, "", inner, rest, rest != inner and rest.startswith("-"))
    if inner.startswith(_MARKERS) or inner == "?":
        raise _refuse(line, "cannot be understood")
    match = _KEY.fullmatch(inner)
    if match is None:
        return line, column
    column = indent + len(rest.rstrip(" ")) - len(inner)
    return line._replace(key=match[1].strip("\"'"), value=match[2] or ""), column


def _refuse_open(line: Line) -> None:
    """Refuse a value that may go on in lines below, however little those are indented."""
    value = _unmark(line.value)
    if value[:1] in ('"', "'"):
        closed = bool(_STRING.fullmatch(value))
    elif value[:1] in ("[", "{"):
        inside = re.sub("[ ]#.*", "", _TEXT.sub(r"\1", value))
        depth = sum(map(inside.count, "[{")) - sum(map(inside.count, "]}"))
        closed = depth == 0 and not re.search("[\"']", inside)
    else:
        closed = bool(line.key) or not _UNNAMED.search(value)
    if not closed:
        raise _refuse(line, "may go on below")


def _refuse(line: Line, why: str) -> ValueError:
    return ValueError(f"line {line.number}: {why}")


def _unmark(value: str) -> str:
    return _MARKS.sub("", value)


def _strip_comment(value: str) -> str:
    comment = re.search(r"(?:^|[ ])#", value)
    return (value[: comment.start()] if comment else value).strip()
