# SPDX-License-Identifier: BSD-2-Clause
"""What crio.conf(5) and its drop-ins give containers of CRI-O, and which line says so.

Sources: ``UpdateFromFile()`` and ``UpdateFromPath()`` of ``pkg/config/config.go``, and
``LoadUlimits()`` of ``internal/config/ulimits`` of CRI-O. Each file is read over those before it,
so that a list replaces the last one whole. Limits are read once all files are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..core.toml_text import Node, TomlError, find_key, read_toml
from ..core.values import UNLIMITED, Declaration
from ..podman.containers_conf import (
    LIMITS_KEY,
    TASKS_KEY,
    Block,
    ConfError,
    Stated,
    Ulimit,
    declare,
    encode_path,
    read_tasks,
    read_ulimit,
)

MAIN = "/etc/crio/crio.conf"
DROP_INS = f"{MAIN}.d"
OWN = f"{DROP_INS}/99-mlhost-limits.conf"
TABLE = "[crio.runtime]"
_KEYS = ("crio", "runtime")

DEFAULT_TASKS = UNLIMITED
"""What CRI-O bounds a container with where no file states it: ``DefaultPidsLimit`` is -1."""

OPTIONS = {LIMITS_KEY: "default-ulimits", TASKS_KEY: "pids-limit"}
"""The options that count more than all files. A list of theirs replaces that of the files."""


def order_files(paths: Iterable[str]) -> list[str]:
    """Return files in the order in which CRI-O reads them.

    Whatever lies below the folder is read, at any depth and whatever its name ends with, sorted
    in each folder: ``filepath.Walk()``.
    """
    known = (path for path in paths if path == MAIN or path.startswith(f"{DROP_INS}/"))
    return sorted(known, key=lambda path: (path != MAIN, encode_path(path).split(b"/")))


def read_all(files: Mapping[str, str]) -> tuple[Stated, ...]:
    """Return what files state, in the order in which CRI-O reads them.

    :param files: Their texts by path.
    :raises ConfError: Where CRI-O does not start with them, or a form of TOML is not known to us.
    """
    stated = tuple(read_conf(path, files[path]) for path in order_files(files))
    blocks = [one.block for one in stated if one.block]
    if blocks and blocks[-1].fault:
        raise blocks[-1].fault
    return stated


def read_conf(path: str, text: str) -> Stated:
    """Return what a file states; a list with an entry that is not a limit has a ``fault``.

    :param text: Read as latin-1, so that every byte survives.
    :raises ConfError: If it is not TOML, or a key has a value of another kind.
    """
    rows = text.split("\n")
    try:
        entries = read_toml(text.encode("latin-1").decode("utf-8"))
        ulimits = find_key(entries, *_KEYS, LIMITS_KEY)
        tasks = find_key(entries, *_KEYS, TASKS_KEY)
        block = _read_block(path, rows, ulimits.node) if ulimits else None
        most = read_tasks(path, rows, tasks.node) if tasks else None
    except UnicodeError:
        raise ConfError(Declaration(path, 0, "", ""), "is not UTF-8") from None
    except TomlError as error:
        raise ConfError(declare(path, rows, error.line), str(error)) from None
    return Stated(path, block, None, most)


def _read_block(path: str, rows: Sequence[str], node: Node) -> Block:
    if not isinstance(node.value, list):
        raise TomlError(node.line, f"{LIMITS_KEY} takes a list of texts")
    ulimits: list[Ulimit] = []
    fault = None
    for one in node.value:
        if not isinstance(one.value, str):
            raise TomlError(one.line, f"{LIMITS_KEY} takes a list of texts")
        try:
            ulimits.append(read_ulimit(path, rows, one))
        except TomlError as error:
            fault = fault or ConfError(declare(path, rows, error.line), str(error))
    return Block(declare(path, rows, node.line), node.end, tuple(ulimits), fault=fault)
