# SPDX-License-Identifier: GPL-3.0-or-later
"""Words that say LoRA leave most of a model untrained, which ZeRO keeps in 16 bits alone."""

from __future__ import annotations

import shlex

import pytest
from mlhost_limits.policy_file import parse_documents
from mlhost_limits.words.facts import join_words
from mlhost_limits.words.kinds import Context, Text, read_file
from mlhost_limits.words.launchers import read_command
from mlhost_limits.words.precedence import Taken, take

TRAIN = "deepspeed train.py --model Qwen2.5-7B --deepspeed zero3_offload"


def read(command: str, **stated: object) -> Taken:
    return take(read_command(shlex.split(command)), stated, "/srv")


def find_trained(taken: Taken) -> object:
    section = taken.section["deepspeed"]
    assert isinstance(section, dict)
    return section.get("trainable_parameters")


OF_8, OF_16, OF_64 = 53195198, 106390396, 425561584


@pytest.mark.parametrize(
    ("command", "trained"),
    [
        (TRAIN, None),
        (f"{TRAIN} --lora_rank 16", OF_16),
        (f"{TRAIN} --lora_r 16 --use_peft false", None),
        (f"{TRAIN} --use_peft --lora_r 16", OF_16),
        (f"{TRAIN} --use_peft true", OF_64),
        (f"{TRAIN} --use_peft --bf16 --lora_r 8", OF_8),
        (f"{TRAIN} --finetuning_type freeze --lora_rank 8", None),
        ("axolotl train --base_model Llama-7b --deepspeed zero3 --lora_r 32", None),
        ("axolotl train --base_model Llama-7b --deepspeed zero3 --lora_r 8 --adapter lora", OF_8),
        ("llamafactory-cli train --model X-7B --deepspeed zero3 --additional_target embed", None),
        (f"{TRAIN} --adapter qlora --lora_r 8", OF_8),
        (f"{TRAIN} --adapter ./some/path", None),
        (f"{TRAIN} --finetuning_type full --lora_rank 16", None),
        (f"{TRAIN} --lora_rank 8 --modules_to_save embed_tokens", None),
        (f"{TRAIN} --lora_rank 8 --trainable_parameters 1e6", 10**6),
        ("swift sft --model Qwen2.5-7B --deepspeed zero3", OF_8),
        ("swift sft --model Qwen2.5-7B --deepspeed zero3 --train_type full", None),
        ("llamafactory-cli train --model Qwen2.5-7B --deepspeed zero3", OF_8),
        ("trl sft --model Qwen2.5-7B --deepspeed zero3 --lora_r 16", None),
        ("trl sft --model Qwen2.5-7B --deepspeed zero3 --lora_r 16 --use_peft true", OF_16),
        (f"{TRAIN} --lora_rank 9999999", 7 * 10**9),
    ],
)
def test_lora_trains_few_parameters(command: str, trained: int | None) -> None:
    taken = read(command)
    assert find_trained(taken) == trained
    is_assumed = trained in (OF_8, OF_16, OF_64, 7 * 10**9)
    assert ("--trainable-parameters N" in taken.asked) == is_assumed


@pytest.mark.parametrize(
    ("line", "trained"), [("seed: 1", OF_8), ("lora_modules_to_save: [embed, head]", None)]
)
def test_a_file_that_trains_more_than_lora_trains_all(line: str, trained: int | None) -> None:
    text = f"adapter: lora\nlora_r: 8\n{line}\n"
    file = read_file(Text("a.yml", text, "/srv"), Context({}, parse_documents)).words
    words = join_words([read_command(shlex.split(TRAIN)), file])
    assert find_trained(take(words, {}, "/srv")) == trained


@pytest.mark.parametrize(
    ("options", "stage", "offloads"),
    [
        ("--zero_stage 3 --offload_optimizer_device cpu --offload_param_device cpu", 3, True),
        ("--zero_stage 2", 2, None),
        ("--zero_stage 0", None, None),
    ],
)
def test_accelerate_is_given_deepspeed_by_options(
    options: str, stage: int | None, offloads: bool | None
) -> None:
    command = f"accelerate launch --use_deepspeed {options} --num_processes 8 t.py --model X-7B"
    section = read(command).section.get("deepspeed", {})
    assert isinstance(section, dict)
    assert (section.get("stage"), section.get("offload_optimizer")) == (stage, offloads)


def test_lora_without_deepspeed_is_nothing_to_ask_for() -> None:
    taken = read("python train.py --lora_rank 8 --model Qwen2.5-7B")
    assert "deepspeed" not in taken.section
    assert "--trainable-parameters N" not in taken.asked


@pytest.mark.parametrize(
    ("script", "parameters"),
    [
        (f"{TRAIN}", 7 * 10**9),
        (f"{TRAIN} & {TRAIN} & wait", 14 * 10**9),
        (f"{TRAIN} & wait; {TRAIN}", 7 * 10**9),
        (f"for i in 0 1 2; do {TRAIN} & done; wait", 21 * 10**9),
    ],
)
def test_each_run_that_goes_on_at_once_has_a_model_of_its_own(script: str, parameters: int) -> None:
    section = take(read_command(["bash", "-c", script]), {}, "/srv").section["deepspeed"]
    assert isinstance(section, dict)
    assert section["parameters"] == parameters


@pytest.mark.parametrize(
    ("strategy", "stage", "offloads"),
    [
        ("deepspeed_stage_3_offload", 3, (True, True)),
        ("deepspeed_stage_2", 2, (None, None)),
        ("deepspeed_stage_3_offload_nvme", 3, (True, True)),
        ("ddp", None, (None, None)),
    ],
)
def test_a_strategy_of_lightning_is_a_stage(
    strategy: str, stage: int | None, offloads: tuple[bool | None, bool | None]
) -> None:
    taken = read(f"python t.py --trainer.strategy={strategy} --model Llama-7B")
    section = taken.section.get("deepspeed", {})
    assert isinstance(section, dict)
    found = section.get("offload_optimizer"), section.get("offload_parameters")
    assert (section.get("stage"), found) == (stage, offloads)


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("s3://bucket/out", None),
        ("gs://bucket/out", None),
        ("file:///out", "/out"),
        ("out:1", "/srv/out:1"),
    ],
)
def test_an_output_of_another_host_is_said_to_be_unseen(path: str, kept: str | None) -> None:
    taken = read(f"python train.py --output_dir {path}")
    assert taken.section.get("output_dir") == kept
    told = f"not looked at: {path}, the output_dir (--output_dir)"
    assert (told in taken.notes) == (kept is None)
