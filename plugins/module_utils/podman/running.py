# SPDX-License-Identifier: BSD-2-Clause
"""Say why a running container of Podman has less than a policy asks.

Podman fixes the limits and /dev/shm of a container when it is created; a restart keeps them.
"""

from __future__ import annotations

from ..containers.policy import ContainerPolicy
from ..containers.spec import Started
from ..core.cause import Cause, Outlook, Remedy
from ..core.finding import FAIL, Finding, Requirement
from ..core.values import NamedTuple, Rlimit, format_pair, format_quantity
from .causes import PodmanFacts, find_podman_causes
from .containers_conf import format_tasks
from .quadlet import Quadlet, explain_quadlet

CODES = {
    "podman-container-created": "the container keeps what it was created with, restarts included",
    "podman-changed-inside": "the limit was changed after the start, by the container or prlimit",
}


class Made(NamedTuple):
    """A running container by its id, how it was created, by whose service and by which user.

    ``quadlet`` is ``None`` where no service makes it, ``maker`` is empty for root.
    """

    identity: str
    created: Started
    quadlet: Quadlet | None = None
    maker: str = ""


def explain_running(
    finding: Finding, made: Made, facts: PodmanFacts | None, policy: ContainerPolicy
) -> Finding:
    """Return the finding with its causes: first what a new container would lack as well."""
    if finding.status != FAIL:
        return finding
    wanted, has, created = finding.requirement, finding.observation.value, made.created
    causes = find_podman_causes(wanted, facts, policy) if facts else ()
    at_start = (created.limits or {}).get(wanted.item)
    value = wanted.pick(at_start) if at_start else None
    if made.quadlet and value in (None, has):
        return finding._replace(causes=explain_quadlet(wanted, made.quadlet, causes, policy))
    if at_start is None or value == has:
        return finding._replace(causes=(*causes, _blame_creation(wanted.item, created, at_start)))
    text = f"{wanted.item} {format_pair(wanted.item, at_start)}, and has {wanted.bound} {has} now"
    cause = _blame_change(created, f"{text}: something in it, or prlimit, changed it")
    return finding._replace(causes=(cause,), outlook=Outlook("", "", ""))


def find_tasks_causes(
    wanted: Requirement,
    own: int | None,
    made: Made,
    facts: PodmanFacts | None,
    policy: ContainerPolicy,
) -> tuple[Cause, ...]:
    """Return why a running container's own bound on tasks is too low; nothing where it is not.

    :param own: The bound; ``None`` where it has none.
    """
    if own is None or wanted.is_met_by(own):
        return ()
    created = made.created
    if created.tasks != own and created.limits is not None:
        if created.tasks is None:
            return ()  # Podman left it to systemd.
        text = f"a pids limit of {format_quantity(created.tasks)}, and has {own} now"
        return (_blame_change(created, f"{text}: something changed its cgroup"),)
    new = find_podman_causes(wanted, facts, policy) if facts else ()
    if made.quadlet:
        return explain_quadlet(wanted, made.quadlet, new, policy)
    cause = _blame_creation(wanted.item, created, None)
    option = f"--pids-limit={format_tasks(wanted.minimum or 0)}"
    text = f"{cause.remedy.text}; since Podman 4.3 podman update {option} {created.name} does too"
    return (*new, cause._replace(remedy=Remedy(text)))


def _blame_change(created: Started, text: str) -> Cause:
    remedy = Remedy(f"restart {created.name}, and look for what changes it")
    return Cause("podman-changed-inside", f"{created.name} was created with {text}", remedy)


def _blame_creation(item: str, created: Started, at_start: Rlimit | None) -> Cause:
    since = f" on {created.since}" if created.since else ""
    what = f" {item} {format_pair(item, at_start)}" if at_start else f" the {item} that it has"
    text = f"{created.name} was created{since} with{what}, by the defaults of that time or its own"
    text += " option, and keeps that"
    remedy = Remedy(f"remove {created.name} and create it anew; podman restart changes nothing")
    return Cause("podman-container-created", text, remedy)
