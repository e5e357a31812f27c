# SPDX-License-Identifier: BSD-2-Clause
"""State defaults in daemon.json, and leave every other byte as it is."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from ..core.json_text import Member, find_member, find_members, is_blank, remove_member, set_member
from ..core.values import UNLIMITED, Rlimit
from ..shared_memory.size import format_shm_size
from .daemon_json import (
    SHM_KEY,
    ULIMITS_KEY,
    DockerDefaults,
    Entry,
    find_faults,
    find_type_faults,
    read_entries,
    read_shm_size,
    show_value,
    walk_entries,
)


def format_ulimit(item: str, limit: Rlimit) -> dict[str, object]:
    """Return one entry as dockerd wants it: ``Name`` decides, and -1 is unlimited."""
    soft, hard = (-1 if bound >= UNLIMITED else bound for bound in limit)
    return {"Name": item, "Hard": hard, "Soft": soft}


def find_unstated(text: str, wanted: DockerDefaults) -> DockerDefaults:
    """Return those of the wanted defaults that daemon.json does not state, in any spelling.

    :raises ValueError: If the text is not a JSON object.
    """
    members = [] if is_blank(text) else find_members(text)
    written = walk_entries(text, "", members)
    counted = read_entries(text, "", members)
    ulimits = {
        item: limit
        for item, limit in wanted.ulimits.items()
        if not _is_stated(written, counted, item, limit)
    }
    sizes = [read_shm_size(text, member) for member in members if member.key == SHM_KEY]
    stated = sizes[-1:] == [wanted.shm_size] and None not in sizes
    return DockerDefaults(ulimits, None if stated else wanted.shm_size)


def _is_stated(
    written: Collection[Entry], counted: Collection[Entry], item: str, limit: Rlimit
) -> bool:
    """Tell whether one sound entry, and no second one, states the limit."""
    found = [entry for entry in counted if entry.item == item]
    if len(found) != 1 or found[0].limit != limit:
        return False
    if any(fault.stops for fault in find_faults(found[0])):
        return False
    return not any(find_type_faults(entry) for entry in written if entry.key == found[0].key)


def merge_daemon_json(text: str, wanted: DockerDefaults) -> str:
    """State the wanted defaults and leave every other byte as it is.

    The text comes back unchanged where it states them already.

    :raises ValueError: If the text is not a JSON object, or a wanted limit has no place in it.
    """
    ulimits, size = find_unstated(text, wanted)
    if ulimits:
        text = _merge_ulimits(text, ulimits)
    if size is None:
        return text
    _refuse_repeated([] if is_blank(text) else find_members(text), [SHM_KEY])
    return set_member(text, SHM_KEY, format_shm_size(size))


def _merge_ulimits(text: str, missing: Mapping[str, Rlimit]) -> str:
    written = {item: format_ulimit(item, limit) for item, limit in missing.items()}
    members = [] if is_blank(text) else find_members(text)
    _refuse_repeated(members, [ULIMITS_KEY])
    block = find_member(members, ULIMITS_KEY)
    if block is None or not block.value:
        return set_member(text, ULIMITS_KEY, written)
    if not isinstance(block.value, dict):
        raise ValueError(f"{ULIMITS_KEY} is {show_value(block.value)}, dockerd takes an object")
    _refuse_repeated(find_members(text, start=block.value_start), missing, f"{ULIMITS_KEY}.")
    entries = walk_entries(text, "", members)
    for entry in entries:
        if entry.key in missing and entry.item != entry.key:
            raise ValueError(f"{ULIMITS_KEY}.{entry.key} limits {entry.item}: rename that key")
    stray = [entry.key for entry in entries if entry.item in missing and entry.key != entry.item]
    text = _remove_entries(text, stray)
    block = find_blocks(text)[-1]
    inner = text[block.value_start : block.end]
    for item, value in written.items():
        inner = set_member(inner, item, value)
    return text[: block.value_start] + inner + text[block.end :]


def _refuse_repeated(members: Iterable[Member], keys: Iterable[str], above: str = "") -> None:
    written = [member.key for member in members]
    for key in keys:
        if written.count(key) > 1:
            raise ValueError(f"{above}{key} stands there more than once: state it once")


def find_blocks(text: str) -> list[Member]:
    """Return the default-ulimits objects, of which there may be more than one."""
    return [
        member
        for member in find_members(text)
        if member.key == ULIMITS_KEY and isinstance(member.value, dict)
    ]


def _remove_entries(text: str, keys: Collection[str]) -> str:
    for block in reversed(find_blocks(text)):
        inner = text[block.value_start : block.end]
        for key in keys:
            inner = remove_member(inner, key)
        text = text[: block.value_start] + inner + text[block.end :]
    return text
