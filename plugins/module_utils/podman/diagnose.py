# SPDX-License-Identifier: BSD-2-Clause
"""Say why containers of Podman fall short, and what they will have after a boot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..containers.policy import TASKS, ContainerPolicy
from ..containers.tasks import Given, find_uid, split_levels
from ..core.cause import Cause, Outlook
from ..core.finding import FAIL, UNKNOWN, Finding
from ..core.process_owner import own_running
from ..core.values import Declaration, Rlimit
from ..kernel.host_read import KernelRead, find_nr_open_at_boot
from .causes import PodmanFacts, Unread, find_podman_causes, foresee
from .containers_conf import ConfError, find_tasks, find_unread_keys, read_all
from .read import read_conf_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..host.look import Look
    from ..systemd.tasks import Level
    from .running import Made


def gather_podman(
    user: str, look: Look, session: Mapping[str, Rlimit], way: str
) -> PodmanFacts | None:
    """Return all that decides the containers of a user; nothing where that cannot be read."""
    try:
        files = read_conf_files(user)
    except OSError:
        return None
    facts = PodmanFacts((), look.at(KernelRead).nr_open, user=user, session=session, way=way)
    try:
        stated = read_all(files)
    except ConfError as error:
        return facts._replace(broken=error)
    unread = tuple(one for read in stated for one in _find_unread(read.path, files[read.path]))
    return facts._replace(stated=stated, unread=unread)


def _find_unread(path: str, text: str) -> Iterator[Unread]:
    rows = text.split("\n")
    for line, reason in find_unread_keys(text):
        yield Unread(Declaration(path, line, rows[line - 1], ""), reason)


def explain_podman(
    findings: list[Finding],
    policy: ContainerPolicy,
    facts: PodmanFacts | None,
    look: Look,
    levels: Sequence[Level] = (),
) -> Iterator[Finding]:
    """Yield the findings of a new container with their causes.

    :param levels: The cgroups that bound its tasks.
    """
    for finding in findings:
        if facts is None or finding.observation.value is None:
            yield finding
            continue
        wanted = finding.requirement
        if wanted.item == TASKS:
            yield _explain_new_tasks(finding, policy, facts, levels)
            continue
        boot = foresee(wanted, facts, find_nr_open_at_boot(look))
        causes: tuple[Cause, ...] = ()
        if finding.status == FAIL:
            causes = find_podman_causes(wanted, facts, policy)
            boot = boot if causes else UNKNOWN  # It does not do what its files say.
        elif boot == FAIL:
            later = facts._replace(nr_open=find_nr_open_at_boot(look))
            causes = find_podman_causes(wanted._replace(item="start"), later, policy)
        yield finding._replace(causes=causes, outlook=Outlook("", "", boot))


def _explain_new_tasks(
    finding: Finding, policy: ContainerPolicy, facts: PodmanFacts, levels: Sequence[Level]
) -> Finding:
    """Return the finding on the tasks of a new container: by files, and by the units above it."""
    from ..services.diagnose import explain_container_tasks  # Where tasks are asked for.

    given = Given(find_tasks(facts.defaults.tasks))
    causes = find_podman_causes(finding.requirement, facts, policy)
    return explain_container_tasks(finding, split_levels(levels), given, causes)


def explain_running_tasks(
    finding: Finding,
    levels: Sequence[Level],
    made: Made,
    facts: PodmanFacts | None,
    policy: ContainerPolicy,
) -> Finding:
    """Return the finding on the tasks of a running container, and whose doing it is."""
    if finding.status != FAIL:
        return finding
    from ..services.diagnose import explain_container_tasks, own_tasks
    from .running import find_tasks_causes

    bounds, created = split_levels(levels, made.identity), made.created
    given = Given(created.tasks, created.limits is not None)
    own = bounds.own.most if bounds.own else None
    causes = find_tasks_causes(finding.requirement, own, made, facts, policy)
    told = explain_container_tasks(finding, bounds, given, causes)
    units = bounds.list_units(given.is_its_own)
    uid = find_uid(units)
    return own_running(told, made.maker) if uid is None else own_tasks(told, units, uid)
