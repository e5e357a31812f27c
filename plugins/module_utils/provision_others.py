# SPDX-License-Identifier: BSD-2-Clause
"""Prepare the sections whose daemons must be told; what a policy does not ask for is not loaded."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .policy.schema import Policy
    from .provision_options import Options
    from .section import Section


def list_folders(policy: Policy) -> list[str]:
    """Return the folders in which files of these sections may be replaced."""
    folders: list[str] = []
    if policy.services:
        from .probe.services import list_dropin_folders

        folders += list_dropin_folders()
    if policy.containerd:
        from .provision_containerd import FOLDERS as OF_CONTAINERD

        folders += OF_CONTAINERD
    if policy.docker:
        from .provision_docker import FOLDERS as OF_DOCKER

        folders += OF_DOCKER
    if policy.podman:
        from .provision_podman import FOLDERS as OF_PODMAN

        folders += OF_PODMAN
    if policy.slurm:
        from .provision_slurm import FOLDERS as OF_SLURM

        folders += OF_SLURM
    if policy.shared_memory:
        from .provision_shm import FOLDERS as OF_SHM

        folders += OF_SHM
    return folders


def prepare_others(policy: Policy, options: Options, nr_open: int | None) -> Iterator[Section]:
    """Yield what the sections need; what an earlier run made and nobody asks for is taken back.

    :param nr_open: The lowest fs.nr_open that will be in force.
    """
    from .probe.own_sections import find_own_sections

    made = find_own_sections()
    stated = policy._asdict()
    for name, prepare in _PREPARE.items():
        if name not in options.sections:
            continue
        if stated[name]:
            yield prepare(policy, options, nr_open)
        elif name in made:
            gone = prepare(policy, options._replace(absent=True), nr_open)
            yield gone._replace(in_effect=())


def _prepare_services(policy: Policy, options: Options, nr_open: int | None) -> Section:
    from .policy.services_policy import ServicesPolicy
    from .provision_services import ServicesOptions, prepare_services

    chosen = ServicesOptions(options.services_restart, options.override, options.absent)
    return prepare_services(policy.services or ServicesPolicy(), nr_open, chosen)


def _prepare_containerd(policy: Policy, options: Options, nr_open: int | None) -> Section:
    from .policy.engines_policy import ContainerdPolicy
    from .provision_containerd import prepare_containerd

    wanted = policy.containerd or ContainerdPolicy({})
    how = (options.absent, options.override, options.containerd_restart)
    return prepare_containerd(wanted, nr_open, *how)


def _prepare_docker(policy: Policy, options: Options, nr_open: int | None) -> Section:
    from .policy.schema import DockerPolicy
    from .provision_docker import prepare_docker

    wanted = policy.docker or DockerPolicy({}, None)
    return prepare_docker(wanted, nr_open, options.absent, options.docker_restart)


def _prepare_podman(policy: Policy, options: Options, nr_open: int | None) -> Section:
    from .policy.engines_policy import PodmanPolicy
    from .provision_podman import prepare_podman

    policy = policy._replace(podman=policy.podman or PodmanPolicy({}))
    sessions = "sessions" in options.sections
    return prepare_podman(policy, nr_open, options.absent, options.override, sessions)


def _prepare_slurm(policy: Policy, options: Options, nr_open: int | None) -> Section:
    from .policy.plan_slurm import SlurmOptions
    from .policy.slurm_policy import SlurmPolicy
    from .provision_slurm import prepare_slurm

    chosen = SlurmOptions(options.override, options.absent, options.slurm_conf)
    wanted = policy.slurm or SlurmPolicy({})
    return prepare_slurm(wanted, nr_open, chosen, options.slurm_restart)


def _prepare_shm(policy: Policy, options: Options, nr_open: int | None) -> Section:
    del nr_open
    from .provision_shm import prepare_shm

    return prepare_shm(policy.shared_memory, options.override, options.absent)


_PREPARE: dict[str, Callable[[Policy, Options, int | None], Section]] = {
    "services": _prepare_services,
    "containerd": _prepare_containerd,
    "docker": _prepare_docker,
    "podman": _prepare_podman,
    "slurm": _prepare_slurm,
    "shared_memory": _prepare_shm,
}
"""In the order of writing; the names are those of the policy's sections."""
