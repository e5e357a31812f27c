# SPDX-License-Identifier: BSD-2-Clause
"""Plan what daemon.json must say so that new containers get what the policy requires."""

from __future__ import annotations

from typing import NamedTuple

from .docker_config import (
    DockerDefaults,
    collect_defaults,
    merge_daemon_json,
    read_defaults,
    remove_from_daemon_json,
)
from .docker_problems import find_daemon_json_problems
from .dockerd_flags import CONFIG_PATH, Flag
from .edit import Edit
from .plan import SectionPlan
from .rlimit import UNLIMITED, Rlimit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .schema import DockerPolicy

_EMPTY = "{}\n"


class DockerState(NamedTuple):
    """What is known of the daemon; ``content`` is ``None`` where daemon.json is absent."""

    content: bytes | None = None
    path: str = CONFIG_PATH
    flags: tuple[Flag, ...] = ()
    installed: bool = True


def plan_docker(
    policy: DockerPolicy | None, state: DockerState, nr_open: int | None, absent: bool
) -> SectionPlan:
    """Return the edit of daemon.json; every key that is not ours keeps its bytes.

    :param nr_open: The lowest fs.nr_open that will be in force.
    """
    wanted = collect_wanted(policy) if policy else DockerDefaults({})
    if not any(wanted):
        return SectionPlan()
    try:
        text = (state.content or b"").decode("utf-8")
        if absent:
            return _plan_removal(text, state, wanted)
        problems = find_daemon_json_problems(
            text, state.path, wanted, state.flags, UNLIMITED if nr_open is None else nr_open
        )
        if problems:
            return SectionPlan(problems=tuple(problems))
        merged = merge_daemon_json(text, wanted)
    except UnicodeDecodeError as exc:
        problem = f"{state.path}: byte {exc.start} is no UTF-8, which dockerd needs"
        return SectionPlan(problems=(problem,))
    except ValueError as exc:
        return SectionPlan(problems=(str(exc),))
    notes = () if state.installed else (f"{state.path}: takes effect once Docker is installed",)
    edits = () if merged == text else (_edit(state, merged),)
    return SectionPlan(edits, notes=notes)


def collect_wanted(policy: DockerPolicy) -> DockerDefaults:
    """Return what daemon.json shall state; an item that is only bounded above is not set."""
    ulimits = {
        name: Rlimit(limit.soft, limit.hard)
        for name, limit in policy.limits.items()
        if limit.soft is not None and limit.hard is not None
    }
    return DockerDefaults(ulimits, policy.shm_size)


def _plan_removal(text: str, state: DockerState, wanted: DockerDefaults) -> SectionPlan:
    """Remove what the policy asks for and the file states; another value is somebody else's."""
    if state.content is None:
        return SectionPlan()
    stated = collect_defaults(read_defaults(text, state.path))
    ours = [item for item, limit in wanted.ulimits.items() if stated.ulimits.get(item) == limit]
    same_shm = wanted.shm_size is not None and stated.shm_size == wanted.shm_size
    left = remove_from_daemon_json(text, ours, same_shm)
    if left == text:
        return SectionPlan()
    return SectionPlan((_edit(state, None if left == _EMPTY else left),))


def _edit(state: DockerState, text: str | None) -> Edit:
    after = None if text is None else text.encode("utf-8")
    return Edit(state.path, state.content, after, secret=True)
