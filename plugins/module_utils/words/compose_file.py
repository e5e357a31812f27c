# SPDX-License-Identifier: BSD-2-Clause
"""Read the files of Compose, which start a run in a container.

Source: the Compose specification.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from ..core.policy_tree import Located
from ..core.values import UNLIMITED, NamedTuple
from .container_gpus import read_gpus_of_service
from .container_node import Node, read_started, read_words, whole
from .docker_run import Container, find_shm, is_shm, mounts_shm, read_cpus, read_mount, read_pids
from .env_file import read_env_file
from .facts import Stated, Words, join_path, join_words
from .launchers import read_variables
from .quantities import parse_size
from .shell_variables import expand
from .tree import find, list_leaves, read_line, read_scalar


def is_compose(root: object) -> bool:
    """Tell whether a file is one of Compose."""
    services = find(root, "services")
    return isinstance(services, dict) and all(isinstance(one, dict) for one in services.values())


_OTHERS = "give the one file that docker compose config prints"


def _has_profile(root: object, name: str) -> bool:
    """Tell whether a service starts only where its profile is asked for."""
    return bool(find(root, "services", name, "profiles"))


def _mind_others(said: Words, root: object, site: Site) -> Words:
    """Return what a service says, refused where other files that are not read change it."""
    stem, _dot, suffix = site.path.rpartition("/")[2].rpartition(".")
    beside = f"{stem}.override.{suffix}"
    problems = list(said.problems)
    if stem in ("compose", "docker-compose") and site.read_beside(beside):
        problems.append(f"{site.path}: {beside} changes it, and is not read; {_OTHERS}")
    include = find(root, "include")
    if include:
        at = read_line(include)
        problems.append(f"{site.path}:{at}: include: other files are not read; {_OTHERS}")
    return said._replace(problems=tuple(problems))


class Site(NamedTuple):
    """A file of Compose: its name for people, the variables that are set, and its folder.

    ``read_beside`` returns what a file holds whose path begins there, nothing where it is not.
    """

    path: str
    environment: Mapping[str, str]
    folder: str
    read_beside: Callable[[str], str]


def read_compose(root: object, site: Site, only: str = "") -> Words:
    """Return what the service that trains says; where several could, all are named.

    :param only: The one service that is asked for.
    """
    beside = read_env_file(site.read_beside(".env"), site.environment)
    site = site._replace(environment={**beside, **site.environment})
    services = {
        str(name): _read_service(service, site)
        for name, service in find(root, "services").items()
        if only in ("", str(name))
    }
    training = {name: one for name, one in services.items() if one.facts or one.wanted}
    chosen = training or services
    always = {name: one for name, one in chosen.items() if not _has_profile(root, name)}
    chosen = chosen if only else always or chosen
    if len(chosen) == 1:
        return _mind_others(next(iter(chosen.values())), root, site)
    if only:
        return Words(problems=(f"{site.path}: has no service {only}",))
    if not chosen:
        return Words(problems=(f"{site.path}: has no service",))
    told = f"{site.path}: the services {', '.join(chosen)} could each be the run"
    command = f"-- docker compose -f {site.path} run {next(iter(chosen))}"
    return Words(problems=(f"{told}; in place of the file give one, such as {command}",))


def _read_service(service: object, site: Site) -> Words:
    path, folder = site.path, site.folder
    node = Node(service, path, site.environment)
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
        whole(memory),
        own_shm,
        pids=whole(pids),
        cpus=cpus,
        nofile=_read_ulimit(node, "nofile"),
        memlock=_read_ulimit(node, "memlock"),
    )
    variables = {**_read_env_files(node, site), **dict(_read_environment(node))}
    container = Container(stated, (), variables, mounts, node.text("working_dir")[0])
    entry, command = read_words(node, "entrypoint"), read_words(node, "command")
    both = [word for words, _where in (*entry, *command) for word in words]
    both = [expand(word, variables) for word in both]
    said = [read_started(both, (command or entry)[0][1])] if both else []
    said += [read_variables(variables, here), read_gpus_of_service(service, path)]
    joined = join_words([*said, Words(stated=(stated,), notes=tuple(_note_copies(service, path)))])
    problems = (*joined.problems, *node.problems, *_refuse_extends(service, path))
    return container.map(joined._replace(problems=problems))


def _find_tmpfs(node: Node) -> int | None:
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


def _size_tmpfs(node: Node, text: str, at: object) -> int | None:
    try:
        size = parse_size(text)
    except ValueError:
        return None
    node.at["shm"] = f"{node.path}:{read_line(at)}"
    return size


def _read_ulimit(node: Node, item: str) -> int | None:
    keys = ("ulimits", item, "soft") if isinstance(find(node.node, "ulimits", item), dict) else ()
    text, where = node.text(*(keys or ("ulimits", item)))
    if not text:
        return None
    if not re.fullmatch("-1|[0-9]{1,18}", text):
        node.problems.append(f"{where}: {item}: {text!r} is not a whole number")
        return None
    node.at[item] = where
    return UNLIMITED if text == "-1" else int(text)


def _refuse_extends(service: object, path: str) -> Iterator[str]:
    """Refuse a service that is made of another one, which may state other limits."""
    extends = find(service, "extends")
    if extends is not None:
        yield f"{path}:{read_line(extends)}: extends: the other service is not read; {_OTHERS}"


def _note_copies(service: object, path: str) -> Iterator[str]:
    """Say of a service that is started several times that one of them is judged."""
    for keys in (("deploy", "replicas"), ("scale",)):
        number, line = read_scalar(find(service, *keys))
        if isinstance(number, int) and number > 1:
            told = f"{path}:{line}: {number} of the container run at once: one is judged"
            yield f"{told}, and the host needs {number} times as much"


def _read_env_files(node: Node, site: Site) -> dict[str, str]:
    """Return the variables of ``env_file``: a path, or a list of paths or of mappings."""
    named = find(node.node, "env_file")
    found: dict[str, str] = {}
    for one in named if isinstance(named, list) else [named]:
        value, line = read_scalar(find(one, "path") if isinstance(one, dict) else one)
        if value is None:
            continue
        text = site.read_beside(node.fill(str(value)))
        if not text and read_scalar(find(one, "required"))[0] is not False:
            node.problems.append(f"{site.path}:{line}: env_file: {value}: cannot be read, or empty")
        found.update(read_env_file(text, site.environment))
    return found


def _read_environment(node: Node) -> Iterator[tuple[str, str]]:
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


def _read_volumes(node: Node, folder: str) -> Iterator[tuple[str, str]]:
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
