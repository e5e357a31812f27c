# SPDX-License-Identifier: BSD-2-Clause
"""Say what would stop dockerd, or every container, before daemon.json is written."""

from __future__ import annotations

import re

from .docker_config import (
    SHM_KEY,
    ULIMITS_KEY,
    Entry,
    find_faults,
    format_ulimit,
    parse_shm_size,
    read_entries,
    show_value,
)
from .json_text import byte_order_mark, find_members, is_blank, line_of
from .rlimit import UNLIMITED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from .docker_config import DockerDefaults
    from .dockerd_flags import Flag
    from .json_text import Member
    from .rlimit import Rlimit

_MISSPELT = re.compile(r"(default)?[-_]?((u?limits?)|shm[-_]?size)", re.IGNORECASE)
_FLAG_KEYS = {
    "add-runtime": "",  # The one key that may stand in both places.
    "authorization-plugin": "authorization-plugins",
    "default-address-pool": "default-address-pools",
    "default-ulimit": ULIMITS_KEY,
    "dns-opt": "dns-opts",
    "exec-opt": "exec-opts",
    "host": "hosts",
    "insecure-registry": "insecure-registries",
    "label": "labels",
    "log-opt": "log-opts",
    "node-generic-resource": "node-generic-resources",
    "registry-mirror": "registry-mirrors",
    "storage-opt": "storage-opts",
}


def find_daemon_json_problems(
    text: str,
    path: str,
    wanted: DockerDefaults,
    flags: Iterable[Flag] = (),
    nr_open: int = UNLIMITED,
    version: str = "",
) -> list[str]:
    """Return everything that would stop dockerd, or every container, once *wanted* is merged in.

    With nothing wanted it judges the file as it stands.

    :param flags: What the daemon's unit gives it, see :mod:`.dockerd_flags`.
    :param nr_open: ``fs.nr_open`` of the host.
    :param version: The daemon's; an unknown one is taken for the strictest.
    """
    problems = [
        f"{ULIMITS_KEY}.{item}: {fault}"
        for item, limit in wanted.ulimits.items()
        for fault in find_faults(_expect_entry(item, limit), nr_open)
    ]
    try:
        members = [] if is_blank(text) else find_members(text, path)
    except ValueError as error:
        return [*problems, str(error)]
    problems += _find_text_problems(text, path, wanted, version)
    problems += _find_key_problems(text, path, members, wanted)
    items: list[str] = []
    for entry in read_entries(text, path, members):
        if entry.item not in wanted.ulimits:
            place = f"{path}:{entry.line}: {ULIMITS_KEY}.{entry.key}"
            problems += [f"{place}: {fault}" for fault in find_faults(entry, nr_open)]
            if entry.item in items:
                problems.append(f"{place}: {entry.item} is stated twice, which one wins is chance")
            items.append(entry.item)
    keys = {member.key for member in members}
    keys |= {key for key, value in zip((ULIMITS_KEY, SHM_KEY), wanted) if value}
    return problems + _find_conflicts(keys, path, flags)


def _expect_entry(item: str, limit: Rlimit) -> Entry:
    fields = {name.lower(): value for name, value in format_ulimit(item, limit).items()}
    return Entry(item, fields, 0, "")


def _find_text_problems(text: str, path: str, wanted: DockerDefaults, version: str) -> list[str]:
    release = re.match("[0-9]+", version)
    if release and int(release[0]) >= 23:
        return []
    problems = []
    if byte_order_mark(text):
        problems.append(f"{path}:1: dockerd before 23.0 refuses a byte order mark")
    if is_blank(text) and not any(wanted):
        problems.append(f"{path}: dockerd before 23.0 refuses an empty file, {{}} is accepted")
    return problems


def _find_key_problems(
    text: str, path: str, members: list[Member], wanted: DockerDefaults
) -> list[str]:
    problems = []
    for member in members:
        place = f"{path}:{line_of(text, member.start)}: {member.key}"
        if member.key == ULIMITS_KEY:
            if not isinstance(member.value, dict) and member.value is not None:
                problems.append(f"{place}: dockerd takes an object, not {show_value(member.value)}")
        elif member.key == SHM_KEY:
            if wanted.shm_size is None and parse_shm_size(member.value) is None:
                seen = show_value(member.value)
                problems.append(f"{place}: {seen} is no size, dockerd takes a string such as '8G'")
        elif _MISSPELT.fullmatch(member.key) and member.value != {}:
            right = SHM_KEY if "shm" in member.key.lower() else ULIMITS_KEY
            problems.append(f"{place}: dockerd does not know this key, {right} is meant")
    return problems


def _find_conflicts(keys: Collection[str], path: str, flags: Iterable[Flag]) -> list[str]:
    return [
        f"{flag.place}: --{flag.name} and {key} in {path} exclude each other,"
        " dockerd does not start with both"
        for flag in flags
        for key in [_FLAG_KEYS.get(flag.name, flag.name)]
        if key in keys
    ]
