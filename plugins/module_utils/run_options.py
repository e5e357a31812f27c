# SPDX-License-Identifier: BSD-2-Clause
"""The options of ``mlhost-limits check`` that describe one training run."""

from __future__ import annotations

import os
import re
import shutil

from .training.policy import NEEDS, SHARING, STAGES, START_METHODS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

_VALUES = {
    # By the key of the policy. All are judged there, so that every fault is told at once.
    "workers": ("W", "workers of the loader in each rank"),
    "prefetch": ("P", "batches that each worker prefetches; by default 2"),
    "tensors_per_batch": ("T", "tensors in one batch"),
    "batch_size": ("SIZE", "bytes of one batch, such as 64MiB"),
    "hold": ("N", "batches that the program keeps beside the current one"),
    "base": ("N", "descriptors that are open before; by default 3"),
    "ranks_per_node": ("N", "processes that train on this host; by default 1"),
    "dataset_files": ("N", "files that the data set of a worker keeps open"),
    "worker_memory": ("SIZE", "data that each worker holds"),
    "pinned_buffer": ("SIZE", "memory that each rank locks, for RDMA or NVMe offload"),
    "shards": ("N", "shards of the data set"),
    "cache_free": ("SIZE", "bytes that must be free in the cache"),
    "checkpoint_size": ("SIZE", "bytes of one checkpoint"),
    "save_total_limit": ("N", "checkpoints that are kept"),
    "place": ("PLACE", "which process will run it, such as container:docker/NAME"),
}
_PATHS = {
    "cache_dir": "directory of the cache",
    "output_dir": "directory that checkpoints go to",
}
_CHOICES = {"sharing": SHARING, "start_method": START_METHODS}
_DEEPSPEED = {
    "parameters": ("N", "parameters of the model, for DeepSpeed"),
    "largest_layer": ("N", "parameters of its largest layer"),
    "gpus_per_node": ("N", "GPUs of each node that DeepSpeed uses"),
    "nodes": ("N", "nodes that DeepSpeed uses"),
}
_RESUME = "resume"
_SWITCHES = {
    "offload_optimizer": "DeepSpeed keeps the optimizer in the host's memory",
    "offload_parameters": "DeepSpeed keeps the parameters there too",
    "zero_init": "the model is made in parts from the start",
}
_PACKAGE = re.compile(r"\s*([A-Za-z0-9._-]+)\s*(.*)", re.DOTALL)


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a run; where one is given, the run alone is judged."""
    group = parser.add_argument_group("a training run, judged before it starts")
    for key, (metavar, text) in {**_VALUES, **_DEEPSPEED}.items():
        group.add_argument(_flag(key), metavar=metavar, help=text)
    for key, text in _PATHS.items():
        group.add_argument(_flag(key), metavar="DIR", help=text)
    for key, choices in _CHOICES.items():
        group.add_argument(_flag(key), choices=choices)
    group.add_argument(
        "--deep", action="store_true", default=None, help="read all of the cache for its checksums"
    )
    group.add_argument(
        "--resume", choices=["yes", "no"], help="whether it goes on from the last checkpoint"
    )
    group.add_argument("--stage", choices=[str(stage) for stage in STAGES], help="ZeRO's stage")
    for key, text in _SWITCHES.items():
        group.add_argument(_flag(key), choices=["yes", "no"], help=text)
    group.add_argument("--gpus", metavar="N", help="GPUs that the run needs")
    group.add_argument("--gpu-memory", metavar="SIZE", help="memory of each")
    group.add_argument("--as-user", metavar="USER", help="who will run it, in a session of sshd")
    group.add_argument("--python", metavar="PATH", help="the interpreter that will run")
    group.add_argument(
        "--package", action="append", metavar="NAME[SPEC]", help="such as 'torch>=2'; repeat it"
    )
    group.add_argument(
        "--only", action="append", choices=list(NEEDS), help="make this check alone; repeat it"
    )


def _flag(key: str) -> str:
    return f"--{key.replace('_', '-')}"


def read_run(arguments: argparse.Namespace) -> dict[str, object]:
    """Return the section ``training`` of a policy, with what was given and nothing else."""
    given = {key: value for key, value in vars(arguments).items() if value is not None}
    run: dict[str, object] = {
        key: given[key] for key in (*_VALUES, *_CHOICES, "deep") if key in given
    }
    run.update({key: os.path.abspath(given[key]) for key in _PATHS if key in given})
    if _RESUME in given:
        run[_RESUME] = given[_RESUME] == "yes"
    states = {key: given[key] for key in (*_DEEPSPEED, "stage") if key in given}
    states.update({key: given[key] == "yes" for key in _SWITCHES if key in given})
    if states:
        run["deepspeed"] = states
    names = {"gpus": "count", "gpu_memory": "memory"}
    gpus = {key: given[name] for name, key in names.items() if name in given}
    if gpus:
        run["gpus"] = gpus
    if "python" in given:
        run["python"] = os.path.abspath(shutil.which(given["python"]) or given["python"])
    if "package" in given:
        run["packages"] = dict(_split_package(text) for text in given["package"])
    for name, key in (("as_user", "user"), ("only", "checks")):
        if name in given:
            run[key] = given[name]
    return run


def _split_package(text: str) -> tuple[str, str]:
    """Return the name and the version specifier of a package."""
    match = _PACKAGE.fullmatch(text)
    return (match[1], match[2]) if match else (text, "")
