# SPDX-License-Identifier: BSD-2-Clause
"""What the defaults of Podman's containers need on this host: a drop-in, and the proof of it."""

from __future__ import annotations

import pwd
from collections.abc import Iterator
from functools import partial

from ..containers.cgroup import PODMAN
from ..containers.policy import ContainerPolicy
from ..core.edit import Edit
from ..core.plan import Section, SectionPlan
from ..core.values import Rlimit
from ..host.image import is_image
from ..host.look import find_processes
from ..host.users import read_user
from ..sessions.policy import SessionRule
from ..sessions.rules import find_limits
from .check import open_session
from .containers_conf import DROP_INS, OWN
from .plan import PodmanState, find_lost, plan_podman
from .read import find_podman, read_conf_files

FOLDERS = (DROP_INS, DROP_INS.rpartition("/")[0])


def prepare_podman(
    asked: ContainerPolicy,
    nr_open: int | None,
    absent: bool,
    override: bool,
    sessions: tuple[SessionRule, ...],
) -> Section:
    """Return what Podman's section needs here.

    :param nr_open: The lowest fs.nr_open that will be in force.
    :param sessions: The rules that sessions come to keep in the same run.
    """
    installed = find_podman() is not None
    state = PodmanState(read_conf_files(), installed)
    plan = plan_podman(asked, state, nr_open, override, absent)
    if not plan.edits or plan.problems or not installed or is_image():
        return _make(plan, asked, installed, absent)
    problems = () if absent else tuple(_find_lost(asked, plan.edits, sessions))
    refusal = "" if absent or problems else _try(_find_text(plan.edits))
    before = _try() if refusal else ""
    if refusal and refusal != before:
        problems = (f"podman starts no container with the new {OWN}: {refusal}",)
    if problems:
        return Section(plan._replace(problems=problems))
    if before:
        note = f"podman starts no container as it is now: {before}"
        plan = plan._replace(notes=(*plan.notes, note))
    section = _make(plan, asked, installed, absent)
    return section if before else section._replace(settle=_prove)


def _find_lost(
    asked: ContainerPolicy, edits: tuple[Edit, ...], sessions: tuple[SessionRule, ...]
) -> Iterator[str]:
    """Yield the users whose own containers would not start any more.

    :param sessions: The rules that sessions come to keep in the same run.
    """
    from ..containers.read import find_running  # Needed only where something changes.

    uids = {one.owner for one in find_running(find_processes(), (PODMAN,)) if one.owner}
    users = [*asked.users, *filter(None, map(_find_name, sorted(uids)))]
    for user in dict.fromkeys(users):
        person, session = read_user(user), open_session(user)
        limits = dict(session.limits)
        wanted = find_limits(sessions, person) if person else {}
        for item, limit in wanted.items():
            if item in limits and limit.hard is not None:
                limits[item] = Rlimit(limit.hard, limit.hard)
        files = read_conf_files(user)
        files.update({edit.path: (edit.after or b"").decode("latin-1") for edit in edits})
        yield from find_lost(user, files, limits)


def _find_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return ""


def _make(plan: SectionPlan, policy: ContainerPolicy, installed: bool, absent: bool) -> Section:
    return Section(
        plan,
        find_old=tuple if absent else partial(_find_old, policy),
        in_effect=("podman",) if installed else (),
    )


def _find_text(edits: tuple[Edit, ...]) -> str:
    own = next((edit.after for edit in edits if edit.path == OWN), None)
    return (own or b"").decode("latin-1")


def _try(conf: str = "") -> str:
    """Start a container, and return why there was none; nothing where that was not found out."""
    from .measure import run_podman_canary  # Needed only where something changes.

    return run_podman_canary(conf=conf).refusal


def _prove() -> str:
    """Return why Podman starts no container with its files as they stand."""
    refusal = _try()
    return f"podman starts no container with its files as they are: {refusal}" if refusal else ""


def _find_old(policy: ContainerPolicy) -> Iterator[str]:
    """Yield running containers that have less than the policy asks for."""
    from ..containers.limits_read import tell_old_running
    from ..containers.read import find_running

    return tell_old_running(find_running(find_processes(), (PODMAN,)), policy)
