# SPDX-License-Identifier: BSD-2-Clause
"""Judge what containers get against a policy, or say that no dockerd runs."""

from __future__ import annotations

from collections.abc import Iterator

from ..containers.findings import judge_container_unknown
from ..containers.policy import ContainerPolicy
from ..core.finding import Finding
from ..host.look import Look
from .read import DockerRead

NEW = "new-container:docker"


def check_docker(policy: ContainerPolicy, canary: str, look: Look) -> Iterator[Finding]:
    """Yield the findings of every running container and of a new one.

    :param canary: ``auto`` reuses a result while nothing that decides it has changed,
        ``always`` measures again, ``never`` leaves a new container unknown.
    """
    if look.at(DockerRead).daemon is not None:
        from .engine_check import check_engine  # Long, and many hosts have no Docker.

        yield from check_engine(policy, canary, look)
        return
    from .unit_read import find_dockerd

    if find_dockerd() is not None:
        from .diagnose import find_dead  # Long as well.

        dead = find_dead(NEW, policy, look)
        yield from [dead] if dead else ()
    yield from judge_container_unknown(NEW, policy, describe_absence(look))


def describe_absence(look: Look) -> str:
    """Say that no dockerd runs, and what there is of it."""
    from .settle import read_service
    from .unit_read import find_wait

    what = "but rootless ones " if look.at(DockerRead).rootless else ""
    return f"no dockerd {what}is running on this host until {find_wait(read_service(None))}"
