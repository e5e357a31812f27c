# SPDX-License-Identifier: BSD-2-Clause
"""Read files that start a run in a container: Compose, and pods of Kubernetes.

Sources: the Compose specification; the reference of the Kubernetes API, core/v1 PodSpec. A pod
without an emptyDir at /dev/shm has 64 MiB there, and one of medium Memory counts as its memory.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping

from ..core.policy_tree import Located
from ..core.values import UNLIMITED
from .docker_run import (
    SHM,
    Container,
    find_shm,
    is_shm,
    mounts_shm,
    read_cpus,
    read_mount,
    read_pids,
)
from .facts import ARGUMENT, JOB, Fact, Stated, Words, join_path, join_words
from .launchers import read_command, read_variables
from .options import read_arguments
from .quantities import parse_count, parse_pod_quantity, parse_size
from .shell_variables import expand
from .tree import find, list_leaves, read_line, read_scalar

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::?-([^}]*))?\}|\$([A-Za-z_][A-Za-z0-9_]*)")
_PODS = (
    *("Pod", "Job", "CronJob", "Deployment", "StatefulSet", "ReplicaSet", "DaemonSet"),
    *("PyTorchJob", "MPIJob", "TrainJob", "JobSet", "RayCluster", "RayJob", "LeaderWorkerSet"),
)


def is_compose(root: object) -> bool:
    """Tell whether a file is one of Compose."""
    services = find(root, "services")
    return isinstance(services, dict) and all(isinstance(one, dict) for one in services.values())


def read_compose(root: object, path: str, environment: Mapping[str, str], folder: str) -> Words:
    """Return what the service that trains says; where several could, all are named.

    :param folder: Where relative paths begin: that of the file.
    """
    services = {
        str(name): _read_service(service, path, environment, folder)
        for name, service in find(root, "services").items()
    }
    training = {name: one for name, one in services.items() if one.facts or one.wanted}
    chosen = training or services
    if len(chosen) == 1:
        return next(iter(chosen.values()))
    names = ", ".join(chosen)
    told = f"{path}: the services {names} could each be the run; keep one, or name its command"
    return Words(problems=(told,))


class _Node:
    """A mapping of a file whose values are read one by one; problems are gathered."""

    def __init__(self, node: object, path: str, environment: Mapping[str, str]) -> None:
        self.node, self.path, self.environment = node, path, environment
        self.problems: list[str] = []
        self.at: dict[str, str] = {}

    def text(self, *keys: str) -> tuple[str, str]:
        """Return a scalar as text, its variables filled in, and where it stands."""
        value, line = read_scalar(find(self.node, *keys))
        return ("" if value is None else self.fill(str(value))), f"{self.path}:{line}"

    def fill(self, text: str) -> str:
        def replace(match: re.Match[str]) -> str:
            value = self.environment.get(match[1] or match[3])
            return value if value is not None else match[2] if match[2] is not None else match[0]

        return _VARIABLE.sub(replace, text.replace("$$", "\0")).replace("\0", "$")

    def number(self, name: str, parse: object, *keys: str) -> float | None:
        """Return a number under the name of a limit; anything else is a problem."""
        text, where = self.text(*keys)
        if not text:
            return None
        try:
            value: float | None = parse(text)  # type: ignore[operator]
        except ValueError as exc:
            self.problems.append(f"{where}: {'.'.join(keys)}: {exc}")
            return None
        if value:
            self.at[name] = where
        return value or None

    def first(self, name: str, parse: object, *paths: tuple[str, ...]) -> float | None:
        found = (self.number(name, parse, *keys) for keys in paths)
        return next((one for one in found if one is not None), None)


def _read_service(service: object, path: str, environment: Mapping[str, str], folder: str) -> Words:
    node = _Node(service, path, environment)
    limits = ("deploy", "resources", "limits")
    memory = node.first("memory", parse_size, ("mem_limit",), (*limits, "memory"))
    pids = node.first("pids", read_pids, ("pids_limit",), (*limits, "pids"))
    cpus = node.first("cpus", read_cpus, ("cpus",), (*limits, "cpus"))
    shm = node.number("shm", parse_size, "shm_size")
    here = f"{path}:{read_line(service)}"
    node.at.setdefault("shm", f"{here}, no shm_size")
    shm = _find_tmpfs(node) or shm
    mounts = tuple(_read_volumes(node, folder))
    own_shm = None if mounts_shm(mounts) else find_shm(node.text("ipc")[0], shm)
    if own_shm is None:
        del node.at["shm"]
    stated = Stated(
        "new-container:docker",
        node.at,
        _whole(memory),
        own_shm,
        pids=_whole(pids),
        cpus=cpus,
        nofile=_read_ulimit(node, "nofile"),
        memlock=_read_ulimit(node, "memlock"),
    )
    variables = dict(_read_environment(node))
    container = Container(stated, (), variables, mounts, node.text("working_dir")[0])
    entry, command = _read_words(node, "entrypoint"), _read_words(node, "command")
    both = [word for words, _where in (*entry, *command) for word in words]
    both = [expand(word, variables) for word in both]
    said = [read_started(both, (command or entry)[0][1])] if both else []
    joined = join_words([*said, read_variables(variables, here), Words(stated=(stated,))])
    return container.map(joined._replace(problems=(*joined.problems, *node.problems)))


def _find_tmpfs(node: _Node) -> int | None:
    """Return the size of a tmpfs that is /dev/shm: of ``tmpfs``, or of a volume of that type."""
    found = find(node.node, "tmpfs")
    for one in found if isinstance(found, list) else [found]:
        target, _sign, options = str(read_scalar(one)[0]).partition(":")
        size = re.search(r"(?:^|,)size=(\w+)", options)
        if is_shm(target) and size:
            return _size_tmpfs(node, size[1], one)
    for one in find(node.node, "volumes") or ():
        size_of, _line = read_scalar(find(one, "tmpfs", "size"))
        if is_shm(str(read_scalar(find(one, "target"))[0])) and size_of is not None:
            return _size_tmpfs(node, str(size_of), find(one, "tmpfs", "size"))
    return None


def _size_tmpfs(node: _Node, text: str, at: object) -> int | None:
    try:
        size = parse_size(text)
    except ValueError:
        return None
    node.at["shm"] = f"{node.path}:{read_line(at)}"
    return size


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _read_ulimit(node: _Node, item: str) -> int | None:
    keys = ("ulimits", item, "soft") if isinstance(find(node.node, "ulimits", item), dict) else ()
    text, where = node.text(*(keys or ("ulimits", item)))
    if not text:
        return None
    if not re.fullmatch("-1|[0-9]{1,18}", text):
        node.problems.append(f"{where}: {item}: {text!r} is not a whole number")
        return None
    node.at[item] = where
    return UNLIMITED if text == "-1" else int(text)


def _read_words(node: _Node, key: str) -> list[tuple[list[str], str]]:
    """Return a command, a text or a list of words, with where it stands."""
    found = find(node.node, key)
    where = f"{node.path}:{read_line(found)}"
    if isinstance(found, list):
        words = [node.fill(str(read_scalar(one)[0])) for one in found]
        return [(words, where)] if words else []
    text, where = node.text(key)
    try:
        words = shlex.split(text)
    except ValueError as exc:
        node.problems.append(f"{where}: {key}: is not a command: {exc}")
        return []
    return [(words, where)] if words else []


def _read_environment(node: _Node) -> Iterator[tuple[str, str]]:
    """Yield variables, of a mapping or of a list of ``A=1``."""
    found = find(node.node, "environment")
    for leaf in list_leaves(found):
        value = node.fill("" if leaf.value is None else str(leaf.value))
        if isinstance(found, dict):
            yield leaf.path[0], value
        else:
            name, sign, text = value.partition("=")
            if sign:
                yield name, text


def _read_volumes(node: _Node, folder: str) -> Iterator[tuple[str, str]]:
    for one in find(node.node, "volumes") or ():
        if isinstance(one, Located):
            mounts = read_mount(node.fill(str(one.value)))
        else:
            source, target = (str(read_scalar(find(one, key))[0]) for key in ("source", "target"))
            if read_scalar(find(one, "type"))[0] == "tmpfs":
                continue
            mounts = [(target, node.fill(source))] if source.startswith(("/", ".")) else []
        for target, source in mounts:
            yield target, join_path(folder, source)


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
    node = _Node(container, path, {})
    limits = ("resources", "limits")
    memory = node.number("memory", parse_pod_quantity, *limits, "memory")
    cpus = node.number("cpus", parse_pod_quantity, *limits, "cpu")
    gpus = node.number("gpus", parse_count, *limits, "nvidia.com/gpu")
    shm = _find_shm(spec, node)
    name, where = node.text("name")
    at = {item: place for item, place in node.at.items() if item != "gpus"}
    stated = Stated(f"pod:{name or 'pod'}", at, _whole(memory), shm, cpus=cpus)
    words: list[str] = []
    here = where
    for key in ("command", "args"):
        for more, place in _read_words(node, key):
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


def read_started(words: list[str], where: str) -> Words:
    """Return what a container starts; of options alone those of a script, which its image names."""
    if not words[0].startswith("-"):
        return read_command(words, where)
    told = f"{where}: only options: what the image starts of its own is not known"
    return join_words([read_arguments(words, where, ARGUMENT), Words(notes=(told,))])


def _find_shm(spec: dict[str, object], node: _Node) -> int | None:
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


def _size_volume(volume: object, node: _Node) -> int | None:
    empty = find(volume, "emptyDir")
    medium, line = read_scalar(find(empty, "medium"))
    if medium != "Memory":
        return None
    inner = _Node(empty, node.path, {})
    size = inner.number("shm", parse_pod_quantity, "sizeLimit")
    node.problems += inner.problems
    node.at["shm"] = inner.at.get("shm", f"{node.path}:{line}")
    return _whole(size)
