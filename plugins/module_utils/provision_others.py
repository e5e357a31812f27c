# SPDX-License-Identifier: BSD-2-Clause
"""Prepare the sections whose daemons must be told; what a policy does not ask for is not loaded."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

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
    """Yield what the sections need.

    :param nr_open: The lowest fs.nr_open that will be in force.
    """
    asked, absent, override = options.sections, options.absent, options.override
    if policy.services and "services" in asked:
        from .provision_services import ServicesOptions, prepare_services

        chosen = ServicesOptions(options.services_restart, override, absent)
        yield prepare_services(policy.services, nr_open, chosen)
    if policy.containerd and "containerd" in asked:
        from .provision_containerd import prepare_containerd

        may_restart = options.containerd_restart
        yield prepare_containerd(policy.containerd, nr_open, absent, override, may_restart)
    if policy.docker and "docker" in asked:
        from .provision_docker import prepare_docker

        yield prepare_docker(policy.docker, nr_open, absent, options.docker_restart)
    if policy.podman and "podman" in asked:
        from .provision_podman import prepare_podman

        yield prepare_podman(policy, nr_open, absent, override, "sessions" in asked)
    yield from _prepare_rest(policy, options, nr_open)


def _prepare_rest(policy: Policy, options: Options, nr_open: int | None) -> Iterator[Section]:
    asked, absent, override = options.sections, options.absent, options.override
    if policy.slurm and "slurm" in asked:
        from .policy.plan_slurm import SlurmOptions
        from .provision_slurm import prepare_slurm

        chosen = SlurmOptions(override, absent, options.slurm_conf)
        yield prepare_slurm(policy.slurm, nr_open, chosen, options.slurm_restart)
    if policy.shared_memory and "shared_memory" in asked:
        from .provision_shm import prepare_shm

        yield prepare_shm(policy.shared_memory, override, absent)
