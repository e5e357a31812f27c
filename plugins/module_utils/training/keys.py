# SPDX-License-Identifier: BSD-2-Clause
"""The keys of the section ``training``, and what each check of a run cannot do without."""

from __future__ import annotations

from ..core.reader import Key

_MOST_PARAMETERS = 10**15


def _count(text: str) -> Key:
    return Key("count", text, least=1, most=_MOST_PARAMETERS)


DEEPSPEED = {
    "stage": Key("stage", "the stage of ZeRO", ("2", "3"), least=1),
    "parameters": _count("the number of the model's parameters"),
    "largest_layer": _count("the number of parameters of the largest layer"),
    "trainable_parameters": _count("how many of them are trained, such as by LoRA; else all"),
    "gpus_per_node": Key("count", "GPUs of each node", least=1),
    "nodes": Key("count", "nodes", least=1),
    "offload_optimizer": Key("switch", "whether the optimizer is in the host's memory"),
    "offload_parameters": Key("switch", "whether the parameters are"),
    "zero_init": Key("switch", "whether the model is made under `zero.Init`"),
    "pin_memory": Key("switch", "whether what is offloaded is pinned, so that no worker keeps it"),
}
GPUS = {"count": Key("count", "how many", least=1), "memory": Key("size", "free memory of each")}
KEYS = {
    "checks": Key("checks", "these checks and no others"),
    "needs": Key("checks", "checks that must be made: what they lack is refused, all at once"),
    "workers": Key("count", "the number of workers that each rank starts"),
    "prefetch": Key("count", "batches that each worker prefetches", least=1),
    "tensors_per_batch": Key("count", "how many tensors one batch holds", least=1),
    "batch_size": Key("size", "the bytes of one batch"),
    "hold": Key("count", "batches that the program keeps beside the current one"),
    "loaders": Key("count", "loaders that live at a time, of training and of evaluation", least=1),
    "epochs": Key("count", "how often workers are started; 1 if they are persistent", least=1),
    "library": Key(
        "word",
        "whose loop takes the batches, for what it keeps of them",
        ("torch", "accelerate", "transformers", "trl"),
    ),
    "gradient_accumulation": Key("count", "steps of gradient accumulation", least=1),
    "threads": Key("count", "threads of each process that trains (OMP_NUM_THREADS)", least=1),
    "base": Key("count", "descriptors that are open before"),
    "sharing": Key("word", "torch's sharing strategy", ("file_descriptor", "file_system")),
    "start_method": Key("word", "how workers are started", ("fork", "spawn", "forkserver")),
    "ranks_per_node": Key(
        "count", "processes that train on this host; with DeepSpeed its `gpus_per_node`", least=1
    ),
    "world_size": Key(
        "count", "processes that train on all hosts together; else those of this one", least=1
    ),
    "groups": Key("count", "process groups of all of them; else one where there are several"),
    "backend": Key("word", "what they talk through; else nccl with GPUs", ("gloo", "nccl")),
    "dataset_files": Key("count", "files that each worker has open"),
    "worker_memory": Key("size", "bytes of data of each worker"),
    "returns_memory": Key(
        "switch",
        "whether malloc(3) gives back what a worker frees: MALLOC_TRIM_THRESHOLD_ or"
        " MALLOC_MMAP_THRESHOLD_ is stated",
    ),
    "pinned_buffer": Key("size", "bytes that each rank locks"),
    "cache_dir": Key("path", "the directory of the cache"),
    "makes_cache": Key(
        "switch", "whether the run makes `cache_dir`, as SimpleTuner does; else it must be there"
    ),
    "shards": Key("count", "shards of the data", least=1),
    "cache_free": Key("size", "bytes that must be free in the cache"),
    "deep": Key("switch", "whether the files of the cache are read for their checksums"),
    "output_dir": Key("path", "the directory that checkpoints go to"),
    "checkpoint_size": Key("size", "the bytes of one checkpoint"),
    "save_total_limit": Key("count", "how many checkpoints are kept", least=1),
    "resume": Key("switch", "whether the run goes on from the last checkpoint in `output_dir`"),
    "deepspeed": Key("mapping", "how DeepSpeed spreads the model", below=DEEPSPEED),
    "packages": Key(
        "by name",
        "the packages, each with its version specifier",
        below={"PACKAGE": Key("specifier", "versions that pass (PEP 440); an empty text for any")},
    ),
    "python": Key("path", "the path of the interpreter that will run"),
    "gpus": Key("mapping", "the GPUs that the run needs", below=GPUS),
    "user": Key("user", "who will run it"),
    "place": Key("place", "as which process; where only `user` is stated, one of a fresh login"),
}
NEEDS = {
    "descriptors": ("workers", "tensors_per_batch"),
    "shared_memory": ("workers", "tensors_per_batch", "batch_size"),
    "memory": ("workers",),
    "tasks": ("workers",),
    "cpus": ("workers",),
    "cache": ("cache_dir",),
    "cache_integrity": ("cache_dir",),
    "output": ("output_dir",),
    "packages": ("packages", "python"),
    "gpus": ("gpus",),
    "deepspeed": ("deepspeed", "deepspeed.parameters", "deepspeed.largest_layer"),
}
"""Every check of a run, with the keys that it cannot do without."""
