# SPDX-License-Identifier: BSD-2-Clause
"""Read the pods of Kubernetes that run, and the jobs that are made of them.

Source: the reference of the Kubernetes API, core/v1 PodSpec. A pod without an emptyDir at /dev/shm
has 64 MiB there, and one of medium Memory counts as its memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from .container_node import Node, read_started, read_words, whole
from .docker_run import SHM, Container, is_shm
from .facts import JOB, Fact, Stated, Words, join_words
from .launchers import read_variables
from .quantities import parse_count, parse_pod_quantity
from .shell_variables import expand
from .tree import find, read_line, read_scalar

_PODS = (
    *("Pod", "Job", "CronJob", "Deployment", "StatefulSet", "ReplicaSet", "DaemonSet"),
    *("PyTorchJob", "MPIJob", "TrainJob", "JobSet", "RayCluster", "RayJob", "LeaderWorkerSet"),
)


def is_pod(root: object) -> bool:
    """Tell whether a document is one of Kubernetes that runs containers."""
    kind, _line = read_scalar(find(root, "kind"))
    return find(root, "apiVersion") is not None and (kind in _PODS or bool(list(_find_specs(root))))


def _find_specs(root: object) -> Iterator[dict[str, object]]:
    """Yield every mapping that has containers, wherever its kind puts it."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            if isinstance(node.get("containers"), list):
                yield node
            waiting += reversed(list(node.values()))
        elif isinstance(node, list):
            waiting += reversed(node)


def read_pod(root: object, path: str) -> Words:
    """Return what the containers of a pod say that trains."""
    parts = []
    for spec in _find_specs(root):
        containers = spec["containers"]
        said = [_read_container(spec, one, path) for one in containers]  # type: ignore[attr-defined]
        training = [one for one in said if one.facts or one.wanted]
        parts += training or said
    # Master and workers of one job are alike.
    return parts[0] if parts else Words()


def _read_container(spec: dict[str, object], container: object, path: str) -> Words:
    node = Node(container, path, {})
    limits = ("resources", "limits")
    memory = node.number("memory", parse_pod_quantity, *limits, "memory")
    cpus = node.number("cpus", parse_pod_quantity, *limits, "cpu")
    gpus = node.number("gpus", parse_count, *limits, "nvidia.com/gpu")
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
    variables = {
        str(read_scalar(find(one, "name"))[0]): str(read_scalar(find(one, "value"))[0])
        for one in (env if isinstance(env, list) else ())
        if find(one, "value") is not None
    }
    said = [read_variables(variables, here), Words(stated=(stated,), problems=tuple(node.problems))]
    said += [read_started([expand_pod(one, variables) for one in words], here)] if words else []
    found = [] if gpus is None else [Fact("gpus.count", int(gpus), node.at["gpus"], JOB)]
    return Container(stated).map(join_words([*said, Words(tuple(found))]))


def expand_pod(text: str, variables: Mapping[str, str]) -> str:
    """Return a word of a pod's command with the variables that its container states."""
    return re.sub(
        r"\$\(([A-Za-z_]\w*)\)", lambda one: variables.get(one[1], one[0]), expand(text, variables)
    )


def _find_shm(spec: dict[str, object], node: Node) -> int | None:
    """Return the size of /dev/shm.

    An emptyDir of medium Memory without a size ends where the memory of the pod does, to which it
    counts; one of another medium is a disk.
    """
    if read_scalar(find(spec, "hostIPC"))[0] is True:
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
    inner = Node(empty, node.path, {})
    size = inner.number("shm", parse_pod_quantity, "sizeLimit")
    node.problems += inner.problems
    node.at["shm"] = inner.at.get("shm", f"{node.path}:{line}")
    return whole(size)
