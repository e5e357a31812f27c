# SPDX-License-Identifier: BSD-2-Clause
"""Say why containers of Podman fall short, and what they will have after a boot."""

from __future__ import annotations

from ..core.cause import Outlook
from ..core.declaration import Declaration
from ..core.finding import FAIL, UNKNOWN
from ..kernel.host_read import KernelRead
from ..systemd.read import find_nr_open_at_boot
from .causes import (
    PodmanFacts,
    Unread,
    find_podman_causes,
    foresee,
)
from .containers_conf import ConfError, find_unread_keys, order_files, read_conf
from .read import read_conf_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..core.cause import Cause
    from ..core.finding import Finding
    from ..core.rlimit import Rlimit
    from ..host.look import Look
    from .policy import PodmanPolicy


def gather_podman(
    user: str, look: Look, session: Mapping[str, Rlimit], way: str
) -> PodmanFacts | None:
    """Return all that decides the containers of a user; nothing where that cannot be read."""
    try:
        files = read_conf_files(user)
    except OSError:
        return None
    facts = PodmanFacts((), look.at(KernelRead).nr_open, user=user, session=session, way=way)
    paths = order_files(files)
    try:
        stated = tuple(read_conf(path, files[path]) for path in paths)
    except ConfError as error:
        return facts._replace(broken=error)
    unread = tuple(one for path in paths for one in _find_unread(path, files[path]))
    return facts._replace(stated=stated, unread=unread)


def _find_unread(path: str, text: str) -> Iterator[Unread]:
    rows = text.split("\n")
    for line, reason in find_unread_keys(text):
        yield Unread(Declaration(path, line, rows[line - 1], ""), reason)


def explain_podman(
    findings: list[Finding], policy: PodmanPolicy, facts: PodmanFacts | None, look: Look
) -> Iterator[Finding]:
    """Yield the findings of a new container with their causes."""
    for finding in findings:
        if facts is None or finding.observation.value is None:
            yield finding
            continue
        wanted = finding.requirement
        boot = foresee(wanted, facts, find_nr_open_at_boot(look))
        causes: tuple[Cause, ...] = ()
        if finding.status == FAIL:
            causes = find_podman_causes(wanted, facts, policy)
            boot = boot if causes else UNKNOWN  # It does not do what its files say.
        elif boot == FAIL:
            later = facts._replace(nr_open=find_nr_open_at_boot(look))
            causes = find_podman_causes(wanted._replace(item="start"), later, policy)
        yield finding._replace(causes=causes, outlook=Outlook("", "", boot))
