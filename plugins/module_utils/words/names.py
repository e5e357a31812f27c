# SPDX-License-Identifier: BSD-2-Clause
"""What trainers call the numbers of a run, and how the value of each is read.

The names are those of the trainers' own documents; one that is spelled ``--num-workers``,
``num_workers`` or ``data.init_args.num_workers`` is the same.
"""

from __future__ import annotations

import re

from ..core.quote import quote
from .facts import ARGUMENT, NAMED, Fact, Wanted
from .quantities import find_parameters, parse_count, parse_size, parse_switch

_NAMES = {
    "workers": (
        "dataloader_num_workers num_workers workers n_workers data_workers num_data_workers"
        " dataloader_workers num_dataloader_workers loader_num_workers -j"
    ),
    "prefetch": "dataloader_prefetch_factor prefetch_factor",
    "persistent": "dataloader_persistent_workers persistent_workers",
    "output_dir": (
        "output_dir save_dir out_dir default_root_dir explicit_log_dir output_path save logs output"
    ),
    "save_total_limit": "save_total_limit checkpoints_total_limit checkpoint_hist",
    "resume": "resume_from_checkpoint resume",
    "cache_dir": "cache_dir cache_dir_vae cache_dir_text wids_cache wds_cache",
    "gradient_accumulation": (
        "gradient_accumulation_steps gradient_accumulation accumulate_grad_batches accum_freq"
        " update_freq grad_accum_steps"
    ),
    "ranks_per_node": (
        "nproc_per_node num_gpus gpus_per_node ntasks_per_node local_world_size devices device"
        " tasks_per_node npernode slurm_ntasks_per_node n_gpus ngpus ngpus_per_node"
        " num_gpus_per_node n_gpus_per_node"
    ),
    "nodes": "nnodes num_nodes num_machines slurm_nnodes slurm_job_num_nodes",
    "world": "num_processes world_size distributed_world_size",
    "start_method": "dataloader_multiprocessing_context multiprocessing_context",
    "sharing": "sharing_strategy",
    "threads": "omp_num_threads num_cpu_threads_per_process",
    "checkpoint_size": "checkpoint_size",
    "trainable_parameters": "trainable_parameters",
    "lora": "finetuning_type train_type tuner_type sft_type adapter use_peft use_lora lora_enable",
    "lora_rank": "lora_rank lora_r lora_dim",
    "whole": "modules_to_save lora_modules_to_save additional_target",
    "samples": (
        "per_device_train_batch_size train_micro_batch_size_per_gpu train_batch_size"
        " micro_batch_size batch_size batch -b"
    ),
    "length": (
        "max_seq_length max_seq_len max_length model_max_length block_size cutoff_len seq_length"
        " sequence_len seq_len tokens_per_sample"
    ),
    "pixels": "resolution image_size img_size imgsz input_size",
    "model": (
        "model_name_or_path pretrained_model_name_or_path model_id base_model model model_name"
        " model_id_or_path"
    ),
}
KEYS_OF = {name: key for key, names in _NAMES.items() for name in names.split()}
"""By the name as trainers spell it, the key that it gives."""

CONFIGS = {
    **dict.fromkeys(("config", "config_file", "config_path", "cfg", "-c", "yaml", "args_file"), ""),
    **dict.fromkeys(
        ("deepspeed", "deepspeed_config", "ds_config", "deepspeed_config_file"), "zero"
    ),
    "data_backend_config": "",
    "accelerate_config": "",
}
"""Options that name a file, by the kind of what is in it."""

OF_TRANSFORMERS = ("per_device_train_batch_size", "dataloader_prefetch_factor")
_EVALUATION = ("eval_strategy", "evaluation_strategy", "do_eval")
_SHARDS = re.compile(r"\{([0-9]{1,9})\.\.([0-9]{1,9})\}")
_NAMES_OF_ZERO = {
    "zero": re.compile("zero([0-3])(_offload)?"),
    "strategy": re.compile("deepspeed_stage_([1-3])(_offload)?(?:_nvme)?"),
}
"""What SWIFT and Lightning call configurations of their own, by the kind of what names them."""
_FILE = re.compile(r"[^\s{}$]{1,1024}\.(json|ya?ml|toml|py)")
_TEMPLATE = re.compile(r"\{\{|\{%|\$\{|\$\(|`|\$[A-Za-z_]")
_OTHER = re.compile(r"(^|[._])(val|valid|validation|eval|evaluation|test|tests|predict)([._]|$)")
_LEAST_SIDE = 16
"""Pixels of an image's side; less are channels, or a share."""

_SEVERAL = re.compile(r"\W?(cuda:)?[0-9]+(, ?[0-9]+)+\W?")
_UNSAID = ("auto", "gpu", "cpu", "cuda", "none", "null", "~", "-1")
_PATHS = ("output_dir", "cache_dir")
_WORDS = {
    "start_method": ("fork", "spawn", "forkserver"),
    "sharing": ("file_descriptor", "file_system"),
}
_ADAPTERS = ("lora", "qlora", "dora", "adalora", "longlora", "lora_ga")
AUTO = "auto"
"""The value of what a program finds out for itself."""


def spell(name: str) -> str:
    """Return the last part of a name in the one spelling of the table."""
    if name.startswith("-") and not name.startswith("--"):
        return name
    return name.lstrip("+~-").replace("-", "_").rpartition(".")[2].lower()


def read_option(
    name: str, value: object, where: str, rank: int, shown: str = ""
) -> list[Fact | Wanted]:
    """Return what one option, or one key of a file, says of a run; usually nothing.

    :param name: As it is written, with what it stands below: ``model.train_ds.num_workers``.
    :param where: Where it stands; where that is the command line, the option itself.
    :param shown: What a problem with it is called by; by default that and the name.
    """
    last, told = spell(name), shown or f"{where}: {name}"
    found: list[Fact | Wanted] = []
    if last in CONFIGS and isinstance(value, str) and _FILE.fullmatch(value):
        found.append(Wanted(value, told, CONFIGS[last]))
    if last in CONFIGS and isinstance(value, str) and _TEMPLATE.search(value):
        found.append(Fact("config", None, where, rank, f"{told}: {_find_trouble(value)}"))
    named = _NAMES_OF_ZERO.get(CONFIGS.get(last, last))
    zero = named.fullmatch(value) if named and isinstance(value, str) else None
    found += _read_zero(int(zero[1]), bool(zero[2]), where, rank) if zero else []
    if last in _EVALUATION and str(value).lower() not in ("no", "false", "none"):
        found.append(Fact("loaders", 2, where, rank))
    if isinstance(value, str) and ".tar" in value and _SHARDS.search(value):
        found.append(Fact("shards", _count_shards(value), where, rank))
    key = KEYS_OF.get(last)
    if last == "device" and not _SEVERAL.fullmatch(str(value)):
        key = None  # One device, by its index or its kind, is one process.
    if key and _OTHER.search(name.replace("-", "_").lower()):
        return [*found, Fact("loaders", 2, where, rank)] if key == "workers" and value else found
    fact = _read(key, value, where, rank, told) if key else None
    return [*found, fact] if fact else found


def _read_zero(stage: int, offloads: bool, where: str, rank: int) -> list[Fact]:
    """Return what a configuration says that is called ``zero3_offload`` and so on."""
    found: dict[str, object] = {"zero": stage}
    if stage in (2, 3):
        found["deepspeed.stage"] = stage
    if offloads:
        found["deepspeed.offload_optimizer"] = True
    if offloads and stage == 3:
        found["deepspeed.offload_parameters"] = True
    return [Fact(key, value, where, rank) for key, value in found.items()]


def _count_shards(text: str) -> int:
    """Return how many names a pattern such as ``x-{0000..0099}.tar`` stands for."""
    number = 1
    for first, last in _SHARDS.findall(text):
        number *= max(int(last) - int(first), 0) + 1
    return min(number, 10**6)


def _read(key: str, value: object, where: str, rank: int, told: str) -> Fact | None:
    if value is None or isinstance(value, (dict, list)) or (value == "" and key == "resume"):
        return None
    value = "-1" if value == -1 else value
    if isinstance(value, str):
        if re.search(r"\$\{?SLURM_|%[jJA]|\$\(\.\.\.\)", value) and key in _PATHS:
            return Fact(key, AUTO, where, rank)
        trouble = _find_trouble(value)
        if trouble:
            return Fact(key, None, where, rank, f"{told}: {trouble}")
        if key in ("ranks_per_node", "nodes", "world") and value.lower() in _UNSAID:
            return Fact(key, AUTO, where, rank)
        if value.lower() in _UNSAID and key not in _PATHS:
            return None
    try:
        return _read_plain(key, value, where, rank)
    except ValueError as exc:
        return Fact(key, None, where, rank, f"{told}: {exc}")


def _find_trouble(value: str) -> str:
    if not value.strip():
        return "is empty"
    if _TEMPLATE.search(value):
        return f"{quote(value)} is not known here: it is a template, or a variable that is not set"
    return ""


def _read_plain(key: str, value: object, where: str, rank: int) -> Fact | None:
    if key == "model":
        size = find_parameters(str(value))
        return Fact("deepspeed.parameters", size, f"{where}, by its name", NAMED) if size else None
    if key in ("lora", "whole"):
        return _read_lora(key, str(value).lower(), where, rank)
    if key == "persistent":  # Whoever starts workers once has one epoch of them.
        return Fact("epochs", 1, where, rank) if parse_switch(value) else None
    if key == "resume":
        is_set = not isinstance(value, str) or value.lower() in ("true", "false", "yes", "no")
        return Fact(key, parse_switch(value) if is_set else str(value), where, rank)
    if key in _PATHS:
        return Fact(key, str(value), where, rank) if isinstance(value, str) else None
    if key in _WORDS:
        return Fact(key, value, where, rank) if value in _WORDS[key] else None
    if key == "checkpoint_size":
        return Fact(key, parse_size(str(value)), where, rank)
    return _read_number(key, value, where, rank)


def _read_lora(key: str, value: str, where: str, rank: int) -> Fact | None:
    """Tell whether few parameters are trained; of others that are trained as a whole, all are."""
    if key == "whole":
        return Fact("lora", False, where, max(rank, ARGUMENT))
    if value in _ADAPTERS or value in ("true", "yes", "1"):
        return Fact(key, True, where, rank)
    return (
        Fact(key, False, where, rank) if value in ("full", "freeze", "false", "no", "0") else None
    )


def _read_number(key: str, value: object, where: str, rank: int) -> Fact | None:
    if isinstance(value, bool):
        return None
    if key in ("ranks_per_node", "nodes"):
        return _read_ranks(key, value, where, rank)
    if key == "pixels" and isinstance(value, str) and "," in value:
        value = value.split(",")[-1]
    number = parse_count(value)
    if key == "pixels" and number < _LEAST_SIDE:
        return None
    name = f"deepspeed.{key}" if key == "trainable_parameters" else key
    if key == "save_total_limit" and not number:
        return None
    return Fact(name, number, where, rank)


def _read_ranks(key: str, value: object, where: str, rank: int) -> Fact | None:
    """Read a number, or a list such as ``0,1,2,3``; ``1:4`` nodes may be four."""
    text = str(value).strip("[] ")
    if re.fullmatch(r"(cuda:)?[0-9]+(,[0-9]+)+", text):
        return Fact(key, text.count(",") + 1, where, rank)
    if text.startswith("cuda"):
        return None
    number = parse_count(text.rpartition(":")[2].partition("(")[0])
    return Fact(key, number, where, rank) if number else None
