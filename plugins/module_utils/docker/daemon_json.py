# SPDX-License-Identifier: BSD-2-Clause
"""Read what daemon.json states of the limits that new containers get.

The rules were measured on dockerd 20.10 and 26.1: the daemon takes ``default-ulimits`` through
Go's ``encoding/json`` without a look at the values, and runc refuses them at each start.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache

from ..core.json_text import Member, byte_order_mark, find_member, find_members, is_blank, line_of
from ..core.values import RLIMITS, UNLIMITED, Declaration, NamedTuple, Rlimit, format_quantity
from ..shared_memory.size import DEFAULT_SHM_SIZE, TOO_LARGE, parse_shm_size
from .dockerd_flags import CONFIG_PATH, is_before_23

ULIMITS_KEY = "default-ulimits"
SHM_KEY = "default-shm-size"

_RUNC_NAMES = {name.upper(): name for name in RLIMITS}
_BOUNDS = ("Soft", "Hard")

_LARGEST = 2**20  # Bytes; every option that dockerd has, stated once, fills some thousand.

# With fewer descriptors runc itself cannot go on, on any release that was measured.
LEAST_NOFILE = 7
# With less it depends on the release, and on luck, whether a container comes up.
_UNSURE_BELOW = {"nofile": 24, "cpu": 2, "stack": 2**17, "data": 2**28, "as": 2**32}


class DockerDefaults(NamedTuple):
    """What a new container gets: limits by limits.conf name, /dev/shm in bytes or ``None``."""

    ulimits: Mapping[str, Rlimit]
    shm_size: int | None = None


class StatedDefault(NamedTuple):
    """One default that daemon.json or a flag states: an item of limits.conf, or ``shm_size``."""

    name: str
    limit: Rlimit
    declaration: Declaration


class Problem(NamedTuple):
    """One sentence; ``stops`` is ``dockerd``, ``containers``, or nothing: it is only in doubt.

    ``at`` is the statement that is wrong, ``None`` for what is only wanted. ``key`` is the key of
    daemon.json that it is about, and ``entry`` the one inside it, where there is one.
    """

    text: str
    stops: str
    at: Declaration | None = None
    key: str = ""
    entry: str = ""


class Entry(NamedTuple):
    """One member of a default-ulimits object.

    ``fields`` are its members as written, each name folded as Go folds it; ``None`` where the
    value is not an object. ``name`` is the limit's name as runc reads it, or nothing, ``item`` what
    the entry limits, or is meant to, and ``limit`` what runc sets: a missing bound is 0, a
    negative one wraps around.
    """

    key: str
    value: object
    fields: tuple[tuple[str, object], ...] | None
    line: int
    text: str
    name: str
    item: str
    limit: Rlimit

    def find_field(self, name: str) -> object | None:
        return _find_counting(self.fields).get(name.lower())


def make_entry(
    key: str, value: object, pairs: Iterable[tuple[str, object]] | None, line: int, text: str
) -> Entry:
    """Return a member of default-ulimits with what it means."""
    fields = None if pairs is None else tuple((_fold(name), one) for name, one in pairs)
    counting = _find_counting(fields)
    stated, soft, hard = (counting.get(name) for name in ("name", "soft", "hard"))
    named = stated if isinstance(stated, str) else ""
    name = _RUNC_NAMES.get(_upper(named), "")
    limit = Rlimit(*(one % 2**64 if isinstance(one, int) else 0 for one in (soft, hard)))
    return Entry(key, value, fields, line, text, name, name or named or key, limit)


def _find_counting(fields: Iterable[tuple[str, object]] | None) -> dict[str, object]:
    """Return the value that counts of each field: the last, but Go skips a ``null``."""
    return {name: one for name, one in fields or () if one is not None}


def _upper(name: str) -> str:
    """Return upper case as Go has it: one letter for one."""
    if name.isascii():
        return name.upper()
    return "".join(one.upper() if len(one.upper()) == 1 else one for one in name)


def _fold(name: str) -> str:
    """Return a field's name as Go compares it: any case, and two letters that look alike."""
    return name.lower().replace("\u017f", "s")


def decode_daemon_json(content: bytes, path: str = CONFIG_PATH) -> str:
    """Return the text of daemon.json.

    :raises ValueError: If it is not UTF-8, or longer than anybody writes it.
    """
    if len(content) > _LARGEST:
        raise ValueError(f"{path}: has {len(content)} bytes; at most {_LARGEST} are accepted")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: byte {error.start} is not UTF-8: write it as UTF-8") from None


def read_members(text: str, path: str, version: str = "") -> list[Member]:
    """Return the members that dockerd reads; a ``null`` is to it an object without any.

    :raises ValueError: If it reads none: the text is not a JSON object, or ends in something else.
    """
    if is_blank(text) or text.strip() == "null":
        return []
    if is_before_23(version):  # It stops reading behind the object.
        return find_members(text, path, len(byte_order_mark(text)))
    return find_members(text, path)


def read_defaults(text: str, path: str = CONFIG_PATH, version: str = "") -> list[StatedDefault]:
    """Return the defaults that dockerd would take from daemon.json, with file and line.

    An entry that dockerd or runc refuses states nothing; :mod:`.problems` names it.
    ``Name`` decides what is limited, the key it stands under does not.

    :raises ValueError: If the text is not a JSON object.
    """
    members = read_members(text, path, version)
    stated = []
    counted = read_entries(text, path, members)
    contested = find_contested(counted)
    for entry in counted:
        faults = find_faults(entry, is_sole=entry.item not in contested)
        if not any(fault.stops for fault in faults):
            value = ":".join(map(format_quantity, entry.limit))
            declaration = Declaration(path, entry.line, entry.text, value)
            stated.append(StatedDefault(entry.name, entry.limit, declaration))
    shm = find_member(members, SHM_KEY)
    size = read_shm_size(text, shm) if shm else None
    if shm and size is not None and size != TOO_LARGE:
        line = line_of(text, shm.start)
        declaration = Declaration(path, line, text[shm.start : shm.end], size)
        stated.append(StatedDefault("shm_size", Rlimit(size, size), declaration))
    return stated


def read_shm_size(text: str, member: Member) -> int | None:
    """Return the bytes that default-shm-size states; ``None`` for what dockerd refuses.

    A JSON number is refused, a string of digits is not; escapes in the string are not decoded.
    """
    written = text[member.value_start : member.end]
    size = parse_shm_size(written[1:-1]) if written.startswith('"') else None
    return DEFAULT_SHM_SIZE if size == 0 else size


def walk_entries(text: str, path: str, members: Iterable[Member]) -> list[Entry]:
    """Return every entry of every default-ulimits object as it is written, repeated ones too."""
    return [
        entry
        for block in members
        if block.key == ULIMITS_KEY and isinstance(block.value, dict)
        for entry in _read_block(text, path, block.value_start)
    ]


@lru_cache(maxsize=2)  # What refuses entries reads them, and so does what tells the others.
def _read_block(text: str, path: str, start: int) -> list[Entry]:
    return [_read_entry(text, path, member) for member in find_members(text, path, start)]


def read_entries(text: str, path: str, members: Iterable[Member]) -> list[Entry]:
    """Return the entries that count, as Go reads them.

    Objects of one key are merged, a repeated entry is replaced, a ``null`` drops all before it.
    """
    entries: dict[str, Entry] = {}
    for block in members:
        if block.key == ULIMITS_KEY and block.value is None:
            entries.clear()
        entries.update({entry.key: entry for entry in walk_entries(text, path, [block])})
    return list(entries.values())


def _read_entry(text: str, path: str, member: Member) -> Entry:
    pairs = None
    written = text[member.start : member.end]
    if isinstance(member.value, dict):
        inner = find_members(text, path, member.value_start)
        pairs = [(field.key, field.value) for field in inner]
    return make_entry(member.key, member.value, pairs, line_of(text, member.start), written)


def find_contested(counted: Iterable[Entry]) -> set[str]:
    """Return what several entries limit, each in its own way."""
    times = Counter(item for item, _limit in {(entry.item, entry.limit) for entry in counted})
    return {item for item, count in times.items() if count > 1}


def find_faults(entry: Entry, nr_open: int = UNLIMITED, is_sole: bool = True) -> list[Problem]:
    """Return what dockerd refuses in an entry, and what runc refuses at each container's start.

    :param nr_open: ``fs.nr_open`` of the host.
    :param is_sole: Whether no other entry limits the same: runc sets both, in any order, and only
        the last one counts.
    """
    refused = find_type_faults(entry)
    if refused:
        return refused
    if entry.value is None:
        return [Problem("is null, over which dockerd stumbles: no container starts", "containers")]
    texts = [*_find_name_faults(entry), *_find_bound_faults(entry, nr_open, is_sole)]
    faults = [Problem(f"{text}: no container starts", "containers") for text in texts]
    return faults or _find_doubts(entry)


def find_type_faults(entry: Entry) -> list[Problem]:
    """Return what stops dockerd, even in an entry that a later one of its key replaces."""
    if entry.value is None:
        return []
    if entry.fields is None:
        return [Problem("dockerd takes an object with Name, Soft and Hard", "dockerd")]
    faults = []
    for field, value in entry.fields:
        name = field.capitalize()
        if field == "name" and not isinstance(value, (str, type(None))):
            faults.append(f"{name} is {show_value(value)}, dockerd takes a string")
        if name in _BOUNDS and not (value is None or _is_int64(value)):
            takes = "dockerd takes whole numbers (-1: unlimited)"
            faults.append(f"{name} is {show_value(value)}, {takes}")
    return [Problem(text, "dockerd") for text in faults]


def _is_int64(value: object) -> bool:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return whole and -(2**63) <= value < 2**63  # type: ignore[operator]


def _find_name_faults(entry: Entry) -> list[str]:
    name = entry.find_field("Name")
    if not name:
        return ["Name is missing"]
    return [] if entry.name else [f"Name is {show_value(name)}, runc knows {', '.join(RLIMITS)}"]


def _find_bound_faults(entry: Entry, nr_open: int, is_sole: bool) -> list[str]:
    faults = []
    missing = [bound for bound in _BOUNDS if entry.find_field(bound) is None]
    note = f" ({' and '.join(missing)} missing, which dockerd reads as 0)" if missing else ""
    limit, name = entry.limit, entry.name
    soft, hard = map(format_quantity, limit)
    if limit.soft > limit.hard:
        faults.append(f"soft {soft} is above hard {hard}{note}")
    elif is_sole and is_too_low(name, limit):
        faults.append(f"soft {soft} is too low{note}")
    if name == "nofile" and max(limit) > nr_open:
        faults.append(f"{format_quantity(max(limit))} is above fs.nr_open, {nr_open}")
    return faults


def is_too_low(item: str, limit: Rlimit) -> bool:
    """Tell whether no container can start with a limit."""
    return item == "nofile" and limit.soft < LEAST_NOFILE


def _find_doubts(entry: Entry) -> list[Problem]:
    if entry.limit.soft < _UNSURE_BELOW.get(entry.name, 0):
        soft = format_quantity(entry.limit.soft)
        return [Problem(f"soft {soft} may be too low for a container to start", "")]
    return []


def show_value(value: object) -> str:
    """Return a value for a message; what is not a scalar goes by its kind."""
    return repr(value) if isinstance(value, (str, int, float)) else f"a {type(value).__name__}"
