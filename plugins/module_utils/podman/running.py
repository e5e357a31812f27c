# SPDX-License-Identifier: BSD-2-Clause
"""Say why a running container of Podman has less than a policy asks.

Podman fixes the limits and /dev/shm of a container when it is created; a restart keeps them.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..containers.policy import SHM
from ..core.cause import Cause, Outlook
from ..core.finding import FAIL, Finding, Observation, Requirement, judge
from ..core.named import NamedTuple
from ..core.remedy import Remedy
from ..core.rlimit import ITEMS, Rlimit, format_quantity
from .causes import PodmanFacts, find_podman_causes
from .containers_conf import format_tasks
from .quadlet import Quadlet, explain_quadlet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .policy import PodmanPolicy

CODES = {
    "podman-container-created": "the container keeps what it was created with, restarts included",
    "podman-changed-inside": "the limit was changed after the start, by the container or prlimit",
}


class Created(NamedTuple):
    """How a container was created; ``limits`` are ``None`` where that is not known.

    ``tasks`` is what its runtime was told to bound them with, ``None`` where that is nothing.
    """

    name: str
    limits: Mapping[str, Rlimit] | None = None
    since: str = ""
    tasks: int | None = None


class Made(NamedTuple):
    """A running container by its id, how it was created, by whose service and by which user.

    ``quadlet`` is ``None`` where no service makes it, ``maker`` is empty for root.
    """

    identity: str
    created: Created
    quadlet: Quadlet | None = None
    maker: str = ""


def explain_running(
    finding: Finding,
    created: Created,
    facts: PodmanFacts | None,
    policy: PodmanPolicy,
    quadlet: Quadlet | None = None,
) -> Finding:
    """Return the finding with its causes: first what a new container would lack as well.

    :param quadlet: The service that makes the container, where Quadlet made that.
    """
    wanted = finding.requirement
    if finding.status != FAIL:
        return finding
    causes = find_podman_causes(wanted, facts, policy) if facts else ()
    at_start = (created.limits or {}).get(wanted.item)
    value = at_start and (at_start.soft if wanted.bound == "soft" else at_start.hard)
    if quadlet and value in (None, finding.observation.value):
        return finding._replace(causes=explain_quadlet(wanted, quadlet, causes, policy))
    if wanted.item == SHM or at_start is None:
        return finding._replace(causes=(*causes, _blame_creation(wanted.item, created, at_start)))
    if value != finding.observation.value:
        has = finding.observation.value
        text = f"{created.name} was created with {wanted.item} {_show(wanted.item, at_start)}"
        text += f", and has {wanted.bound} {has} now: something in it, or prlimit, changed it"
        remedy = Remedy(f"restart {created.name}, and look for what changes it")
        cause = Cause("podman-changed-inside", text, remedy)
        return finding._replace(causes=(cause,), outlook=Outlook("", "", ""))
    return finding._replace(causes=(*causes, _blame_creation(wanted.item, created, at_start)))


def find_tasks_causes(
    wanted: Requirement,
    own: int | None,
    made: Made,
    facts: PodmanFacts | None,
    policy: PodmanPolicy,
) -> tuple[Cause, ...]:
    """Return why a running container's own bound on tasks is too low; nothing where it is not.

    :param own: The bound; ``None`` where it has none.
    """
    if own is None or judge(wanted, Observation(own, "")).status != FAIL:
        return ()
    created = made.created
    if created.tasks != own and created.limits is not None:
        if created.tasks is None:
            return ()  # Podman left it to systemd.
        text = f"{created.name} was created with a pids limit of {format_quantity(created.tasks)}"
        text += f", and has {own} now: something changed its cgroup"
        remedy = Remedy(f"restart {created.name}, and look for what changes it")
        return (Cause("podman-changed-inside", text, remedy),)
    new = find_podman_causes(wanted, facts, policy) if facts else ()
    if made.quadlet:
        return explain_quadlet(wanted, made.quadlet, new, policy)
    cause = _blame_creation(wanted.item, created, None)
    option = f"--pids-limit={format_tasks(wanted.minimum or 0)}"
    text = f"{cause.remedy.text}; since Podman 4.3 podman update {option} {created.name} does too"
    return (*new, cause._replace(remedy=Remedy(text)))


def _blame_creation(item: str, created: Created, at_start: Rlimit | None) -> Cause:
    since = f" on {created.since}" if created.since else ""
    what = f" {item} {_show(item, at_start)}" if at_start else f" the {item} that it has"
    text = (
        f"{created.name} was created{since} with{what}, by the defaults of then or its own option"
    )
    text += ", and keeps that"
    remedy = Remedy(f"remove {created.name} and create it anew; podman restart changes nothing")
    return Cause("podman-container-created", text, remedy)


def _show(item: str, limit: Rlimit) -> str:
    return ":".join(format_quantity(bound, ITEMS[item].unit) for bound in limit)
