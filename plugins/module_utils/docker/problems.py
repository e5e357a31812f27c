# SPDX-License-Identifier: BSD-2-Clause
"""Say what would stop dockerd, or every container, before daemon.json is written."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import islice

from ..core.json_text import Member, byte_order_mark, find_member, is_blank, line_of
from ..core.values import UNLIMITED, Declaration, Rlimit
from ..shared_memory.size import TOO_LARGE
from .daemon_json import (
    SHM_KEY,
    ULIMITS_KEY,
    DockerDefaults,
    Entry,
    Problem,
    find_contested,
    find_faults,
    find_type_faults,
    make_entry,
    read_entries,
    read_members,
    read_shm_size,
    show_value,
    walk_entries,
)
from .daemon_keys import WHOLE, describe_type_fault, find_unknown_keys
from .daemon_values import Daemon, describe_daemon, describe_value_fault, find_clash
from .dockerd_flags import Flag, is_before_23
from .flags import declare_flag, find_flag_problems
from .merge import format_ulimit

_MOST = 20  # Keys that are not ours: dockerd itself stops at the first.
_MISSPELLED = r"(default)?[-_]?((u?limits?)|shm[-_]?size)"

_REPEATED = (
    "authorization-plugin cdi-spec-dir cluster-store-opt default-address-pool default-network-opt"
    " default-ulimit dns-opt exec-opt host label log-opt node-generic-resource registry-mirror"
    " storage-opt"
)
_FLAG_KEYS = {
    **{name: f"{name}s" for name in _REPEATED.split()},
    "insecure-registry": "insecure-registries",
    "add-runtime": "",  # The one key that may stand in both places.
}


def find_daemon_json_problems(
    text: str,
    path: str,
    wanted: DockerDefaults,
    flags: Iterable[Flag] = (),
    nr_open: int = UNLIMITED,
    version: str = "",
) -> list[Problem]:
    """Return what of the limits would stop dockerd, or every container, with *wanted* merged in.

    With nothing wanted it judges the file as it stands. Other keys are judged by their form
    alone: JSON, and no flag beside them.

    :param flags: What the daemon's unit gives it, see :mod:`.dockerd_flags`.
    :param nr_open: ``fs.nr_open`` of the host.
    :param version: The daemon's; an unknown one is taken for the strictest.
    """
    flags = list(flags)
    problems = [
        Problem(f"{ULIMITS_KEY}.{item}: {fault.text}", fault.stops)
        for item, limit in wanted.ulimits.items()
        for fault in find_faults(_expect_entry(item, limit), nr_open)
    ]
    problems += find_flag_problems(flags, nr_open)
    problems += _find_text_problems(text, path, wanted, version)
    try:
        members = read_members(text, path, version)
    except ValueError as error:
        where = re.match(re.escape(path) + ":([0-9]+):", str(error))
        at = Declaration(path, int(where[1]) if where else 0, "", "")
        return [*problems, Problem(str(error), "dockerd", at)]
    problems += _find_key_problems(text, path, members, wanted)
    daemon = describe_daemon(members, flags, version)
    problems += islice(_find_other_problems(text, path, members, version, daemon), _MOST)
    problems += _find_entry_problems(text, path, members, wanted, nr_open)
    keys = set(flatten_keys(members))
    keys |= {key for key, value in zip((ULIMITS_KEY, SHM_KEY), wanted) if value}
    return [*problems, *_find_conflicts(keys, path, flags)]


def _expect_entry(item: str, limit: Rlimit) -> Entry:
    value = format_ulimit(item, limit)
    return make_entry(item, value, value.items(), 0, "")


def _find_text_problems(
    text: str, path: str, wanted: DockerDefaults, version: str
) -> Iterator[Problem]:
    if is_before_23(version) is False:
        return
    if byte_order_mark(text):
        problem = f"{path}:1: dockerd before 23.0 refuses a byte order mark"
        yield Problem(problem, "dockerd", Declaration(path, 1, "", ""))
    if is_blank(text) and not any(wanted):
        problem = f"{path}: dockerd before 23.0 refuses an empty file, {{}} is accepted"
        yield Problem(problem, "dockerd", Declaration(path, 0, "", ""))


def _find_key_problems(
    text: str, path: str, members: list[Member], wanted: DockerDefaults
) -> Iterator[Problem]:
    counting = find_member(members, SHM_KEY)
    for member in members:
        written = text[member.start : member.end]
        at = Declaration(path, line_of(text, member.start), written, "")
        place = f"{at.place}: {member.key}"
        if member.key == ULIMITS_KEY:
            if not isinstance(member.value, dict) and member.value is not None:
                seen = show_value(member.value)
                problem = f"{place}: dockerd takes an object, not {seen}"
                yield Problem(problem, "dockerd", at, ULIMITS_KEY)
        elif member.key == SHM_KEY:
            if wanted.shm_size is None:
                size = read_shm_size(text, member)
                yield from _find_size_problems(at, member.value, size, member is counting)
        elif is_misspelled(member.key) and member.value != {}:
            right = SHM_KEY if "shm" in member.key.lower() else ULIMITS_KEY
            problem = f"{place}: dockerd does not know this key, {right} is meant"
            yield Problem(problem, "dockerd", at, member.key)


def is_misspelled(key: str) -> bool:
    """Tell whether a key is one of ours, wrongly spelled."""
    return (
        key not in (ULIMITS_KEY, SHM_KEY)
        and re.fullmatch(_MISSPELLED, key, re.IGNORECASE) is not None
    )


def _find_other_problems(
    text: str, path: str, members: list[Member], version: str, daemon: Daemon
) -> Iterator[Problem]:
    """Yield what is wrong with keys that are neither ours nor meant to be."""
    for member in members:
        if member.key in (ULIMITS_KEY, SHM_KEY) or is_misspelled(member.key):
            continue
        written = text[member.start : member.end]
        at = Declaration(path, line_of(text, member.start), written, "")
        for name in find_unknown_keys(member, version):
            inside = "" if name == member.key else f".{name}"
            problem = f"{at.place}: {member.key}{inside}: dockerd does not know this key"
            yield Problem(problem, "dockerd", at, member.key)
        accepted = describe_type_fault(member) or describe_value_fault(member, daemon)
        clash = find_clash(member, daemon)
        if clash:
            problem = f"{at.place}: {member.key}: dockerd refuses it beside {clash}"
            yield Problem(problem, "dockerd", at, member.key)
        elif accepted:
            problem = f"{at.place}: {member.key}: dockerd takes {accepted}"
            yield Problem(problem, "dockerd", at, member.key)


def _find_size_problems(
    at: Declaration, value: object, size: int | None, counts: bool
) -> Iterator[Problem]:
    place, seen = f"{at.place}: {SHM_KEY}", show_value(value)
    if size is None:
        problem = f"{place}: {seen} is not a size, dockerd takes a string such as '8G'"
        yield Problem(problem, "dockerd", at, SHM_KEY)
    elif size == TOO_LARGE and counts:
        problem = f"{place}: {seen} is too large: no container starts"
        yield Problem(problem, "containers", at, SHM_KEY)


def _find_entry_problems(
    text: str, path: str, members: list[Member], wanted: DockerDefaults, nr_open: int
) -> Iterator[Problem]:
    limits: dict[str, Rlimit] = {}
    counted = read_entries(text, path, members)
    contested = find_contested(counted)
    counting = {(entry.line, entry.text) for entry in counted}
    for entry in walk_entries(text, path, members):
        item, limit = entry.item, entry.limit
        if item in wanted.ulimits:
            continue
        at = Declaration(path, entry.line, entry.text, "")
        place = f"{at.place}: {ULIMITS_KEY}.{entry.key}"
        counts = (entry.line, entry.text) in counting
        sole = item not in contested
        for fault in find_faults(entry, nr_open, sole) if counts else find_type_faults(entry):
            problem = f"{place}: {fault.text}"
            yield Problem(problem, fault.stops, at, ULIMITS_KEY, entry.key)
        if counts and limits.setdefault(item, limit) != limit:
            problem = f"{place}: {item} is stated twice, which one wins is not defined"
            yield Problem(problem, "", at, ULIMITS_KEY, entry.key)


def flatten_keys(members: Iterable[Member]) -> Iterator[str]:
    """Yield the options that dockerd sees: members of an object it does not know among them."""
    for member in members:
        if isinstance(member.value, dict) and member.key not in WHOLE:
            yield from member.value
        else:
            yield member.key


def _find_conflicts(keys: Collection[str], path: str, flags: Iterable[Flag]) -> Iterator[Problem]:
    for flag in flags:
        key = _FLAG_KEYS.get(flag.name, flag.name)
        if key in keys:
            at = declare_flag(flag)
            text = f"{at.place}: --{flag.name} and {key} in {path} exclude each other,"
            problem = f"{text} dockerd does not start with both"
            yield Problem(problem, "dockerd", at, key)
