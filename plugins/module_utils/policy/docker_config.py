# SPDX-License-Identifier: BSD-2-Clause
"""Read and state what a Docker daemon gives its containers by default.

The rules were measured on dockerd 20.10 and 26.1: the daemon takes ``default-ulimits`` through
Go's ``encoding/json`` without a look at the values, and runc refuses them at each start.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .declaration import Declaration
from .dockerd_flags import CONFIG_PATH
from .json_text import (
    Member,
    find_member,
    find_members,
    is_blank,
    line_of,
    remove_member,
    set_member,
)
from .rlimit import RLIMITS, UNLIMITED, Rlimit, format_quantity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

ULIMITS_KEY = "default-ulimits"
SHM_KEY = "default-shm-size"

_DEFAULT_SHM_SIZE = 64 * 2**20
_SHM_UNITS = "kmgtp"
_SHM_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([kmgtp]?)i?b?", re.IGNORECASE)


class DockerDefaults(NamedTuple):
    """What a new container gets: limits by limits.conf name, /dev/shm in bytes or ``None``."""

    ulimits: Mapping[str, Rlimit]
    shm_size: int | None = None


class StatedDefault(NamedTuple):
    """One default that daemon.json states: an item of limits.conf, or ``shm_size``."""

    name: str
    limit: Rlimit
    declaration: Declaration


class Entry(NamedTuple):
    """One member of a default-ulimits object. ``fields`` hold the last value of each name."""

    key: str
    fields: dict[str, object] | None
    line: int
    text: str

    @property
    def name(self) -> str:
        name = (self.fields or {}).get("name")
        return name.lower() if isinstance(name, str) else ""

    @property
    def item(self) -> str:
        """Return what the entry limits, or is meant to."""
        return self.name or self.key


def read_defaults(text: str, path: str = CONFIG_PATH) -> list[StatedDefault]:
    """Return the defaults that dockerd would take from daemon.json, with file and line.

    An entry that dockerd or runc refuses states nothing; :func:`find_daemon_json_problems`
    names it. ``Name`` decides what is limited, the key it stands under does not.

    :raises ValueError: If the text is no JSON object.
    """
    members = [] if is_blank(text) else find_members(text, path)
    stated = []
    for entry in read_entries(text, path, members):
        if not find_faults(entry):
            limit = _read_limit(entry)
            value = f"{format_quantity(limit.soft)}:{format_quantity(limit.hard)}"
            declaration = Declaration(path, entry.line, entry.text, value)
            stated.append(StatedDefault(entry.name, limit, declaration))
    shm = find_member(members, SHM_KEY)
    size = parse_shm_size(shm.value) if shm else None
    if shm and size is not None:
        line = line_of(text, shm.start)
        declaration = Declaration(path, line, text[shm.start : shm.end], size)
        stated.append(StatedDefault("shm_size", Rlimit(size, size), declaration))
    return stated


def collect_defaults(stated: Iterable[StatedDefault]) -> DockerDefaults:
    """Return the values alone; of two statements about one thing the last."""
    limits = {default.name: default.limit for default in stated}
    size = limits.pop("shm_size", None)
    return DockerDefaults(limits, size.hard if size else None)


def parse_shm_size(value: object) -> int | None:
    """Read a size as dockerd does (``units.RAMInBytes``); ``None`` for what it refuses.

    A JSON number is refused by dockerd, a string of digits is not. 0 stands for the default.
    """
    match = _SHM_SIZE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return None
    power = _SHM_UNITS.index(match[2].lower()) + 1 if match[2] else 0
    size = float(match[1]) * (1 << 10 * power)  # Infinite where it has hundreds of digits.
    return int(size) or _DEFAULT_SHM_SIZE if size < 2**63 else None


def format_shm_size(size: int) -> str:
    """Write a size for dockerd: ``8G``, or plain bytes where it is no whole number of KiB."""
    for power in range(len(_SHM_UNITS), 0, -1):
        if size and size % (1 << 10 * power) == 0:
            return f"{size >> 10 * power}{_SHM_UNITS[power - 1].upper()}"
    return str(size)


def read_entries(text: str, path: str, members: list[Member]) -> list[Entry]:
    """Return what Go reads: objects of one key are merged, a repeated entry is replaced."""
    entries: dict[str, Entry] = {}
    for block in members:
        if block.key == ULIMITS_KEY and isinstance(block.value, dict):
            for member in find_members(text, path, block.value_start):
                entries[member.key] = _read_entry(text, path, member)
    return list(entries.values())


def _read_entry(text: str, path: str, member: Member) -> Entry:
    fields = None
    if isinstance(member.value, dict):
        inner = find_members(text, path, member.value_start)
        fields = {field.key.lower(): field.value for field in inner if field.value is not None}
    written = text[member.start : member.end]
    return Entry(member.key, fields, line_of(text, member.start), written)


def _read_limit(entry: Entry) -> Rlimit:
    fields = entry.fields or {}
    bounds = (fields.get(bound, 0) for bound in Rlimit._fields)
    soft, hard = (bound % 2**64 if isinstance(bound, int) else 0 for bound in bounds)
    return Rlimit(soft, hard)


def find_faults(entry: Entry, nr_open: int = UNLIMITED) -> list[str]:
    """Return what dockerd refuses in an entry, or what runc refuses at each container's start."""
    if entry.fields is None:
        return ["dockerd takes an object with Name, Soft and Hard"]
    faults = _find_name_faults(entry)
    whole = True
    for bound in ("Soft", "Hard"):
        value = entry.fields.get(bound.lower())
        if value is None:
            faults.append(f"{bound} is missing, which dockerd reads as 0")
        elif isinstance(value, bool) or not isinstance(value, int) or not -(2**63) <= value < 2**63:
            faults.append(
                f"{bound} is {show_value(value)}, dockerd takes whole numbers (-1: unlimited)"
            )
            whole = False
    limit = _read_limit(entry)
    if whole and limit.soft > limit.hard:
        soft, hard = map(format_quantity, limit)
        faults.append(f"soft {soft} is above hard {hard}: no container starts")
    if whole and entry.name == "nofile" and max(limit) > nr_open:
        highest = format_quantity(max(limit))
        faults.append(f"{highest} is above fs.nr_open, {nr_open}: no container starts")
    return faults


def _find_name_faults(entry: Entry) -> list[str]:
    name = (entry.fields or {}).get("name")
    if name is None:
        return ["Name is missing: no container starts"]
    if entry.name not in RLIMITS:
        return [f"Name is {show_value(name)}, runc knows {', '.join(RLIMITS)}"]
    return []


def show_value(value: object) -> str:
    """Return a value for a message; what is no scalar goes by its kind."""
    return repr(value) if isinstance(value, (str, int, float)) else f"a {type(value).__name__}"


def format_ulimit(item: str, limit: Rlimit) -> dict[str, object]:
    """Return one entry as dockerd wants it: ``Name`` decides, and -1 is unlimited."""
    soft, hard = (-1 if bound >= UNLIMITED else bound for bound in limit)
    return {"Name": item, "Hard": hard, "Soft": soft}


def merge_daemon_json(text: str, wanted: DockerDefaults) -> str:
    """State the wanted defaults and leave every other byte as it is.

    The text comes back unchanged where it states them already, in whatever spelling.

    :raises ValueError: If the text is no JSON object, or a wanted limit has no place in it.
    """
    text = _merge_ulimits(text, wanted.ulimits)
    if wanted.shm_size is None or wanted.shm_size == collect_defaults(read_defaults(text)).shm_size:
        return text
    return set_member(text, SHM_KEY, format_shm_size(wanted.shm_size))


def _merge_ulimits(text: str, wanted: Mapping[str, Rlimit]) -> str:
    members = [] if is_blank(text) else find_members(text)
    entries = read_entries(text, "", members)
    missing = {item: wanted[item] for item in wanted if not _is_stated(entries, item, wanted[item])}
    if not missing:
        return text
    written = {item: format_ulimit(item, limit) for item, limit in missing.items()}
    block = find_member(members, ULIMITS_KEY)
    if block is None or not block.value:
        return set_member(text, ULIMITS_KEY, written)
    if not isinstance(block.value, dict):
        raise ValueError(f"{ULIMITS_KEY} is {show_value(block.value)}, dockerd takes an object")
    for entry in entries:
        if entry.key in missing and entry.item != entry.key:
            raise ValueError(f"{ULIMITS_KEY}.{entry.key} limits {entry.item}: rename that key")
    stray = [entry.key for entry in entries if entry.item in missing and entry.key != entry.item]
    text = _remove_entries(text, stray)
    block = _find_blocks(text)[-1]
    inner = text[block.value_start : block.end]
    for item, value in written.items():
        inner = set_member(inner, item, value)
    return text[: block.value_start] + inner + text[block.end :]


def _is_stated(entries: Iterable[Entry], item: str, limit: Rlimit) -> bool:
    """Tell whether one sound entry, and no second one, states the limit."""
    found = [entry for entry in entries if entry.item == item]
    return len(found) == 1 and not find_faults(found[0]) and _read_limit(found[0]) == limit


def _find_blocks(text: str) -> list[Member]:
    return [
        member
        for member in find_members(text)
        if member.key == ULIMITS_KEY and isinstance(member.value, dict)
    ]


def _remove_entries(text: str, keys: Collection[str]) -> str:
    for block in reversed(_find_blocks(text)):
        inner = text[block.value_start : block.end]
        for key in keys:
            inner = remove_member(inner, key)
        text = text[: block.value_start] + inner + text[block.end :]
    return text


def remove_from_daemon_json(text: str, items: Collection[str], shm: bool = False) -> str:
    """Take limits out, by limits.conf name, and the /dev/shm size; the exact inverse of merging.

    A default-ulimits that holds nothing more goes too.

    :raises ValueError: If the text is no JSON object.
    """
    if is_blank(text):
        return text
    entries = read_entries(text, "", find_members(text))
    keys = [entry.key for entry in entries if entry.item in items]
    text = _remove_entries(text, keys)
    if keys and not any(block.value for block in _find_blocks(text)):
        text = remove_member(text, ULIMITS_KEY)
    return remove_member(text, SHM_KEY) if shm else text
