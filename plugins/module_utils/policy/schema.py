# SPDX-License-Identifier: BSD-2-Clause
"""Read a policy, as YAML gives it, into checked values; report every violation at once."""

from __future__ import annotations

import re
from typing import NamedTuple

from .engines_policy import (
    ContainerdPolicy,
    PodmanPolicy,
    read_container_limits,
    read_containerd,
    read_podman,
)
from .policy_keys import DOCKER, ENGINES, PROCESS, SECTIONS, SESSION, SHARED_MEMORY, SYSCTL
from .policy_reader import (
    LONGEST_WORD,
    Limit,
    PolicyError,
    join_names,
    name_kind,
    read_entries,
    read_mapping,
    read_quantity,
    read_stated,
    refuse_unknown,
)
from .policy_shape import find_misshapes, find_unfit_texts
from .profiles import PROFILES
from .rlimit import UNLIMITED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from .services_policy import ServicesPolicy
    from .slurm_policy import SlurmPolicy
    from .training_policy import Training
    from .waivers_policy import Waiver

_SELECTORS = tuple(name for name in PROCESS if name != "limits")
_DOMAIN = re.compile(r"[^\s#*%@:][^\s#:]*|\*|@[^\s#:]+|@?([0-9]+:[0-9]*|:[0-9]+)")
_LINE = re.compile(r"[ \t]*[!-~][ -~\t]*")  # The kernel's values are ASCII.
_SYSCTL_KEY = re.compile(r"[A-Za-z0-9_-]+([./][A-Za-z0-9_:-]+)+")


class SessionRule(NamedTuple):
    """Limits of PAM logins for some domains of limits.conf(5)."""

    users: tuple[str, ...]
    limits: Mapping[str, Limit]


class KernelValue(NamedTuple):
    """A sysctl: a minimum and a maximum, or the exact text it must have."""

    minimum: int | None = None
    maximum: int | None = None
    exact: str | None = None


class DockerPolicy(NamedTuple):
    """What a container gets from the Docker daemon; ``shm_size`` in bytes."""

    limits: Mapping[str, Limit]
    shm_size: int | None


class ProcessRule(NamedTuple):
    """Limits of running processes, selected ``by`` user, name or unit. Only checked."""

    by: str
    value: str
    limits: Mapping[str, Limit]


class Policy(NamedTuple):
    """What a host owes its jobs. An absent section asks nothing."""

    sessions: tuple[SessionRule, ...] = ()
    kernel: Mapping[str, KernelValue] = {}
    docker: DockerPolicy | None = None
    podman: PodmanPolicy | None = None
    containerd: ContainerdPolicy | None = None
    processes: tuple[ProcessRule, ...] = ()
    shared_memory: int | None = None
    """Bytes that /dev/shm must have at least."""
    services: ServicesPolicy | None = None
    slurm: SlurmPolicy | None = None
    training: Training | None = None
    waivers: tuple[Waiver, ...] = ()


def load_policy(
    policy: object, profile: str, run: bool = False, told: Iterable[str] = ()
) -> Policy:
    """Merge *policy* over the named profile and check the result.

    Mappings merge key by key, lists and values replace, ``null`` removes what the profile says.

    :param policy: A mapping, or ``None`` for the profile as it is.
    :param run: Whether a run is meant to be judged, so that all it needs must be stated.
    :param told: What is wrong with it and no longer seen in its values, such as a second key.
    :raises PolicyError: With every violation, each with its key path.
    """
    if profile not in PROFILES:
        raise PolicyError([f"profile: {profile!r} is unknown; accepted are {join_names(PROFILES)}"])
    if policy is not None and not isinstance(policy, dict):
        raise PolicyError([f"policy: {name_kind(policy)} was given; a mapping is accepted"])
    if policy == {}:
        raise PolicyError(["policy: is empty, so nothing would be required; leave it out"])
    misshapes = find_misshapes(policy)
    if misshapes:
        raise PolicyError([*told, *misshapes])
    problems = [*told, *_find_second_names(policy or {})]
    loaded = _read_policy(merge_profile(policy or {}, profile), problems)
    if not problems:
        problems += [*_find_clashes(loaded), *find_unfit_texts(policy)]
    problems += _find_missing(loaded, problems) if run else []
    if not problems and loaded._replace(waivers=()) == Policy():
        problems.append("policy: is empty, so nothing would be required")
    if problems:
        raise PolicyError(problems)
    return loaded


def find_problems(raw: Mapping[str, object]) -> list[str]:
    """Return what is wrong with the values of a small policy that we wrote ourselves."""
    problems = find_misshapes(raw)
    _read_policy(raw, problems)
    return problems


def merge_profile(policy: Mapping[str, object], profile: str) -> Mapping[str, object]:
    """Return a policy merged over a profile, as plain data."""
    return merge(PROFILES[profile], _with_normal_keys(policy))


def _find_missing(policy: Policy, told: list[str]) -> list[str]:
    """Return what a run must state and does not, but for what is told to be wrong."""
    if policy.training is None:
        return []
    from .training_policy import find_missing

    paths = {problem.partition(":")[0] for problem in told}
    missing = find_missing(policy.training)
    return [one for one in missing if one.partition(":")[0] not in paths]


def _find_clashes(policy: Policy) -> Iterator[str]:
    """Yield the units that two sections speak of: each would write what the other takes out."""
    units = policy.services.units if policy.services else {}
    others = (
        ("jobs.slurm.limits", policy.slurm, "slurmd.service"),
        ("containers.containerd.limits", policy.containerd, "containerd.service"),
    )
    for path, section, unit in others:
        if section and section.limits and unit in units:
            yield f"services.units.{unit}: {path} states it as well; one of them is accepted"


def _find_second_names(policy: Mapping[str, object]) -> Iterator[str]:
    """Yield the sysctls that are stated under two spellings: one value would be lost."""
    kernel = policy.get("kernel")
    names: dict[object, object] = {}
    for key in kernel if isinstance(kernel, dict) else ():
        first = names.setdefault(_normal(key), key)
        if first != key:
            yield f"kernel.{key}: states the same as kernel.{first}; one of them is accepted"


def _with_normal_keys(policy: Mapping[str, object]) -> Mapping[str, object]:
    """Spell the names of sysctls in one way, so that they meet those of a profile."""
    kernel = policy.get("kernel")
    if not isinstance(kernel, dict):
        return policy
    return {**policy, "kernel": {_normal(key): value for key, value in kernel.items()}}


def _normal(key: object) -> object:
    return normal_key(key) if isinstance(key, str) else key


def merge(base: Mapping[str, object], over: Mapping[str, object]) -> dict[str, object]:
    """Return *base* with *over* merged in; ``None`` removes a key."""
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            merged[key] = merge(below if _is_mergeable(below, value) else {}, value)  # type: ignore[arg-type]
        else:
            merged[key] = value
    return merged


def _is_mergeable(below: object, over: Mapping[str, object]) -> bool:
    """Tell whether *over* adds to *below*; a kernel key's ``exact`` replaces its minimum."""
    return isinstance(below, dict) and "exact" not in over


def _read_policy(raw: Mapping[str, object], problems: list[str]) -> Policy:
    refuse_unknown("policy", raw, SECTIONS, problems)
    containers = read_mapping("containers", raw.get("containers", {}), ENGINES, problems)
    return Policy(
        sessions=read_sessions(raw.get("sessions", []), problems),
        kernel=_read_kernel(raw.get("kernel", {}), problems),
        docker=_read_docker(containers.get("docker", {}), problems),
        podman=read_podman(containers.get("podman", {}), problems),
        containerd=read_containerd(containers.get("containerd", {}), problems),
        processes=_read_processes(raw.get("processes", []), problems),
        shared_memory=_read_shared_memory(raw.get("shared_memory", {}), problems),
        services=_read_services(raw, problems),
        slurm=_read_jobs(raw, problems),
        training=_read_training(raw, problems),
        waivers=_read_waivers(raw, problems),
    )


def _read_services(raw: Mapping[str, object], problems: list[str]) -> ServicesPolicy | None:
    if "services" not in raw:
        return None
    from .services_policy import read_services  # Few policies speak of them.

    return read_services(raw["services"], problems)


def _read_jobs(raw: Mapping[str, object], problems: list[str]) -> SlurmPolicy | None:
    if "jobs" not in raw:
        return None
    from .slurm_policy import read_jobs  # Few policies speak of them.

    return read_jobs(raw["jobs"], problems)


def _read_training(raw: Mapping[str, object], problems: list[str]) -> Training | None:
    if "training" not in raw:
        return None
    from .training_policy import read_training  # Long, and of one run.

    return read_training(raw["training"], problems)


def _read_waivers(raw: Mapping[str, object], problems: list[str]) -> tuple[Waiver, ...]:
    if "waivers" not in raw:
        return ()
    from .waivers_policy import read_waivers  # Few policies have any.

    return read_waivers(raw["waivers"], problems)


def read_sessions(raw: object, problems: list[str]) -> tuple[SessionRule, ...]:
    """Read the section ``sessions``; every violation is added to *problems*."""
    rules = []
    items = SESSION["limits"].accepted
    for path, entry in read_entries("sessions", raw, SESSION, problems):
        users = entry.get("users")
        if not isinstance(users, list) or not users:
            problems.append(f"{path}.users: {users!r} was given; a list of domains is accepted")
            users = []
        for user in users:
            if not _is_domain(user):
                problems.append(
                    f"{path}.users: {user!r} is no domain; accepted are a user, '*', '@group',"
                    " and uid or gid ranges as in limits.conf(5)"
                )
        limits = read_stated(f"{path}.limits", entry.get("limits"), items, problems)
        rules.append(SessionRule(tuple(str(user) for user in users), limits))
    return tuple(rules)


def _is_domain(user: object) -> bool:
    if not isinstance(user, str) or len(user) > LONGEST_WORD or not user.isprintable():
        return False
    return bool(_DOMAIN.fullmatch(user))


def _read_processes(raw: object, problems: list[str]) -> tuple[ProcessRule, ...]:
    rules = []
    items = PROCESS["limits"].accepted
    for path, entry in read_entries("processes", raw, PROCESS, problems):
        chosen = [name for name in _SELECTORS if name in entry]
        limits = read_stated(f"{path}.limits", entry.get("limits"), items, problems)
        if len(chosen) != 1 or not isinstance(entry[chosen[0]], str):
            problems.append(f"{path}: exactly one of {join_names(_SELECTORS)} is needed, as a text")
        else:
            rules.append(ProcessRule(chosen[0], str(entry[chosen[0]]), limits))
    return tuple(rules)


def _read_docker(raw: object, problems: list[str]) -> DockerPolicy | None:
    path = "containers.docker"
    docker = read_mapping(path, raw, DOCKER, problems)
    limits = read_container_limits(path, docker.get("limits", {}), "Docker", problems)
    shm_size = None
    if "shm_size" in docker:
        shm_size = read_quantity(f"{path}.shm_size", docker["shm_size"], "bytes", problems)
    if shm_size in (0, UNLIMITED):
        problems.append(f"{path}.shm_size: a size above 0 is accepted")
    return DockerPolicy(limits, shm_size) if limits or shm_size else None


def _read_shared_memory(raw: object, problems: list[str]) -> int | None:
    section = read_mapping("shared_memory", raw, SHARED_MEMORY, problems)
    if "size" not in section:
        return None
    size = read_quantity("shared_memory.size", section["size"], "bytes", problems)
    if size in (0, UNLIMITED):
        problems.append("shared_memory.size: a size above 0 is accepted")
    return size


def _read_kernel(raw: object, problems: list[str]) -> dict[str, KernelValue]:
    if not isinstance(raw, dict):
        problems.append(f"kernel: {name_kind(raw)} was given; a mapping is accepted")
        return {}
    values: dict[str, KernelValue] = {}
    for key, value in raw.items():
        path = f"kernel.{key}"
        if not isinstance(key, str) or not _SYSCTL_KEY.fullmatch(key):
            problems.append(f"{path}: {key!r} is no sysctl; accepted are names as fs.file-max")
        elif isinstance(value, dict):
            values[normal_key(key)] = _read_kernel_bounds(path, value, problems)
        else:
            minimum = read_quantity(path, value, "bytes", problems)
            values[normal_key(key)] = KernelValue(minimum=minimum)
        if values.get(normal_key(str(key)), KernelValue()).minimum == UNLIMITED:
            problems.append(f"{path}: a sysctl has no 'unlimited'; a whole number is accepted")
    return values


def normal_key(key: str) -> str:
    """Return a sysctl's name with dots, as sysctl(8) prints it.

    The first separator decides (sysctl.d(5)): after a slash, slashes separate and dots are
    part of a name, as in ``net/ipv4/conf/eth0.100/forwarding``.
    """
    first = re.search(r"[./]", key)
    if first is None or first[0] == ".":
        return key
    return key.lstrip("/").translate(str.maketrans("./", "/."))


def _read_kernel_bounds(path: str, raw: Mapping[str, object], problems: list[str]) -> KernelValue:
    refuse_unknown(path, raw, SYSCTL, problems)
    if "exact" in raw:
        exact = raw["exact"]
        text = "" if isinstance(exact, bool) else str(exact)
        if len(raw) > 1 or not isinstance(exact, (int, str)) or not _LINE.fullmatch(text):
            problems.append(f"{path}: 'exact' stands alone and takes a number or one line of ASCII")
        return KernelValue(exact=" ".join(text.split()))
    if not raw:
        problems.append(f"{path}: is empty; accepted are {join_names(SYSCTL)}")
    bounds = {name: read_quantity(f"{path}.{name}", raw[name], "bytes", problems) for name in raw}
    low, high = bounds.get("min"), bounds.get("max")
    if low is not None and high is not None and low > high:
        problems.append(f"{path}: min {low} is above max {high}")
    return KernelValue(low, high)
