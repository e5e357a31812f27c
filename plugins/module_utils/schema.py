# SPDX-License-Identifier: BSD-2-Clause
"""Read a policy, as YAML gives it, into checked values; report every violation at once."""

from __future__ import annotations

from typing import NamedTuple

from .core.policy_shape import find_misshapes, find_unfit_texts
from .core.profiles import PROFILES
from .core.reader import PolicyError, join_names, name_kind, read_mapping, refuse_unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from .containerd.policy import ContainerdPolicy
    from .core.waivers_policy import Waiver
    from .docker.policy import DockerPolicy
    from .kernel.policy import KernelValue
    from .podman.policy import PodmanPolicy
    from .processes.policy import ProcessRule
    from .services.policy import ServicesPolicy
    from .sessions.policy import SessionRule
    from .slurm.policy import SlurmPolicy
    from .training.policy import Training


ENGINES = ("docker", "podman", "containerd")
SECTIONS = (
    "sessions",
    "kernel",
    "services",
    "containers",
    "processes",
    "shared_memory",
    "jobs",
    "training",
    "waivers",
)
"""The keys of a policy; of which keys each is made says the reader of it."""


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
    from .kernel.policy import find_second_names

    problems = [*told, *find_second_names(policy or {})]
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
    from .kernel.policy import with_normal_keys

    return merge(PROFILES[profile], with_normal_keys(policy))


def _find_missing(policy: Policy, told: list[str]) -> list[str]:
    """Return what a run must state and does not, but for what is told to be wrong."""
    if policy.training is None:
        return []
    from .training.policy import find_missing

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
        sessions=_read_sessions(raw, problems),
        kernel=_read_kernel(raw, problems),
        docker=_read_docker(containers, problems),
        podman=_read_podman(containers, problems),
        containerd=_read_containerd(containers, problems),
        processes=_read_processes(raw, problems),
        shared_memory=_read_shared_memory(raw, problems),
        services=_read_services(raw, problems),
        slurm=_read_jobs(raw, problems),
        training=_read_training(raw, problems),
        waivers=_read_waivers(raw, problems),
    )


def _read_sessions(raw: Mapping[str, object], problems: list[str]) -> tuple[SessionRule, ...]:
    if "sessions" not in raw:
        return ()
    from .sessions.policy import read_sessions

    return read_sessions(raw["sessions"], problems)


def _read_kernel(raw: Mapping[str, object], problems: list[str]) -> Mapping[str, KernelValue]:
    if "kernel" not in raw:
        return {}
    from .kernel.policy import read_kernel

    return read_kernel(raw["kernel"], problems)


def _read_docker(raw: Mapping[str, object], problems: list[str]) -> DockerPolicy | None:
    if "docker" not in raw:
        return None
    from .docker.policy import read_docker

    return read_docker(raw["docker"], problems)


def _read_podman(raw: Mapping[str, object], problems: list[str]) -> PodmanPolicy | None:
    if "podman" not in raw:
        return None
    from .podman.policy import read_podman

    return read_podman(raw["podman"], problems)


def _read_containerd(raw: Mapping[str, object], problems: list[str]) -> ContainerdPolicy | None:
    if "containerd" not in raw:
        return None
    from .containerd.policy import read_containerd

    return read_containerd(raw["containerd"], problems)


def _read_processes(raw: Mapping[str, object], problems: list[str]) -> tuple[ProcessRule, ...]:
    if "processes" not in raw:
        return ()
    from .processes.policy import read_processes

    return read_processes(raw["processes"], problems)


def _read_shared_memory(raw: Mapping[str, object], problems: list[str]) -> int | None:
    if "shared_memory" not in raw:
        return None
    from .shared_memory.policy import read_shared_memory

    return read_shared_memory(raw["shared_memory"], problems)


def _read_services(raw: Mapping[str, object], problems: list[str]) -> ServicesPolicy | None:
    if "services" not in raw:
        return None
    from .services.policy import read_services  # Few policies speak of them.

    return read_services(raw["services"], problems)


def _read_jobs(raw: Mapping[str, object], problems: list[str]) -> SlurmPolicy | None:
    if "jobs" not in raw:
        return None
    from .slurm.policy import read_jobs  # Few policies speak of them.

    return read_jobs(raw["jobs"], problems)


def _read_training(raw: Mapping[str, object], problems: list[str]) -> Training | None:
    if "training" not in raw:
        return None
    from .training.policy import read_training  # Long, and of one run.

    return read_training(raw["training"], problems)


def _read_waivers(raw: Mapping[str, object], problems: list[str]) -> tuple[Waiver, ...]:
    if "waivers" not in raw:
        return ()
    from .core.waivers_policy import read_waivers  # Few policies have any.

    return read_waivers(raw["waivers"], problems)
