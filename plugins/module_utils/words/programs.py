# SPDX-License-Identifier: BSD-2-Clause
"""What is known of launchers and trainers by name: options without a value, and their defaults.

Sources: the documents of torchrun, ``accelerate launch``, ``deepspeed`` and of each trainer.
"""

from __future__ import annotations

import re

from .facts import DEFAULT, Fact, Words
from .names import AUTO

FLAGS = {
    "torchrun": (
        "-m",
        "--module",
        "--standalone",
        "--no-python",
        "--no_python",
        "--run-path",
        "--use-env",
    ),
    "accelerate": (
        *("--multi_gpu", "--multi-gpu", "--use_deepspeed", "--use_fsdp", "--cpu", "--mps", "--tpu"),
        *(
            "-m",
            "--module",
            "-q",
            "--quiet",
            "--debug",
            "--no_python",
            "--use_megatron_lm",
            "--same_network",
        ),
    ),
    "deepspeed": ("--module", "--no_python", "--no_local_rank", "--force_multi", "--no_ssh"),
    "python": ("-u", "-O", "-OO", "-s", "-S", "-E", "-I", "-B", "-q", "-v", "-P"),
}
PROGRAMS = (
    *("trl", "swift", "llamafactory-cli", "axolotl", "tune", "yolo", "nemo", "nemo_llm"),
    *("lightning", "litgpt", "megatron", "xtuner"),
    *("simpletuner", "fairseq-train", "fairseq-hydra-train"),
)
"""Trainers that are programs of their own."""
MODULES = {name.partition("-")[0]: name for name in ("trl", "swift", "llamafactory-cli", "axolotl")}
"""By the package that ``python -m`` runs, its program."""
_AXOLOTL, _SWIFT, _FACTORY = "Axolotl's default", "SWIFT's default", "LLaMA-Factory's default"
ALL_GPUS = Fact("ranks_per_node", AUTO, "its launcher", DEFAULT)


def _lora_of_rank_8(where: str) -> tuple[Fact, ...]:
    return Fact("lora", True, where, DEFAULT), Fact("lora_rank", 8, where, DEFAULT)


DEFAULTS = {
    "axolotl": Words(
        (
            Fact("workers", AUTO, _AXOLOTL, DEFAULT),
            Fact("prefetch", 256, _AXOLOTL, DEFAULT),
            Fact("lora", False, _AXOLOTL, DEFAULT),
            ALL_GPUS,
        ),
        library="transformers",
    ),
    "swift": Words(
        (
            Fact("workers", 1, _SWIFT, DEFAULT),
            Fact("ranks_per_node", 1, "no NPROC_PER_NODE", DEFAULT),
            *_lora_of_rank_8(_SWIFT),
        ),
        library="transformers",
    ),
    "trl": Words((ALL_GPUS,), library="trl"),
    "llamafactory-cli": Words((ALL_GPUS, *_lora_of_rank_8(_FACTORY)), library="transformers"),
    "yolo": Words((Fact("ranks_per_node", 1, "no device is named", DEFAULT),)),
}
"""What trainers do where nobody says: Axolotl has a worker for each GPU, and 256 batches ahead."""

LAUNCHES = re.compile(r"(^|[._])(launch\w*|\w*spawn\w*|distributed|composer|horovod)([._]|$)")
"""Modules of Python that start a script several times."""
