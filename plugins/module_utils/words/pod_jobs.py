# SPDX-License-Identifier: BSD-2-Clause
"""Read what a job of Kubernetes says of all its pods: how many, and how many processes in each.

Sources: the references of Kubeflow's PyTorchJob, MPIJob and TrainJob. Their operators hand the
number of processes to torchrun in ``PET_NPROC_PER_NODE``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from ..core.values import NamedTuple
from .facts import JOB, Fact, Words
from .names import AUTO, read_option
from .tree import find, list_leaves, read_scalar

LAUNCHER_ROLE = "Launcher"
"""The pod of an MPIJob that starts mpirun; its ranks run in the workers."""
_PROCESSES = "PET_NPROC_PER_NODE"
_TORCHRUN = re.compile(r"\btorchrun\b|torch\.distributed")


class Job(NamedTuple):
    """What a job says: variables that its operator sets, and what else is known of it.

    ``trainer`` is what stands for a container where the job has no pod of its own.
    """

    words: Words = Words()
    variables: Mapping[str, str] = {}
    where: str = ""
    trainer: object = None


def read_job(root: object, path: str) -> Job:
    """Return what a job says; nothing of what is a pod alone."""
    kind, _line = read_scalar(find(root, "kind"))
    read = {"PyTorchJob": _read_pytorch, "MPIJob": _read_mpi, "TrainJob": _read_train}
    return read[str(kind)](find(root, "spec"), path) if kind in read else Job()


def _read_pytorch(spec: object, path: str) -> Job:
    nodes = list(_count_pods(find(spec, "pytorchReplicaSpecs"), ("Master", "Worker"), path))
    processes, line = read_scalar(find(spec, "nprocPerNode"))
    where = f"{path}:{line}" if processes is not None else "PyTorchJob's default"
    number = str(nodes[0].value) if nodes else "1"
    variables = {_PROCESSES: str(processes or AUTO), "PET_NNODES": number}
    return Job(Words(tuple(nodes)), variables, where)


def _read_mpi(spec: object, path: str) -> Job:
    is_worker = read_scalar(find(spec, "runLauncherAsWorker"))[0] is True
    roles = ("Launcher", "Worker") if is_worker else ("Worker",)
    facts = list(_count_pods(find(spec, "mpiReplicaSpecs"), roles, path))
    slots, line = read_scalar(find(spec, "slotsPerWorker"))
    where = f"{path}:{line}" if slots is not None else "MPIJob's default"
    found = read_option("nproc_per_node", slots or 1, where, JOB)
    return Job(Words((*facts, *(one for one in found if isinstance(one, Fact)))))


def _count_pods(roles: object, names: Sequence[str], path: str) -> Iterator[Fact]:
    """Yield on how many nodes a job runs, where it is more than one."""
    number, where = 0, ""
    for name in names:
        role = find(roles, name)
        count, line = read_scalar(find(role, "replicas"))
        if role is not None:
            is_number = isinstance(count, int) and not isinstance(count, bool)
            number += count if is_number else 1  # type: ignore[operator]
            where = f"{path}:{line or next((leaf.line for leaf in list_leaves(role)), 0)}"
    if number > 1:
        yield Fact("nodes", number, where, JOB)


def _read_train(spec: object, path: str) -> Job:
    """Read a TrainJob, whose pods are those of a runtime that the cluster holds."""
    trainer = find(spec, "trainer")
    nodes, line = read_scalar(find(trainer, "numNodes"))
    facts = read_option("nnodes", nodes, f"{path}:{line}", JOB)
    processes, at = read_scalar(find(trainer, "numProcPerNode"))
    runtime, here = read_scalar(find(spec, "runtimeRef", "name"))
    told = f"{path}:{here}: not read: the pod of the runtime {runtime}, such as its /dev/shm"
    variables = {_PROCESSES: str(AUTO if processes is None else processes)}
    container = {
        "name": find(spec, "runtimeRef", "name"),
        "resources": find(trainer, "resourcesPerNode"),
        **{key: find(trainer, key) for key in ("command", "args", "env")},
    }
    words = Words(tuple(one for one in facts if isinstance(one, Fact)), notes=(told,))
    return Job(words, variables, f"{path}:{at}" if at else "TrainJob's default", container)


def start_processes(words: Sequence[str], variables: Mapping[str, str], where: str) -> Words:
    """Return how many processes torchrun starts where its operator says so and its words do not."""
    started = " ".join(words)
    is_torchrun = _TORCHRUN.search(started) or not re.match(r"(\S*/)?python", started)
    if not words or _PROCESSES not in variables or not is_torchrun:
        return Words()
    found = read_option("nproc_per_node", variables[_PROCESSES], where, JOB)
    return Words(tuple(one for one in found if isinstance(one, Fact)))
