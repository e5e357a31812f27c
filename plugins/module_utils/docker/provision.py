# SPDX-License-Identifier: BSD-2-Clause
"""What the defaults of Docker's containers need on this host: daemon.json, and a restart."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ..containers.policy import ContainerPolicy
from ..core.plan import Section, SectionPlan
from ..core.values import NamedTuple
from ..host.files import read_bytes
from ..host.look import started_before
from .api_read import Container, Daemon, UntoldError, find_daemon, read_containers
from .dockerd_flags import CONFIG_PATH, find_config_path, find_socket
from .plan import DockerState, plan_docker
from .record import find_record_path
from .settle import ask_dockerd, find_trouble, read_service, restart_docker
from .unit_read import Service, find_hindrance, find_wait, read_dockerd_flags

FOLDERS = tuple(path.rpartition("/")[0] for path in (CONFIG_PATH, find_record_path(CONFIG_PATH)))


class Docker(NamedTuple):
    """The Docker of this host: its files, and the daemon if it runs."""

    state: DockerState
    daemon: Daemon | None
    service: Service
    address: str


def prepare_docker(
    policy: ContainerPolicy, nr_open: int | None, absent: bool, may_restart: bool
) -> Section:
    """Return what Docker's section needs here.

    :param nr_open: The lowest fs.nr_open that will be in force.
    :param may_restart: Whether the daemon is restarted where it must be.
    """
    docker = _read_docker()
    plan = plan_docker(policy, docker.state, nr_open, absent)
    if not plan.problems:
        plan = _ask(docker, plan)
    needs = _needs_restart(docker, plan)
    if needs and may_restart and not plan.problems:
        plan = plan._replace(problems=tuple(_find_hindrances(docker)))
    needed = (docker.service.unit or "dockerd",) if needs else ()
    restart = partial(restart_docker, docker.address, docker.service.unit)
    settled = may_restart or not needed
    return Section(
        plan,
        restarted=needed if may_restart else (),
        restart_required=() if may_restart else needed,
        settle=restart if needed and may_restart else None,
        find_old=tuple if absent else partial(_find_old, docker, policy),
        in_effect=("docker",) if docker.daemon and settled else (),
    )


def _read_docker() -> Docker:
    daemon = find_daemon()
    service = read_service(daemon)
    flags = tuple(read_dockerd_flags(unit=service.unit)) if service.unit else ()
    flags = flags or (tuple(daemon.flags) if daemon else ())
    path = find_config_path(flags)
    record = read_bytes(find_record_path(path))
    state = DockerState(read_bytes(path), path, flags, find_wait(service), record)
    return Docker(state, daemon, service, find_socket(flags))


def _find_hindrances(docker: Docker) -> Iterator[str]:
    """Yield why the daemon cannot be restarted, before anything is written that needs it."""
    hindrance = find_hindrance(docker.service._replace(trouble=find_trouble()))
    if hindrance:
        yield f"{docker.state.path}: needs a restart, and {hindrance}"


def _ask(docker: Docker, plan: SectionPlan) -> SectionPlan:
    """Return the plan with what the daemon itself says of a changed daemon.json."""
    for edit in plan.edits:
        if edit.after is None or edit.path != docker.state.path:
            continue
        verdict = ask_dockerd(edit.after, docker.state.flags)
        if verdict.refusal:
            return plan._replace(problems=(verdict.refusal,))
        if verdict.trouble:
            note = f"{edit.path}: dockerd could not be asked whether it accepts it"
            plan = plan._replace(notes=(*plan.notes, f"{note} ({verdict.trouble})"))
    return plan


def _needs_restart(docker: Docker, plan: SectionPlan) -> bool:
    """Tell whether the daemon runs with an older configuration than it shall have."""
    if docker.daemon is None:
        return False
    path = docker.state.path
    edited = any(edit.path == path for edit in plan.edits)
    return edited or started_before(docker.daemon.process, path)


def _find_old(docker: Docker, policy: ContainerPolicy) -> Iterator[str]:
    """Yield running containers that have less than the policy asks for."""
    from ..containers.limits_read import tell_old

    found = _running_containers(docker.address) if docker.daemon else []
    return tell_old(((one.name, one.pid) for one in found), policy)


def _running_containers(address: str) -> list[Container]:
    try:
        return read_containers(address)
    except UntoldError as exc:
        return exc.told
    except (OSError, ValueError):
        return []  # The daemon went away between two looks; check says so where it matters.
