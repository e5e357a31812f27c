# SPDX-License-Identifier: BSD-2-Clause
"""Read what files of a run hold: a trainer's own, DeepSpeed's, accelerate's, SimpleTuner's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from .facts import FILE, LAUNCHER, LAUNCHER_FILE, ZERO, Fact, Wanted, Words, join_words
from .names import KEYS_OF, read_option, spell
from .options import find_library
from .tree import Leaf, find, list_leaves, read_scalar

_ZERO = ("zero_optimization", "train_micro_batch_size_per_gpu", "zero_allow_untested_optimizer")
_BUFFERS, _BUFFER = 5, 10**8
"""DeepSpeed's defaults of ``offload_param``: how many buffers, of how many parameters each."""
_HALF = 2  # Bytes of a parameter of 16 bits.
_STAGES = (2, 3)
_DEVICES = (
    ("offload_optimizer_device", "offload_optimizer"),
    ("offload_param_device", "offload_parameters"),
)
_OF_ACCELERATE = (
    *("compute_environment", "distributed_type", "machine_rank", "deepspeed_config"),
    *("main_training_function", "downcast_bf16", "num_machines"),
)


def read_trainer(root: object, path: str) -> Words:
    """Return what a trainer's configuration says; keys count wherever they stand."""
    leaves = list(list_leaves(root))
    nested = find(root, "deepspeed")
    parts = [_read_leaves(leaves, path, FILE)]
    if isinstance(nested, dict):  # A mapping in place of a file's name.
        parts.append(read_zero(nested, path))
    return join_words(parts)


def _read_leaves(leaves: Iterable[Leaf], path: str, rank: int) -> Words:
    found: list[Fact | Wanted] = []
    seen: list[str] = []
    leaves = list(leaves)
    counts = Counter(leaf.path[:-1] for leaf in leaves)
    for leaf in leaves:
        if leaf.path[:1] == ("deepspeed",) and len(leaf.path) > 1:
            continue
        seen.append(leaf.name)
        value = counts[leaf.path[:-1]] if _is_device(leaf) else _unpack(leaf)
        found += read_option(leaf.name, value, f"{path}:{leaf.line}", rank)
    return Words(
        tuple(_keep_largest(one for one in found if isinstance(one, Fact))),
        tuple(one for one in found if isinstance(one, Wanted)),
        library=find_library(seen),
    )


def _is_device(leaf: Leaf) -> bool:
    """Tell whether a value is one of a list of GPUs, ``devices: [0, 1]``."""
    return leaf.path[-1:] == ("0",) and leaf.name.endswith(("devices", "device"))


def _unpack(leaf: Leaf) -> object:
    """Return the value; of a list only the first counts, as of ``update_freq: [4]``.

    Of the sides of an image the largest does: ``[3, 224, 224]`` begins with its channels.
    """
    if KEYS_OF.get(spell(leaf.name)) == "pixels":
        return leaf.value
    indices = [part for part in leaf.path if part.isdecimal()]
    return None if indices and leaf.path[-1].isdecimal() and indices[-1] != "0" else leaf.value


def _keep_largest(facts: Iterable[Fact]) -> list[Fact]:
    """Return the facts; of several loaders in one file the one that takes most counts."""
    kept: dict[str, Fact] = {}
    for fact in facts:
        other = kept.get(fact.key)
        number = fact.value if isinstance(fact.value, int) else -1
        larger = other and isinstance(other.value, int) and number > other.value
        if other is None or fact.rank > other.rank or (fact.rank == other.rank and larger):
            kept[fact.key] = fact
    return list(kept.values())


def is_zero(root: object) -> bool:
    """Tell whether a file is one of DeepSpeed's."""
    return isinstance(root, dict) and any(key in root for key in _ZERO)


def read_zero(root: object, path: str) -> Words:
    """Return what DeepSpeed's JSON says; ``auto`` is for transformers to fill in.

    Source: DeepSpeed's documents of its configuration JSON.
    """
    facts: list[Fact] = []
    for name in ("gradient_accumulation_steps", "train_micro_batch_size_per_gpu"):
        value, line = read_scalar(find(root, name))
        facts += [
            one for one in read_option(name, value, f"{path}:{line}", ZERO) if isinstance(one, Fact)
        ]
    return Words(tuple(facts + list(_read_stages(root, path))))


def _read_stages(root: object, path: str) -> Iterable[Fact]:
    zero = find(root, "zero_optimization")
    stage, line = _read_stage(find(zero, "stage"))
    if stage is None:
        return
    where = f"{path}:{line}"
    if not isinstance(stage, int) or isinstance(stage, bool) or not 0 <= stage <= 3:
        yield Fact("zero", None, where, ZERO, f"{where}: stage: {stage!r}; 0 to 3 is accepted")
        return
    yield Fact("zero", stage, where, ZERO)
    if stage not in _STAGES:
        return
    yield Fact("deepspeed.stage", stage, where, ZERO)
    yield from _read_offload(zero, path)
    names = {"offload_optimizer": "optimizer", "offload_param": "parameters"}
    for name, what in names.items():
        below = find(zero, name)
        device, at = read_scalar(find(below, "device"))
        if device in ("cpu", "nvme"):
            yield Fact(f"deepspeed.offload_{what}", True, f"{path}:{at}", ZERO)
        is_pinned, at = read_scalar(find(below, "pin_memory"))
        if name == "offload_optimizer" and isinstance(is_pinned, bool):
            yield Fact("deepspeed.pin_memory", is_pinned, f"{path}:{at}", ZERO)
        if device == "nvme" and name == "offload_param":
            count = _read_whole(find(below, "buffer_count"), _BUFFERS)
            size = _read_whole(find(below, "buffer_size"), _BUFFER)
            yield Fact("pinned_buffer", count * size * _HALF, f"{path}:{at}", ZERO)


def _read_offload(zero: object, path: str) -> Iterable[Fact]:
    """Yield what ``cpu_offload`` says, which ``offload_optimizer`` has replaced."""
    is_on, line = read_scalar(find(zero, "cpu_offload"))
    if is_on is True:
        yield Fact("deepspeed.offload_optimizer", True, f"{path}:{line}", ZERO)


def _read_stage(node: object) -> tuple[object, int]:
    """Return a stage, a digit in quotes too, and its line."""
    stage, line = read_scalar(node)
    return (int(stage) if isinstance(stage, str) and stage in "0123" and stage else stage), line


def _read_whole(node: object, default: int) -> int:
    value, _line = read_scalar(node)
    if isinstance(value, str) and value.replace("e", "").replace("+", "").isdecimal():
        value = float(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 10**15:
        return int(value)
    return default


def is_accelerate(root: object) -> bool:
    """Tell whether a file is what ``accelerate config`` writes."""
    return isinstance(root, dict) and sum(key in root for key in _OF_ACCELERATE) > 1


def read_accelerate(root: object, path: str) -> Words:
    """Return what accelerate's file says: its processes are those of all machines together."""
    leaves = [leaf for leaf in list_leaves(root) if len(leaf.path) == 1]
    words = _read_leaves(leaves, path, LAUNCHER_FILE)
    nested = find(root, "deepspeed_config")
    facts: list[Fact] = []
    stage, line = _read_stage(find(nested, "zero_stage"))
    if stage in _STAGES:
        facts.append(Fact("deepspeed.stage", stage, f"{path}:{line}", LAUNCHER_FILE))
        for name, key in _DEVICES:
            device, at = read_scalar(find(nested, name))
            if device in ("cpu", "nvme"):
                facts.append(Fact(f"deepspeed.{key}", True, f"{path}:{at}", LAUNCHER_FILE))
        init, at = read_scalar(find(nested, "zero3_init_flag"))
        if isinstance(init, bool):
            facts.append(Fact("deepspeed.zero_init", init, f"{path}:{at}", LAUNCHER_FILE))
    wanted = [
        one
        for leaf in list_leaves(nested)
        for one in read_option(leaf.name, leaf.value, f"{path}:{leaf.line}", LAUNCHER_FILE)
        if isinstance(one, Wanted)
    ]
    steps = [
        one
        for leaf in list_leaves(nested)
        if leaf.name == "gradient_accumulation_steps"
        for one in read_option(leaf.name, leaf.value, f"{path}:{leaf.line}", LAUNCHER_FILE)
        if isinstance(one, Fact)
    ]
    return words._replace(
        facts=(*words.facts, *facts, *steps),
        wanted=(*words.wanted, *wanted),
        library=words.library or "accelerate",
    )


def read_zero_options(options: Iterable[tuple[str, str | None]], where: str) -> Words:
    """Return what options of ``accelerate launch`` say of DeepSpeed, in place of its file."""
    given = {spell(name): (name, value) for name, value in options}
    found: dict[str, object] = {}
    shown, stage = given.get("zero_stage", ("", None))
    if stage in ("2", "3"):
        found = {"zero": int(stage), "deepspeed.stage": int(stage)}
        for name, key in _DEVICES:
            if given.get(name, ("", None))[1] in ("cpu", "nvme"):
                found[f"deepspeed.{key}"] = True
    return Words(tuple(Fact(key, one, where or shown, LAUNCHER) for key, one in found.items()))


def is_backends(root: object) -> bool:
    """Tell whether a file is SimpleTuner's list of data backends."""
    return (
        isinstance(root, list)
        and bool(root)
        and all(isinstance(one, dict) and "id" in one for one in root)
        and any("type" in one for one in root if isinstance(one, dict))
    )


def read_backends(root: object, path: str) -> Words:
    """Return what SimpleTuner's ``multidatabackend.json`` says: the cache that ranks write."""
    found: list[Fact] = []
    for backend in root if isinstance(root, list) else ():
        disabled, _line = read_scalar(backend.get("disabled"))
        if disabled is True:
            continue
        for name in ("cache_dir_vae", "cache_dir"):
            value, line = read_scalar(backend.get(name))
            if isinstance(value, str):
                found += [
                    one
                    for one in read_option("cache_dir", value, f"{path}:{line}", FILE)
                    if isinstance(one, Fact)
                ]
                break
    notes = []
    if len({fact.value for fact in found}) > 1:
        others = ", ".join(f"{fact.value} ({fact.where})" for fact in found[1:])
        notes.append(f"other caches, not looked at: {others}; state --cache-dir for one of them")
    makes = [Fact("makes_cache", True, one.where, FILE) for one in found[:1]]
    return Words((*found[:1], *makes), notes=tuple(notes), library="accelerate")
