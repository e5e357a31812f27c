# SPDX-License-Identifier: BSD-2-Clause
"""What a policy says of one training run: the section ``training``, read and checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from ..core.quote import quote
from ..core.reader import Key, UnknownKey, join_names, name_kind, read_mapping, read_quantity
from ..core.values import UNLIMITED, NamedTuple
from .keys import DEEPSPEED, GPUS, KEYS, NEEDS

_ASKED = ("cpus",)
"""Made only where it is asked for: more workers than CPUs wait, and no run dies of it."""

SHARING = KEYS["sharing"].accepted
START_METHODS = KEYS["start_method"].accepted
STAGES = (2, 3)
SELF = "self"

_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}\$?"
_PACKAGE = r"[A-Za-z0-9]([A-Za-z0-9._-]{0,126}[A-Za-z0-9])?"
_PLACE = (
    r"self|session:[A-Za-z0-9_][A-Za-z0-9_.$-]*@[a-z0-9_-]+|service:[A-Za-z0-9:_.\\@-]+\.service"
    r"|container:docker/[A-Za-z0-9][A-Za-z0-9_.-]*|new-container:docker|job:slurm"
)
_PLACES = (
    "self, session:USER@SERVICE, service:NAME.service, container:docker/NAME,"
    " new-container:docker, job:slurm"
)
_LONGEST_PATH = 4096
_COUNT = r"[0-9]{1,18}(\.[0-9]{1,9})?([eE]\+?[0-9]{1,2})?"


class DeepSpeed(NamedTuple):
    """How DeepSpeed spreads a model; ``largest_layer`` is the parameters of the largest layer."""

    stage: int = 3
    parameters: int | None = None
    largest_layer: int | None = None
    gpus_per_node: int = 1
    nodes: int = 1
    offload_optimizer: bool = False
    offload_parameters: bool = False
    zero_init: bool = True
    trainable_parameters: int | None = None
    pin_memory: bool = False

    @property
    def trained(self) -> int:
        """Return how many parameters have gradients and states of an optimizer."""
        all_of_them = self.parameters or 0
        return min(self.trainable_parameters or all_of_them, all_of_them)


class Gpus(NamedTuple):
    """The GPUs that a run needs; ``memory`` is the bytes of each."""

    number: int = 1
    memory: int | None = None


class Training(NamedTuple):
    """One training run. Sizes are in bytes; ``None`` where nobody has said.

    ``checks`` are the only ones wanted, where it is stated; ``needs`` are those that a profile must
    have; beside them every check is made whose keys are given. Nobody states what is ``assumed``.
    """

    checks: tuple[str, ...] | None = None
    needs: tuple[str, ...] = ()
    workers: int | None = None
    prefetch: int = 2
    tensors_per_batch: int | None = None
    batch_size: int | None = None
    hold: int = 0
    loaders: int = 1
    epochs: int = 2
    library: str = "torch"
    gradient_accumulation: int = 1
    threads: int | None = None
    base: int = 3
    sharing: str = SHARING[0]
    start_method: str = START_METHODS[0]
    ranks_per_node: int = 1
    world_size: int | None = None
    groups: int | None = None
    backend: str | None = None
    dataset_files: int = 0
    worker_memory: int = 0
    returns_memory: bool | None = None
    pinned_buffer: int | None = None
    cache_dir: str | None = None
    makes_cache: bool = False
    shards: int | None = None
    cache_free: int | None = None
    deep: bool = False
    output_dir: str | None = None
    checkpoint_size: int | None = None
    save_total_limit: int | None = None
    resume: bool | None = None
    deepspeed: DeepSpeed | None = None
    packages: Mapping[str, str] = {}
    python: str | None = None
    gpus: Gpus | None = None
    user: str | None = None
    place: str = SELF
    assumed: tuple[str, ...] = ()


def read_training(raw: object, problems: list[str]) -> Training | None:
    """Read the section ``training``; every violation is added to *problems*."""
    section = read_mapping("training", raw, KEYS, problems)
    if not section:
        return None
    read = {key: _read_key(f"training.{key}", key, raw, problems) for key, raw in section.items()}
    stated = {key: value for key, value in read.items() if value is not None}
    run = Training(**stated)._replace(place=_find_place(read))  # type: ignore[arg-type]
    if run.deepspeed and "ranks_per_node" not in stated:
        return run._replace(ranks_per_node=run.deepspeed.gpus_per_node)  # It starts one for each.
    return run


def _read_key(path: str, name: str, raw: object, problems: list[str]) -> object:
    """Return the value of one key, ``None`` where it is refused or unknown."""
    key = KEYS.get(name)
    if key is None:
        return None
    if key.kind == "count":
        return _read_count(path, raw, key, problems)
    if key.kind == "word":
        return _read_word(path, raw, key.accepted, problems)
    return _READERS[name if name in _READERS else key.kind](path, raw, problems)


def _find_place(read: Mapping[str, object]) -> str:
    """Return which process will run it: where only the user is known, one of a fresh login."""
    user = read.get("user")
    return str(read.get("place") or (f"session:{user}@sshd" if user else SELF))


def choose_checks(training: Training) -> tuple[str, ...]:
    """Return the checks to be made, in order."""
    if training.checks is not None:
        return training.checks
    return tuple(
        check for check in NEEDS if check in training.needs or _can_be_made(training, check)
    )


def _can_be_made(training: Training, check: str) -> bool:
    """Tell whether a check that nobody asks for has what it needs; parts may be missing."""
    keys = [key for key in NEEDS[check] if "." not in key]
    return check not in _ASKED and all(_is_given(training, key) for key in keys)


def find_missing(training: Training) -> list[str]:
    """Return a sentence for each key that a check to be made lacks."""
    lacking: dict[str, list[str]] = {}
    for check in choose_checks(training):
        for key in NEEDS[check]:
            if not _is_given(training, key):
                lacking.setdefault(key, []).append(check)
    missing = [
        f"training.{key}: is missing; it is {_find_meaning(key)}, which {_join(checks)} cannot do"
        " without"
        for key, checks in lacking.items()
    ]
    if not choose_checks(training):
        missing.append("training: states too little for any check of a run")
    return missing


def _is_given(training: Training, key: str) -> bool:
    name, part = key.partition(".")[::2]
    value = getattr(training, name)
    if part == "largest_layer" and value and value.stage == 2:
        return True  # Stage 2 gathers no layers.
    return (getattr(value, part) if part and value else value) not in (None, {})


def _find_meaning(path: str) -> str:
    """Return what a key means, or one below it."""
    name, part = path.partition(".")[::2]
    return (KEYS[name].below[part] if part else KEYS[name]).text


def _join(checks: list[str]) -> str:
    names = [f"the check {check}" for check in checks]
    return names[0] if len(names) == 1 else f"the checks {', '.join(checks)}"


def _read_checks(path: str, raw: object, problems: list[str]) -> tuple[str, ...] | None:
    if not isinstance(raw, list) or not raw:
        problems.append(f"{path}: {quote(raw)} was given; a list of checks is accepted")
        return None
    for name in raw:
        if name not in NEEDS:
            problems.append(f"{path}: {quote(name)} is unknown; accepted are {join_names(NEEDS)}")
    return tuple(name for name in NEEDS if name in raw) or None


def _read_count(path: str, raw: object, key: Key, problems: list[str]) -> int | None:
    """Read a whole number; Ansible's command line gives digits, and 7e9 is how people write it."""
    number = _parse_number(raw)
    if number is None or not key.least <= number <= key.most:
        problems.append(
            f"{path}: {quote(raw)} was given;"
            f" a whole number from {key.least} to {key.most} is accepted"
        )
        return None
    return number


def _parse_number(raw: object) -> int | None:
    if isinstance(raw, str) and re.fullmatch(_COUNT, raw):
        raw = float(raw) if re.search("[.eE]", raw) else int(raw)
    if isinstance(raw, float) and raw.is_integer():
        return int(raw)
    return raw if isinstance(raw, int) and not isinstance(raw, bool) else None


def _read_size(path: str, raw: object, problems: list[str]) -> int | None:
    size = read_quantity(path, raw, "bytes", problems)
    few = size is not None and 0 < size < 1024 and str(raw).isdigit()  # Samples are meant, or GiB.
    if size == UNLIMITED or few:
        unit = f" with a unit, such as {size}MiB or {size}B," if few else ""
        problems.append(f"{path}: {quote(raw)} was given; a size{unit} is accepted")
        return None
    return size


def _read_path(path: str, raw: object, problems: list[str]) -> str | None:
    fits = isinstance(raw, str) and raw.startswith("/") and raw.isprintable()
    if not isinstance(raw, str) or not fits or len(raw) > _LONGEST_PATH:
        problems.append(f"{path}: {quote(raw)} was given; an absolute path is accepted")
        return None
    return raw


def _read_word(path: str, raw: object, words: tuple[str, ...], problems: list[str]) -> str | None:
    if raw not in words:
        problems.append(f"{path}: {quote(raw)} was given; accepted are {join_names(words)}")
        return None
    return str(raw)


def _read_deepspeed(path: str, raw: object, problems: list[str]) -> DeepSpeed:
    found = dict(_read_stages(path, read_mapping(path, raw, DEEPSPEED, problems), problems))
    stated = {key: value for key, value in found.items() if value is not None}
    read = DeepSpeed(**stated)  # type: ignore[arg-type]
    if read.stage not in STAGES:
        problems.append(f"{path}.stage: {read.stage} was given; accepted are 2, 3")
    if (read.largest_layer or 0) > (read.parameters or UNLIMITED):
        problems.append(f"{path}.largest_layer: {read.largest_layer} is more than parameters")
    return read


def _read_stages(
    path: str, section: Mapping[str, object], problems: list[str]
) -> Iterator[tuple[str, int | None]]:
    for name, key in DEEPSPEED.items():
        here = f"{path}.{name}"
        if name in section and key.kind == "switch":
            yield name, _read_switch(here, section[name], problems)
        elif name in section:
            yield name, _read_count(here, section[name], key, problems)


def _read_switch(path: str, raw: object, problems: list[str]) -> bool | None:
    if not isinstance(raw, bool):
        problems.append(f"{path}: {quote(raw)} was given; true or false")
        return None
    return raw


def _read_gpus(path: str, raw: object, problems: list[str]) -> Gpus:
    section = read_mapping(path, raw, GPUS, problems)
    count = memory = None
    if "count" in section:
        count = _read_count(f"{path}.count", section["count"], GPUS["count"], problems)
    if "memory" in section:
        memory = _read_size(f"{path}.memory", section["memory"], problems)
    return Gpus(1 if count is None else count, memory)


def _read_packages(path: str, raw: object, problems: list[str]) -> dict[str, str]:
    if not isinstance(raw, dict):
        problems.append(f"{path}: {name_kind(raw)} was given; a mapping is accepted")
        return {}
    for name, specifier in raw.items():
        if not isinstance(name, str) or not re.fullmatch(_PACKAGE, name):
            problems.append(UnknownKey(f"{path}: {quote(name)} is not a name of a package"))
        if not isinstance(specifier, str) or len(specifier) > 256:
            problems.append(
                f"{path}.{name}: {quote(specifier)} was given; a version specifier of PEP 440 is"
                " accepted, or an empty text"
            )
    return {str(name): str(specifier) for name, specifier in raw.items()}


def _read_user(path: str, raw: object, problems: list[str]) -> str | None:
    if not isinstance(raw, str) or not re.fullmatch(_NAME, raw):
        problems.append(f"{path}: {quote(raw)} is not a user's name")
        return None
    return raw


def _read_place(path: str, raw: object, problems: list[str]) -> str | None:
    if not isinstance(raw, str) or not re.fullmatch(_PLACE, raw):
        problems.append(f"{path}: {quote(raw)} was given; accepted are {_PLACES}")
        return None
    return raw


_READERS: Mapping[str, Callable[[str, object, list[str]], object]] = {
    # By the kinds of keys, and two mappings by their names.
    "checks": _read_checks,
    "size": _read_size,
    "switch": _read_switch,
    "path": _read_path,
    "user": _read_user,
    "place": _read_place,
    "by name": _read_packages,
    "deepspeed": _read_deepspeed,
    "gpus": _read_gpus,
}
