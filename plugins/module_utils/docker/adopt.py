# SPDX-License-Identifier: BSD-2-Clause
"""Turn what a site's own daemon.json and flags of dockerd state into the Docker of a policy."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.adopted import Adopted, Candidate, settle, write_limit
from ..core.json_text import find_member, line_of
from ..core.values import UNLIMITED, Declaration, Rlimit, format_quantity
from ..kernel.adopt import find_nr_open
from .daemon_json import SHM_KEY, find_faults, read_entries, read_members, read_shm_size
from .dockerd_flags import Flag
from .flags import read_flag_defaults
from .policy import read_docker
from .unit_read import read_world

_DOCKER = ("containers", "docker")


def adopt_docker(
    text: str, path: str, flags: Sequence[Flag] = (), nr_open: int | None = None
) -> Adopted:
    """Return the defaults of containers that daemon.json and the site's flags of dockerd state.

    :raises ValueError: If the text is not a JSON object.
    """
    stated = [
        (default.name, default.limit, default.declaration, "")
        for default in read_flag_defaults(flags)
    ]
    members = read_members(text, path)
    for entry in read_entries(text, path, members):
        faults = [fault.text for fault in find_faults(entry, nr_open or UNLIMITED) if fault.stops]
        at = Declaration(path, entry.line, entry.text, "")
        stated.append((entry.name or entry.item, entry.limit, at, "; ".join(faults)))
    shm = find_member(members, SHM_KEY)
    if shm:
        size = read_shm_size(text, shm)
        at = Declaration(path, line_of(text, shm.start), text[shm.start : shm.end], "")
        reason = "dockerd takes no such size" if size is None else ""
        stated.append(("shm_size", Rlimit(size or 0, size or 0), at, reason))
    return settle(read_docker, ".".join(_DOCKER), [_weigh_default(*one) for one in stated])


def _weigh_default(name: str, limit: Rlimit, at: Declaration, reason: str) -> Candidate:
    if name == "shm_size":
        return Candidate((*_DOCKER, name), format_quantity(limit.hard, "bytes"), at, reason)
    value = None if reason else write_limit(name, limit)
    return Candidate((*_DOCKER, "limits", name), value, at, reason)


def adopt_tree_docker(root: str) -> Adopted:
    """Return the defaults of containers that the site states.

    :raises ValueError: If daemon.json is not a JSON object.
    """
    world = read_world(root, UNLIMITED)
    return adopt_docker(world.text or "", world.path, world.flags, find_nr_open(root))
