# SPDX-License-Identifier: GPL-3.0-or-later
"""How runs of known trainers are started, in the words of their documents, and what that says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

RANKS, WORKERS = "--ranks-per-node N", "--workers N"
ALWAYS = ("--batch-size SIZE (the bytes of one batch)", "--tensors-per-batch N")
"""What no trainer states: who does not say so is told what was assumed."""


class Trainer(NamedTuple):
    """One way to start a run: the command, the files that it reads, what is read of both.

    ``asked`` are the questions that are left besides those that always are.
    """

    command: str
    run: Mapping[str, Any]
    files: Mapping[str, str] = {}
    asked: tuple[str, ...] = ()


TRAINERS = {
    "transformers run_clm": Trainer(
        "torchrun --nproc_per_node 4 run_clm.py --model_name_or_path openai-community/gpt2"
        " --dataset_name wikitext --per_device_train_batch_size 8 --do_train --do_eval"
        " --eval_strategy steps --output_dir /tmp/test-clm",
        {"workers": 0, "ranks_per_node": 4, "output_dir": "/tmp/test-clm", "loaders": 2},
    ),
    "TRL sft": Trainer(
        "accelerate launch --config_file zero3.yaml trl/scripts/sft.py --model_name_or_path"
        " Qwen/Qwen2-0.5B --per_device_train_batch_size 2 --gradient_accumulation_steps 8"
        " --dataloader_num_workers 4 --output_dir Qwen2-0.5B-SFT",
        {
            "workers": 4,
            "ranks_per_node": 8,
            "gradient_accumulation": 8,
            "library": "trl",
            "deepspeed": {
                "stage": 3,
                "parameters": 5 * 10**8,
                "gpus_per_node": 8,
                "nodes": 1,
                "zero_init": True,
                "largest_layer": 125 * 10**6,
            },
        },
        {
            "zero3.yaml": "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\n"
            "deepspeed_config:\n  offload_optimizer_device: none\n  offload_param_device: none\n"
            "  zero3_init_flag: true\n  zero_stage: 3\nmachine_rank: 0\nnum_machines: 1\n"
            "num_processes: 8\n"
        },
        ("--largest-layer N",),
    ),
    "SWIFT sft": Trainer(
        "NPROC_PER_NODE=2 CUDA_VISIBLE_DEVICES=0,1 swift sft --model Qwen/Qwen2.5-7B-Instruct"
        " --tuner_type lora --per_device_train_batch_size 1 --gradient_accumulation_steps 16"
        " --max_length 2048 --output_dir output --save_total_limit 2 --deepspeed zero3_offload",
        {
            "workers": 1,
            "ranks_per_node": 2,
            "save_total_limit": 2,
            "batch_size": 2**20,
            "deepspeed": {
                "stage": 3,
                "offload_optimizer": True,
                "offload_parameters": True,
                "parameters": 7 * 10**9,
                "gpus_per_node": 2,
                "largest_layer": 1750000000,
                "trainable_parameters": 53195198,
            },
        },
        asked=("--largest-layer N", "--trainable-parameters N"),
    ),
    "accelerate nlp_example": Trainer(
        "accelerate launch --multi_gpu --num_processes 2 nlp_example.py --mixed_precision fp16",
        {"workers": 8, "ranks_per_node": 2, "library": "accelerate"},
        asked=(WORKERS,),
    ),
    "DeepSpeed cifar": Trainer(
        "deepspeed --num_gpus=4 cifar10_deepspeed.py --deepspeed --deepspeed_config ds_config.json",
        {"workers": 8, "ranks_per_node": 4, "gradient_accumulation": 2},
        {
            "ds_config.json": '{"train_micro_batch_size_per_gpu": 16,'
            ' "gradient_accumulation_steps": 2, "zero_optimization": {"stage": 0}}'
        },
        (WORKERS,),
    ),
    "SimpleTuner": Trainer(
        "accelerate launch --num_processes=2 train.py --config config/config.json",
        {
            "output_dir": "{here}/output/models",
            "cache_dir": "{here}/cache/vae/pseudo",
            "gradient_accumulation": 4,
            "save_total_limit": 5,
            "batch_size": 24 * 2**20,
        },
        {
            "config/config.json": '{"--resume_from_checkpoint": "latest",'
            ' "--data_backend_config": "config/multidatabackend.json", "--train_batch_size": 2,'
            ' "--gradient_accumulation_steps": 4, "--checkpoints_total_limit": 5,'
            ' "--resolution": 1024, "--output_dir": "output/models"}',
            "config/multidatabackend.json": '[{"id": "pseudo", "type": "local",'
            ' "cache_dir_vae": "cache/vae/pseudo", "resolution": 1024}, {"id": "text",'
            ' "type": "local", "dataset_type": "text_embeds", "cache_dir": "cache/text"}]',
        },
        (WORKERS,),
    ),
    "webdataset": Trainer(
        "torchrun --nproc-per-node 2 train.py --shards /data/imagenet-{000000..001281}.tar"
        " --num-workers 4 --batch-size 64",
        {"workers": 4, "ranks_per_node": 2, "shards": 1282, "batch_size": 64 * 2**20},
    ),
    "wids": Trainer(
        "WIDS_CACHE=/nvme/cache torchrun --nproc-per-node 8 train.py --num-workers 8",
        {"workers": 8, "ranks_per_node": 8, "cache_dir": "/nvme/cache"},
    ),
    "open_clip": Trainer(
        "torchrun --nproc_per_node 4 -m open_clip_train.main --train-data"
        " /data/cc12m/{00000..01242}.tar --dataset-type webdataset --batch-size 320"
        " --precision amp --workers 4 --accum-freq 2 --logs ./logs",
        {
            "workers": 4,
            "shards": 1243,
            "gradient_accumulation": 2,
            "output_dir": "{here}/logs",
            "batch_size": 320 * 2**20,
        },
    ),
    "nanoGPT": Trainer(
        "torchrun --standalone --nproc_per_node=8 train.py config/train_gpt2.py",
        {"workers": 8, "ranks_per_node": 8, "batch_size": 2**20},
        {"config/train_gpt2.py": "# a run\nbatch_size = 12\nblock_size = 1024\n"},
        (WORKERS,),
    ),
    "torchtune": Trainer(
        "tune run --nproc_per_node 2 lora_finetune_distributed --config llama3/8B_lora"
        " batch_size=2 gradient_accumulation_steps=4 output_dir=/out",
        {
            "workers": 8,
            "ranks_per_node": 2,
            "gradient_accumulation": 4,
            "output_dir": "/out",
            "batch_size": 2 * 2**20,
        },
        asked=(WORKERS,),
    ),
    "Axolotl": Trainer(
        "CUDA_VISIBLE_DEVICES=0,1 axolotl train lora-1b.yml",
        {
            "workers": 2,
            "prefetch": 256,
            "ranks_per_node": 2,
            "gradient_accumulation": 4,
            "output_dir": "{here}/outputs/lora-out",
        },
        {
            "lora-1b.yml": "base_model: NousResearch/Llama-3.2-1B\nsequence_len: 2048\n"
            "micro_batch_size: 2\ngradient_accumulation_steps: 4\noutput_dir: ./outputs/lora-out\n"
        },
    ),
    "LLaMA-Factory": Trainer(
        "llamafactory-cli train llama3_lora_sft.yaml",
        {
            "workers": 4,
            "ranks_per_node": 8,
            "gradient_accumulation": 8,
            "output_dir": "{here}/saves/llama3-8b",
        },
        {
            "llama3_lora_sft.yaml": "### dataset\ncutoff_len: 2048\npreprocessing_num_workers: 16\n"
            "dataloader_num_workers: 4\n### output\noutput_dir: saves/llama3-8b\n### train\n"
            "per_device_train_batch_size: 1\ngradient_accumulation_steps: 8\n"
            "resume_from_checkpoint: null\n"
        },
        (RANKS,),
    ),
    "Lightning CLI": Trainer(
        "python main.py fit --config config.yaml --trainer.devices 4 --data.init_args.num_workers=8",
        {
            "workers": 8,
            "ranks_per_node": 4,
            "gradient_accumulation": 2,
            "output_dir": "{here}/runs",
        },
        {
            "config.yaml": "trainer:\n  devices: 2\n  accumulate_grad_batches: 2\n"
            "  default_root_dir: runs\ndata:\n  class_path: my.Data\n  init_args:\n"
            "    batch_size: 32\n    num_workers: 4\n"
        },
    ),
    "timm": Trainer(
        "torchrun --nproc_per_node=8 train.py /imagenet --model resnet50 -b 128 -j 8"
        " --img-size 224 --output /out --checkpoint-hist 5 --grad-accum-steps 2",
        {
            "workers": 8,
            "ranks_per_node": 8,
            "output_dir": "/out",
            "save_total_limit": 5,
            "gradient_accumulation": 2,
            "batch_size": 74 * 2**20,
        },
    ),
    "Megatron-LM": Trainer(
        "torchrun --nproc_per_node 8 --nnodes 2 --master_port 6000 pretrain_gpt.py"
        " --micro-batch-size 4 --seq-length 4096 --num-workers 2 --save /ckpt",
        {"workers": 2, "ranks_per_node": 8, "output_dir": "/ckpt", "batch_size": 2**20},
    ),
    "NeMo": Trainer(
        "python megatron_gpt_pretraining.py trainer.devices=8 trainer.num_nodes=2"
        " model.data.num_workers=2 model.micro_batch_size=4 exp_manager.explicit_log_dir=/out"
        " exp_manager.resume_if_exists=True",
        {"workers": 2, "ranks_per_node": 8, "output_dir": "/out"},
    ),
    "diffusers": Trainer(
        "accelerate launch --multi_gpu --num_processes 4 train_text_to_image.py --resolution=512"
        " --train_batch_size=4 --gradient_accumulation_steps=4 --dataloader_num_workers=8"
        " --checkpoints_total_limit=2 --output_dir=sd",
        {
            "workers": 8,
            "ranks_per_node": 4,
            "library": "accelerate",
            "save_total_limit": 2,
            "output_dir": "{here}/sd",
            "batch_size": 12 * 2**20,
        },
    ),
    "Ultralytics": Trainer(
        "yolo detect train data=coco8.yaml model=yolo11n.pt epochs=100 imgsz=640 batch=16"
        " workers=8 device=0,1",
        {"workers": 8, "ranks_per_node": 2, "batch_size": 75 * 2**20},
    ),
    "fairseq": Trainer(
        "fairseq-train data-bin/iwslt14 --arch transformer --save-dir checkpoints --num-workers 4"
        " --update-freq 8 --max-tokens 4096 --distributed-world-size 8",
        {
            "workers": 4,
            "ranks_per_node": 8,
            "gradient_accumulation": 8,
            "output_dir": "{here}/checkpoints",
        },
    ),
}
