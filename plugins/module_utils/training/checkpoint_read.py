# SPDX-License-Identifier: BSD-2-Clause
"""Look at what a checkpoint holds: can a run go on from it, and what would it have to do without.

Sources: ``_load_from_checkpoint()``, ``_load_optimizer_and_scheduler()`` and ``_load_rng_state()``
of trainer.py in transformers 4.57 and 5.0, ``load_checkpoint()`` of DeepSpeed, and
torch.distributed.checkpoint. What they do not read, such as training_args.bin, may be damaged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ..core.values import NamedTuple
from .cache_open_read import is_young, wait_for
from .checkpoint_folder_read import CheckpointFolder
from .checkpoints import STATE

_MOST_SHARDS = 10_000
_SAFE, _BIN = "model.safetensors", "pytorch_model.bin"
_SAFE_INDEX, _BIN_INDEX = f"{_SAFE}.index.json", f"{_BIN}.index.json"
_ADAPTERS = ("adapter_model.safetensors", "adapter_model.bin")
_CONFIG, _ADAPTER_CONFIG = "config.json", "adapter_config.json"
_FSDP, _OPTIMIZER_PARTS, _METADATA = "pytorch_model_fsdp", "optimizer", ".metadata"
_OPTIMIZERS, _SCHEDULER, _SCALER = ("optimizer.pt", "optimizer.bin"), "scheduler.pt", "scaler.pt"
_ARGUMENTS = "training_args.bin"
_RNG = re.compile(r"rng_state(_[0-9]+)?\.pth")
_LATEST, _STEP = "latest", "global_step"
_LONGEST_NAME = 255
_RANK = re.compile(r"(.*zero_pp_rank_)([0-9]+)(_mp_rank_[0-9]+_(?:optim|model)_states\.pt)")
_STOP = b"."  # With which a pickle ends.
_SHARD = re.compile(rb"__[0-9]+_[0-9]+\.distcp")
_OF_ACCELERATE = re.compile(r"random_states_[0-9]+\.pkl|optimizer(_[0-9]+)?\.bin")
_ITS_FILES = re.compile(
    r"(model|pytorch_model|optimizer|scheduler|scaler)(_[0-9]+)?\.(safetensors|bin|pt)"
)
_WRITTEN = "is being written"
_NO_WEIGHTS = f"has no weights: no {_SAFE}, {_BIN}, index of shards, adapter, {_FSDP}* or {_STEP}*"


class Contents(NamedTuple):
    """What is wrong with a checkpoint; each with a name, empty for the checkpoint, and why.

    Resuming ends at what is ``broken``; of ``unsure`` nobody can tell. Of ``lost`` each is a
    sentence that says without what a run goes on.
    """

    broken: list[tuple[str, str]]
    unsure: list[tuple[str, str]]
    lost: list[str]


def read_contents(handle: int, trusts: bool = False) -> Contents:
    """Look at an open folder, and twice if something is wrong: it may be being written.

    :param trusts: Whether root opens what is others'.
    :raises OSError: If the folder cannot be read.
    """
    first = _look(handle, trusts)
    if not first.broken:
        return Contents(first.broken, first.unsure, first.lost)
    wait_for(first.newest)
    again = _look(handle, trusts)
    if again.stamps == first.stamps and not is_young(again.newest):
        return Contents(again.broken, again.unsure, again.lost)
    unsure = [(name, _WRITTEN) for name, _reason in again.broken]
    return Contents([], [*unsure, *again.unsure], again.lost)


def _look(handle: int, trusts: bool) -> CheckpointFolder:
    """Return a folder that was looked at, as the library does that wrote it."""
    folder = CheckpointFolder(handle, trusts)
    of_trainer = STATE in folder.names or _ARGUMENTS in folder.names
    if not of_trainer and any(map(_OF_ACCELERATE.fullmatch, folder.names)):
        _look_at_accelerate(folder)
    elif _find_steps(folder) or folder.has(_LATEST):
        _look_at_deepspeed(folder)
    else:
        _look_at_state(folder)
        _look_at_weights(folder)
        _look_at_optimizer(folder)
    return folder


def _look_at_state(folder: CheckpointFolder) -> None:
    folder.read_json(STATE)
    states = list(filter(_RNG.fullmatch, folder.names))
    for name in states:
        folder.check(name)
    if not states:
        folder.lost.append("rng_state.pth is missing: random numbers begin anew")
    if folder.has(_SCALER):
        folder.check(_SCALER)


def _look_at_weights(folder: CheckpointFolder) -> None:
    """Look at the weights that are loaded: one file before an adapter, that before shards."""
    fsdp = [name for name in folder.names if name.startswith(_FSDP)]
    single = [name for name in (_SAFE, _BIN) if folder.has(name)]
    indexes = [name for name in (_SAFE_INDEX, _BIN_INDEX) if folder.has(name)]
    if folder.has(_CONFIG):
        folder.read_json(_CONFIG)
    if fsdp:
        for name in fsdp:
            _look_at_part(folder, name)
    elif single:
        folder.check(single[0])
    elif _look_at_adapter(folder):
        return
    elif indexes:
        _look_at_index(folder, indexes[0])
    elif not _look_at_adapters(folder):
        folder.broken.append(("", _NO_WEIGHTS))


def _look_at_adapter(folder: CheckpointFolder) -> bool:
    """Look at an adapter of peft; tell whether there is one."""
    found = [name for name in _ADAPTERS if folder.has(name)]
    if found:
        folder.check(found[0])
        folder.read_json(_ADAPTER_CONFIG)
    return bool(found)


def _look_at_adapters(folder: CheckpointFolder) -> bool:
    """Look at several adapters, each in a folder of its own; tell whether there are any."""
    found = False
    for name in sorted(folder.folders):
        with folder.below(name) as below:
            if below is None:
                continue
            has_weights = _look_at_adapter(below)
            if below.has(_ADAPTER_CONFIG) and not has_weights:
                below.broken.append(("", f"has {_ADAPTER_CONFIG} and no weights"))
            found = found or has_weights
    return found


def _look_at_index(folder: CheckpointFolder, name: str) -> None:
    """See that each shard that an index names is there and whole."""
    index = folder.read_json(name)
    if index is None:
        return
    weights = index.get("weight_map")
    if not isinstance(weights, dict) or not weights:
        folder.broken.append((name, "names no shards"))
        return
    for shard in sorted(set(map(str, weights.values())))[:_MOST_SHARDS]:
        if "/" in shard:
            folder.unsure.append((name, f"names {shard}, which was not looked at"))
        else:
            folder.check(shard)


def _look_at_part(folder: CheckpointFolder, name: str) -> None:
    """Look at what FSDP saved: one file, or a folder of shards that its metadata name."""
    if name not in folder.folders:
        folder.check(name)
        return
    with folder.below(name) as below:
        content = below.read(_METADATA) if below else None
        if below is None or content is None:
            return
        wanted = {one.decode() for one in _SHARD.findall(content)}
        if not content.endswith(_STOP):
            below.broken.append((_METADATA, "ends within a pickle: it is cut short"))
        elif not wanted:
            below.broken.append((_METADATA, "names no shards"))
        for shard in sorted(wanted):
            if shard not in below.names:
                below.broken.append((shard, "is missing"))
            elif below.stamps.get(shard) and not below.stamps[shard][0]:
                below.broken.append((shard, "is empty"))


def _look_at_optimizer(folder: CheckpointFolder) -> None:
    """Look at what is loaded if both are there, and else begins anew without a word."""
    files = [name for name in _OPTIMIZERS if folder.has(name)]
    parts = [name for name in folder.folders if name.startswith(_OPTIMIZER_PARTS)]
    missing = [] if files or parts else [_OPTIMIZERS[0]]
    missing += [] if folder.has(_SCHEDULER) else [_SCHEDULER]
    if missing:
        what = "are" if len(missing) > 1 else "is"
        told = f"{' and '.join(missing)} {what} missing: optimizer and scheduler begin anew"
        folder.lost.append(told)
        return
    for name in (*(files[:1] or parts), _SCHEDULER):
        _look_at_part(folder, name)


def _find_steps(folder: CheckpointFolder) -> list[str]:
    return [name for name in folder.folders if name.startswith(_STEP)]


def _look_at_deepspeed(folder: CheckpointFolder) -> None:
    """Look at the step that ``latest`` names, and at the state of the Trainer if it saved it."""
    if STATE in folder.names or any(map(_RNG.fullmatch, folder.names)):
        _look_at_state(folder)
        if folder.has(_SCHEDULER):
            folder.check(_SCHEDULER)
    content = folder.read(_LATEST)
    if content is None:
        return
    step = content[:_LONGEST_NAME].decode("utf-8", "replace").strip()
    if not re.fullmatch(r"[\w.-]+", step):
        folder.broken.append((_LATEST, "names no directory"))  # It may be a link to anything.
        return
    if step not in folder.folders:
        folder.broken.append((_LATEST, f"names {step}, which is not there"))
        return
    with folder.below(step) as below:
        if below:
            _look_at_ranks(below)


def _look_at_ranks(folder: CheckpointFolder) -> None:
    """Look at the files of each rank; one below the highest that has none is missing."""
    files = [name for name in folder.names if name.endswith("_states.pt")]
    for name in [*files, *_find_gaps(files)]:
        folder.check(name)
    if not any(name.endswith("model_states.pt") for name in files):
        folder.broken.append(("", "has no *model_states.pt"))


def _look_at_accelerate(folder: CheckpointFolder) -> None:
    """Look at what accelerate saved: it ends where one of these is damaged."""
    files = [name for name in folder.names if _ITS_FILES.fullmatch(name)]
    if not folder.folders and not any(name.startswith("optimizer") for name in files):
        reason = "is missing, and accelerate ends there if the run has an optimizer"
        folder.unsure.append((_OPTIMIZERS[1], reason))
    for name in files:
        folder.check(name)
    if any(name.startswith(("model", "pytorch_model")) for name in files):
        return
    if folder.has(_SAFE_INDEX):
        _look_at_index(folder, _SAFE_INDEX)
    elif not folder.folders:  # Pipelines of diffusers save each model in a folder.
        folder.broken.append(("", _NO_WEIGHTS))


def _find_gaps(names: Iterable[str]) -> Iterator[str]:
    """Yield the names of the ranks that have no file, below the highest that has one."""
    ranks: dict[tuple[str, str], set[int]] = {}
    for match in filter(None, map(_RANK.fullmatch, names)):
        ranks.setdefault((match[1], match[3]), set()).add(int(match[2]))
    for (before, after), found in ranks.items():
        for rank in range(min(max(found), _MOST_SHARDS)):
            if rank not in found:
                yield f"{before}{rank}{after}"
