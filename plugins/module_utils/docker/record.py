# SPDX-License-Identifier: BSD-2-Clause
"""Remember what daemon.json held before us, so that it can be given back byte for byte."""

from __future__ import annotations

import json
from collections.abc import Mapping

from ..core.json_text import find_member, find_members, is_blank, remove_member, replace_member
from ..core.values import NamedTuple, Rlimit
from .daemon_json import (
    SHM_KEY,
    ULIMITS_KEY,
    DockerDefaults,
    read_entries,
    read_shm_size,
    walk_entries,
)
from .merge import find_blocks

FOLDER = "/var/lib/mlhost-limits"
_SHM = "shm_size"


class Record(NamedTuple):
    """What daemon.json would be without us, what we wrote last, and which values are ours.

    ``original`` is ``None`` where there would be no file. ``ours`` holds limits by limits.conf
    name, and ``shm_size`` in bytes as both bounds.
    """

    original: str | None
    written: str
    ours: Mapping[str, Rlimit] = {}


def find_record_path(path: str) -> str:
    """Return where the record of a daemon.json lies."""
    return f"{FOLDER}/{path.lstrip('/')}.record"


def format_record(record: Record) -> str:
    """Return the text of a record's file."""
    return json.dumps(record._asdict(), indent=1) + "\n"


def parse_record(text: str, path: str) -> Record:
    """Read a record's file.

    :param path: For the message.
    :raises ValueError: If it is not one of ours.
    """
    try:
        raw = json.loads(text)
        ours = {
            str(item): Rlimit(int(soft), int(hard)) for item, (soft, hard) in raw["ours"].items()
        }
        original, written = raw["original"], raw["written"]
        if not isinstance(written, str) or not isinstance(original, (str, type(None))):
            raise TypeError
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        problem = "is not a record of mlhost.limits; remove it to go on without"
        raise ValueError(f"{path}: {problem}") from None
    return Record(original, written, ours)


def extend_record(
    record: Record | None, before: str | None, after: str, added: DockerDefaults
) -> Record:
    """Return the record of a change.

    :param record: That of the changes so far.
    :param before: The file as it stands; ``None`` where it is absent.
    :param added: What *after* states and *before* did not.
    """
    ours = dict(added.ulimits)
    if added.shm_size is not None:
        ours[_SHM] = Rlimit(added.shm_size, added.shm_size)
    if record is None:
        return Record(before, after, ours)
    kept = {} if before is None else _find_held(before, record.ours)
    return Record(undo(before, record), after, {**kept, **ours})


def find_dropped(
    text: str | None, record: Record, wanted: DockerDefaults, path: str = "JSON"
) -> set[str]:
    """Return what is ours, still stands there, and is not asked for any more.

    :raises ValueError: If somebody made it something else than a JSON object.
    """
    if text is not None and not is_blank(text):
        find_members(text, path)
    asked = set(wanted.ulimits) | ({_SHM} if wanted.shm_size is not None else set())
    return set() if text is None else set(_find_held(text, record.ours)) - asked


def _find_held(text: str, ours: Mapping[str, Rlimit]) -> dict[str, Rlimit]:
    """Return those of our values that still stand there; another value is somebody else's."""
    members = [] if is_blank(text) else find_members(text)
    held = {}
    for item, limit in ours.items():
        if item == _SHM:
            sizes = [read_shm_size(text, member) for member in members if member.key == SHM_KEY]
            same = sizes == [limit.hard]
        else:
            found = [entry for entry in walk_entries(text, "", members) if entry.item == item]
            same = [(entry.key, entry.limit) for entry in found] == [(item, limit)]
        if same:
            held[item] = limit
    return held


def undo(text: str | None, record: Record, path: str = "JSON") -> str | None:
    """Return daemon.json as it would be without us.

    Where nobody else changed it that is the original; otherwise our values go back to what they
    were, one by one, and all else stays.

    :param text: The file as it stands; ``None`` where it is absent.
    :param path: For the message.
    :raises ValueError: If somebody made it something else than a JSON object.
    """
    if text == record.written:
        return record.original
    if text is None:
        return None
    if not is_blank(text):
        find_members(text, path)
    original = record.original or ""
    for item in _find_held(text, record.ours):
        text = _put_size_back(text, original) if item == _SHM else _put_back(text, original, item)
    alone = record.original is None and (is_blank(text) or not find_members(text))
    return None if alone else text


def _put_size_back(text: str, original: str) -> str:
    member = None if is_blank(original) else find_member(find_members(original), SHM_KEY)
    if member is None:
        return remove_member(text, SHM_KEY)
    return replace_member(text, SHM_KEY, original[member.start : member.end])


def _put_back(text: str, original: str, item: str) -> str:
    """Give one limit back the entry that it had; a default-ulimits that we made goes too."""
    members = [] if is_blank(original) else find_members(original)
    entries = read_entries(original, "", members)
    had = [entry.text for entry in entries if item in (entry.item, entry.key)]
    (block,) = [one for one in find_blocks(text) if item in one.value]  # type: ignore[operator]
    inner = text[block.value_start : block.end]
    inner = replace_member(inner, item, ", ".join(had)) if had else remove_member(inner, item)
    text = text[: block.value_start] + inner + text[block.end :]
    before = find_member(members, ULIMITS_KEY)
    if not any(block.value for block in find_blocks(text)):
        if before is None:
            return remove_member(text, ULIMITS_KEY)
        if not before.value:
            return replace_member(text, ULIMITS_KEY, original[before.start : before.end])
    return text
