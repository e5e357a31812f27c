# SPDX-License-Identifier: BSD-2-Clause
"""Read the pods of Kubernetes that run, and the jobs that are made of them.

Source: the reference of the Kubernetes API, core/v1 PodSpec. A pod without an emptyDir at /dev/shm
has 64 MiB there, and one of medium Memory counts as its memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ..core.values import NamedTuple
from .container_node import Node, read_started, read_words, whole
from .docker_run import SHM, Container, is_shm
from .facts import JOB, LAUNCHER, Fact, Stated, Words, join_words
from .launchers import read_variables
from .pod_jobs import LAUNCHER_ROLE, Job, read_job, start_processes
from .quantities import parse_count, parse_pod_quantity
from .shell_variables import expand
from .tree import find, read_line, read_scalar

_PODS = (
    *("Pod", "Job", "CronJob", "Deployment", "StatefulSet", "ReplicaSet", "DaemonSet"),
    *("PyTorchJob", "MPIJob", "TrainJob", "JobSet", "RayCluster", "RayJob", "LeaderWorkerSet"),
)


_GPU = re.compile(r"(nvidia|amd)\.com/(gpu|mig-.+)|gpu\.intel\.com/(i915|xe)")


def is_pod(root: object) -> bool:
    """Tell whether a document is one of Kubernetes that runs containers."""
    kind, _line = read_scalar(find(root, "kind"))
    return find(root, "apiVersion") is not None and (kind in _PODS or bool(list(_find_specs(root))))


class _Pod(NamedTuple):
    """A mapping that has containers, and which pods of a job are made of it: ``Worker``."""

    role: str
    spec: dict[str, object]


def _find_specs(root: object) -> Iterator[_Pod]:
    """Yield every mapping that has containers, wherever its kind puts it."""
    waiting: list[tuple[str, str, object]] = [("", "", root)]
    while waiting:
        above, role, node = waiting.pop()
        if isinstance(node, dict):
            alone = node.get("container")
            if isinstance(node.get("containers"), list):
                yield _Pod(role, node)
            elif isinstance(alone, dict) and "image" in alone:  # As Argo's templates have it.
                yield _Pod(role, {**node, "containers": [alone]})
            is_roles = above.endswith("ReplicaSpecs")
            below = [(str(key), str(key) if is_roles else role, one) for key, one in node.items()]
            waiting += reversed(below)
        elif isinstance(node, list):
            waiting += [(above, role, one) for one in reversed(node)]


def read_pod(root: object, path: str) -> Words:
    """Return what the containers say that train: one of each pod, for all that a job has."""
    job = read_job(root, path)
    parts = [(pod.role, _read_spec(pod.spec, path, job)) for pod in _find_specs(root)]
    if job.trainer is not None:
        parts.append(("", _read_container({}, job.trainer, path, job)))
    running = [one for one in parts if one[1].facts or one[1].wanted] or parts[:1]
    words = join_words([said for _role, said in running])
    if any(role == LAUNCHER_ROLE for role, _said in running):  # Its ranks live in the others.
        stated = [one for role, said in parts if role != LAUNCHER_ROLE for one in said.stated]
        words = words._replace(stated=tuple(stated))
    words = words._replace(stated=_keep_different(words.stated))
    return join_words([words, job.words]) if running else words


def _keep_different(stated: tuple[Stated, ...]) -> tuple[Stated, ...]:
    """Return limits, the first of those that are alike: master and workers usually are."""
    return tuple({one._replace(at=frozenset()): one for one in reversed(stated)}.values())[::-1]  # type: ignore[arg-type]


def _read_spec(spec: dict[str, object], path: str, job: Job) -> Words:
    containers = spec["containers"]
    said = [_read_container(spec, one, path, job) for one in containers]  # type: ignore[attr-defined]
    training = [one for one in said if one.facts or one.wanted]
    starting = [one for one in training if any(map(_is_of_a_run, one.facts))]
    return join_words(starting or (training or said)[:1])


def _is_of_a_run(fact: Fact) -> bool:
    """Tell whether a fact is of what trains, and not of a tool beside it."""
    return fact.rank >= LAUNCHER and fact.key in ("workers", "ranks_per_node", "world", "all_tasks")


def _read_container(spec: dict[str, object], container: object, path: str, job: Job) -> Words:
    node = Node(container, path, None)
    limits = ("resources", "limits")
    memory = node.number("memory", parse_pod_quantity, *limits, "memory")
    cpus = node.number("cpus", parse_pod_quantity, *limits, "cpu")
    names = [name for name in find(container, *limits) or () if _GPU.fullmatch(str(name))]
    gpus = node.first("gpus", parse_count, *((*limits, str(name)) for name in names))
    shm = _find_shm(spec, node)
    name, where = node.text("name")
    at = {item: place for item, place in node.at.items() if item != "gpus"}
    stated = Stated(f"pod:{name or 'pod'}", at, whole(memory), shm, cpus=cpus)
    words: list[str] = []
    here = where
    for key in ("command", "args"):
        for more, place in read_words(node, key):
            words, here = [*words, *more], place
    env = find(container, "env")
    variables = {**job.variables}
    for one in env if isinstance(env, list) else ():
        key, value = str(read_scalar(find(one, "name"))[0]), find(one, "value")
        # Of one that the cluster has, no default of a shell counts.
        variables[key] = f"${key}" if value is None else str(read_scalar(value)[0])
    own = {key: value for key, value in variables.items() if "$" not in value}
    said = [read_variables(own, here), Words(stated=(stated,), problems=tuple(node.problems))]
    said += [read_started([expand_pod(one, variables) for one in words], here)] if words else []
    said.append(start_processes(words, variables, job.where or here))
    said.append(Words(notes=tuple(_note_unread(container, words, path))))
    found = [] if gpus is None else [Fact("gpus.count", int(gpus), node.at["gpus"], JOB)]
    return Container(stated).map(join_words([*said, Words(tuple(found))]))


def _note_unread(container: object, words: list[str], path: str) -> Iterator[str]:
    """Say of variables that the cluster holds that a command may have others by them."""
    named = find(container, "envFrom")
    if named and "$" in " ".join(words):
        yield f"{path}:{read_line(named)}: not read: envFrom, whose variables the command may use"


def expand_pod(text: str, variables: Mapping[str, str]) -> str:
    """Return a word of a pod's command with the variables that its container states."""
    return re.sub(
        r"\$\(([A-Za-z_]\w*)\)", lambda one: variables.get(one[1], one[0]), expand(text, variables)
    )


def _find_shm(spec: dict[str, object], node: Node) -> int | None:
    """Return the size of /dev/shm; ``None`` without a pod that says it.

    An emptyDir of medium Memory without a size ends where the memory of the pod does, to which it
    counts; one of another medium is a disk.
    """
    if not spec or read_scalar(find(spec, "hostIPC"))[0] is True:
        return None
    mounts = find(node.node, "volumeMounts")
    for mount in mounts if isinstance(mounts, list) else ():
        if not is_shm(str(read_scalar(find(mount, "mountPath"))[0])):
            continue
        name = read_scalar(find(mount, "name"))[0]
        volumes = spec.get("volumes")
        for volume in volumes if isinstance(volumes, list) else ():
            if read_scalar(find(volume, "name"))[0] == name:
                return _size_volume(volume, node)
    node.at["shm"] = f"{node.path}:{read_line(node.node)}, no emptyDir at /dev/shm"
    return SHM


def _size_volume(volume: object, node: Node) -> int | None:
    empty = find(volume, "emptyDir")
    medium, line = read_scalar(find(empty, "medium"))
    if medium != "Memory":
        return None
    inner = Node(empty, node.path, None)
    size = inner.number("shm", parse_pod_quantity, "sizeLimit")
    node.problems += inner.problems
    node.at["shm"] = inner.at.get("shm", f"{node.path}:{line}")
    return whole(size)
