# SPDX-License-Identifier: BSD-2-Clause
"""What containers.conf(5) and its drop-ins give new containers of Podman, and which line says so.

Each file replaces what earlier ones state, the whole list of limits at once; since Podman 4.9 a
list may ask to be added instead, and then so are all later ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..containers.policy import CONTAINER_ITEMS
from ..core.quote import quote
from ..core.toml_text import Node, Scalar, TomlError, find_key, read_toml
from ..core.values import UNLIMITED, Declaration, NamedTuple, Rlimit

VENDOR = "/usr/share/containers/containers.conf"
MAIN = "/etc/containers/containers.conf"
DROP_INS = f"{MAIN}.d"
OWN = f"{DROP_INS}/90-mlhost.conf"
USERS_MAIN = ".config/containers/containers.conf"
"""Below the home of a user. Root's own counts since Podman 4.9."""

LIMITS_KEY = "default_ulimits"
SHM_KEY = "shm_size"
TASKS_KEY = "pids_limit"
DEFAULT_TASKS = 2048
"""What Podman bounds a container with where no file states it: containers.conf(5)."""

NO_KEY = "is not a key that Podman knows"
_KEYS = (LIMITS_KEY, SHM_KEY, TASKS_KEY)

_ULIMIT = re.compile(r"([a-z]+)=([+-]?[0-9]{1,40})(?::([+-]?[0-9]{1,40}))?")
_LONGEST_NUMBER = 80  # Before Python 3.11 int() takes the square of that.
_SIZE = re.compile(r"([0-9]{1,40}(?:\.[0-9]{1,40})?) ?([kKmMgGtTpP]?)[iI]?[bB]?")
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}


class Ulimit(NamedTuple):
    """One entry of a list of limits, with the line on which it stands."""

    item: str
    limit: Rlimit
    at: Declaration


class Block(NamedTuple):
    """A list of limits as one file states it, from its key's line to its end."""

    at: Declaration
    end: int
    ulimits: tuple[Ulimit, ...]
    append: bool | None = None
    fault: ConfError | None = None
    """What keeps CRI-O from starting, unless a later list takes the place of this one."""


class Stated(NamedTuple):
    """What one file states; ``shm`` holds the size in bytes, ``tasks`` the number as written."""

    path: str
    block: Block | None = None
    shm: Declaration | None = None
    tasks: Declaration | None = None


class ConfError(ValueError):
    """A file that cannot be read; Podman stops at most of them. ``at`` is the line."""

    def __init__(self, at: Declaration, reason: str) -> None:
        super().__init__(f"{at.place}: {reason}")
        self.at = at
        self.reason = reason


def order_files(paths: Iterable[str]) -> list[str]:
    """Return files in the order in which Podman reads them: a user's own come last."""
    ranked = [(rank, encode_path(path), path) for path in paths for rank in _rank(path)]
    return [path for dummy, encoded, path in sorted(ranked)]


def _rank(path: str) -> Iterator[int]:
    """Yield the place of a file's kind in the order; nothing for a file that is not read."""
    folder, name = path.rpartition("/")[::2]
    if path in (VENDOR, MAIN):
        yield (VENDOR, MAIN).index(path)
    elif name.endswith(".conf") and folder == DROP_INS:
        yield 2
    elif path.endswith(f"/{USERS_MAIN}"):
        yield 3
    elif name.endswith(".conf") and folder.endswith(f"/{USERS_MAIN}.d"):
        yield 4


def encode_path(path: str) -> bytes:
    """Return a path by its bytes, by which engines sort."""
    return path.encode("utf-8", "surrogateescape")


def read_conf(path: str, text: str) -> Stated:
    """Return what a file states.

    :param text: Read as latin-1, so that every byte survives.
    :raises ConfError: If it is not TOML, or something in it has a form that we do not know.
    """
    rows = text.split("\n")
    try:
        entries = read_toml(text.encode("latin-1").decode("utf-8"))
        ulimits = find_key(entries, "containers", LIMITS_KEY)
        shm = find_key(entries, "containers", SHM_KEY)
        tasks = find_key(entries, "containers", TASKS_KEY)
        block = _read_block(path, rows, ulimits.node) if ulimits else None
        size = _read_size(path, rows, shm.node) if shm else None
        most = read_tasks(path, rows, tasks.node) if tasks else None
    except UnicodeError:
        raise ConfError(Declaration(path, 0, "", ""), "is not UTF-8") from None
    except TomlError as error:
        raise ConfError(declare(path, rows, error.line), str(error)) from None
    return Stated(path, block, size, most)


def read_all(files: Mapping[str, str]) -> tuple[Stated, ...]:
    """Return what files state, in the order in which Podman reads them.

    :param files: Their texts by path.
    :raises ConfError: As :func:`read_conf` does.
    """
    return tuple(read_conf(path, files[path]) for path in order_files(files))


def declare(path: str, rows: Sequence[str], line: int, value: int | str = "") -> Declaration:
    text = rows[line - 1] if line <= len(rows) else ""
    return Declaration(path, line, text, value)


def _read_block(path: str, rows: Sequence[str], node: Node) -> Block:
    if not isinstance(node.value, list):
        raise TomlError(node.line, f"{LIMITS_KEY} takes a list of texts")
    ulimits, append = [], None
    for one in node.value:
        if isinstance(one.value, dict):
            append = _read_append(one)
        else:
            ulimits.append(read_ulimit(path, rows, one))
    return Block(declare(path, rows, node.line), node.end, tuple(ulimits), append)


def _read_append(node: Node) -> bool:
    flag = node.value.get("append") if isinstance(node.value, dict) else None
    word = flag.value if flag else None
    if not isinstance(word, Scalar) or word.text not in ("true", "false"):
        raise TomlError(node.line, f"{LIMITS_KEY} knows only {{append=true}} or false")
    return word.text == "true"


def read_ulimit(path: str, rows: Sequence[str], node: Node) -> Ulimit:
    try:
        item, limit = parse_entry(node.value)
    except ValueError as error:
        raise TomlError(node.line, str(error)) from None
    return Ulimit(item, limit, declare(path, rows, node.line, str(node.value)))


def parse_entry(entry: object) -> tuple[str, Rlimit]:
    """Read a limit as Podman takes it: ``nofile=1024:4096``.

    :raises ValueError: If it does not.
    """
    match = _ULIMIT.fullmatch(entry) if isinstance(entry, str) else None
    if match is None or match[1] not in CONTAINER_ITEMS:
        raise ValueError(f"{quote(entry)} is not a limit; accepted is item=soft:hard")
    soft = int(match[2])
    hard = soft if match[3] is None else int(match[3])
    if not all(-(2**63) <= bound < 2**63 for bound in (soft, hard)):
        raise ValueError(f"{quote(entry)} is beyond every number")
    if hard != -1 and (soft == -1 or soft > hard):
        raise ValueError(f"{quote(entry)}: soft is above hard")
    return match[1], Rlimit(*(UNLIMITED if bound < 0 else bound for bound in (soft, hard)))


def _read_size(path: str, rows: Sequence[str], node: Node) -> Declaration:
    try:
        size = parse_size(node.value)
    except ValueError as error:
        raise TomlError(node.line, str(error)) from None
    return declare(path, rows, node.line, size)


def read_tasks(path: str, rows: Sequence[str], node: Node) -> Declaration:
    try:
        text = node.value.text if isinstance(node.value, Scalar) else ""
        number = int(text if len(text) <= _LONGEST_NUMBER else "", 0)
    except ValueError:
        raise TomlError(node.line, f"{TASKS_KEY} takes a whole number") from None
    if not -(2**63) <= number < 2**63:
        raise TomlError(node.line, f"{TASKS_KEY} is beyond every number")
    return declare(path, rows, node.line, number)


def format_tasks(tasks: int) -> str:
    """Return a number of tasks as Podman and its options read it: -1 is unlimited."""
    return "-1" if tasks >= UNLIMITED else str(tasks)


def find_tasks(at: Declaration | None, default: int = DEFAULT_TASKS) -> int | None:
    """Return what containers are bounded with; ``None`` where 0 leaves it to systemd.

    Source: ``InitResourceLimits()`` of Podman, which passes a 0 on to no runtime.
    """
    if at is None:
        return default
    value = int(at.value)
    return UNLIMITED if value < 0 else value or None


def parse_size(size: object, base: int = 1000) -> int:
    """Read a size as Podman takes it; in containers.conf it counts by the thousand.

    :raises ValueError: If it does not.
    """
    match = _SIZE.fullmatch(size) if isinstance(size, str) else None
    if match is None:
        raise ValueError(f"{SHM_KEY} takes a size as a text")
    factor = base ** _POWERS[match[2].lower()]  # 1GiB are 10**9 bytes as well.
    return int(match[1]) * factor if match[1].isdigit() else int(float(match[1]) * factor)


def format_entry(item: str, limit: Rlimit) -> str:
    """Return a limit as Podman reads it; it knows no word for "no limit" but -1."""
    soft, hard = ("-1" if bound == UNLIMITED else str(bound) for bound in limit)
    return f"{item}={soft}:{hard}"


class Defaults(NamedTuple):
    """What new containers get from files, and the list that decides of limits as a whole."""

    ulimits: Mapping[str, Ulimit] = {}
    shm: Declaration | None = None
    block: Block | None = None
    tasks: Declaration | None = None


def resolve(stated: Iterable[Stated]) -> Defaults:
    """Return what files give together, in the order in which Podman reads them."""
    ulimits: dict[str, Ulimit] = {}
    shm, tasks, last, append = None, None, None, False
    for one in stated:
        shm, tasks = one.shm or shm, one.tasks or tasks
        if one.block is None:
            continue
        append = append if one.block.append is None else one.block.append
        new = {ulimit.item: ulimit for ulimit in one.block.ulimits}
        ulimits = {**ulimits, **new} if append else new
        last = one.block
    return Defaults(ulimits, shm, last, tasks)


def find_unread_keys(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines whose key looks like ours and that Podman skips, with the reason.

    :param text: Of a file that :func:`read_conf` can read.
    """
    for entry in read_toml(text.encode("latin-1").decode("utf-8")):
        key, table = entry.keys[-1].lower(), ".".join(entry.keys[:-1]).lower()
        name = key.replace("-", "_")
        if table == "containers" and key not in _KEYS:
            if re.fullmatch(
                r"(default_?)?u?limits?(_?default)?s?|shm(_?size)?|pids?(_?limits?)?|tasks(_?max)?",
                name,
            ):
                yield entry.node.line, f"{entry.keys[-1]} {NO_KEY}"
        elif table != "containers" and name in _KEYS:
            where = f"[{table}]" if table else "no table"
            yield entry.node.line, f"it stands in {where}, not in [containers]"
