# SPDX-License-Identifier: GPL-3.0-or-later
"""The libraries whose loops take the batches of a drawn run, and what workers keep open."""

import ctypes
import datetime
import io
import os
import socket
import subprocess
import sys
import tarfile
import tempfile

import torch
import torch.distributed as dist

LONGEST = datetime.timedelta(seconds=200)


class Model(torch.nn.Module):
    """As little as a trainer takes for a model."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def forward(self, **batch):
        return {"loss": (self.weight * batch["x0"].flatten()[0]).mean()}


def start_ranks(given):
    """Start the other ranks of this host, which end with this one, and join the groups."""
    if given.ranks == 1 and not given.stage:
        return
    if given.rank:
        ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)
    else:
        with socket.create_server(("127.0.0.1", 0)) as server:
            given.port = server.getsockname()[1]
        words = [sys.executable, *sys.argv, "--port", str(given.port)]
        for rank in range(1, given.ranks):
            subprocess.Popen([*words, "--rank", str(rank)])
    start, many = f"tcp://127.0.0.1:{given.port}", given.ranks
    dist.init_process_group(
        "gloo", init_method=start, rank=given.rank, world_size=many, timeout=LONGEST
    )
    groups = [dist.new_group(list(range(many))) for _number in range(1, given.groups)]
    for group in (dist.group.WORLD, *groups):
        dist.barrier(group)


def meet(given):
    """Wait for all ranks."""
    if given.ranks > 1:
        dist.barrier()


def prepare(given):
    torch.multiprocessing.set_sharing_strategy(given.sharing)
    torch.zeros(600, 600) @ torch.zeros(600, 600)  # The threads of BLAS start with the first.


def keep(given):
    """Return what a worker keeps: its data, and files of a cache that it has open."""
    kept = [b"x" * given.worker_memory]
    many = 0 if given.library == "webdataset" else given.files
    folder = tempfile.mkdtemp(dir="/tmp")
    for number in range(many):
        path = f"{folder}/{number}"
        if given.cached == "safetensors":
            from safetensors import safe_open
            from safetensors.torch import save_file

            save_file({"x": torch.zeros(4096)}, path)
            kept.append(safe_open(path, "pt"))
            kept.append(kept[-1].get_tensor("x"))
        elif given.cached == "wids":
            from wids.wids import IndexedTarSamples

            write_shard(path)
            kept.append(IndexedTarSamples(path=path))
        elif given.cached == "pt":
            torch.save({"x": torch.zeros(4096)}, path)
            kept.append(torch.load(path, mmap=True))
        else:
            kept.append(open(path, "w+b"))  # noqa: SIM115 - it stays open
    return kept


def make_pipeline(given):
    """Return what yields samples from shards, of a library that has such."""
    if given.library != "webdataset":
        return None
    import webdataset

    folder = tempfile.mkdtemp(dir="/tmp")
    for number in range(given.workers):
        write_shard(f"{folder}/{number}.tar")
    urls = [f"{folder}/{number}.tar" for number in range(given.workers)]
    return webdataset.WebDataset(urls, shardshuffle=False).decode().repeat()


def write_shard(path):
    with tarfile.open(path, "w") as shard:
        for sample in range(4):
            member = tarfile.TarInfo(f"{sample}.cls")
            member.size = 1
            shard.addfile(member, io.BytesIO(b"1"))


def train_with_accelerate(given, loaders, _shared):
    from accelerate import Accelerator

    loader, model = Accelerator(cpu=True).prepare(loaders[0], Model())
    for number, batch in enumerate(loader):
        model(**batch)
        if number > given.deep[-1] + given.more:
            break


def train_with_transformers(given, loaders, _shared):
    from transformers import Trainer, TrainingArguments

    train_with_trainer(Trainer, TrainingArguments, given, loaders, Model())


def train_with_trl(given, loaders, _shared):
    """Have TRL's trainer of chat models take the batches; its model is as small as it can be."""
    from datasets import Dataset
    from tokenizers import Tokenizer, models
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
    from trl import SFTConfig, SFTTrainer

    class OwnTrainer(SFTTrainer):
        def compute_loss(self, model, inputs, *_words, **_named):
            return next(model.parameters()).sum() * inputs["x0"].flatten()[0]

    words = Tokenizer(models.WordLevel({"[PAD]": 0, "x": 1}, unk_token="[PAD]"))
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=8,
            hidden_size=8,
            intermediate_size=8,
            num_hidden_layers=1,
            num_attention_heads=1,
        )
    )
    train_with_trainer(
        OwnTrainer,
        SFTConfig,
        given,
        loaders,
        model,
        train_dataset=Dataset.from_dict({"input_ids": [[1, 1]] * 4}),
        processing_class=PreTrainedTokenizerFast(
            tokenizer_object=words, pad_token="[PAD]", eos_token="x"
        ),
    )


def train_with_trainer(trainer, settings, given, loaders, model, **words):
    class Loading(trainer):
        def get_train_dataloader(self):
            return self.accelerator.prepare(loaders[0])

    arguments = settings(
        output_dir=tempfile.mkdtemp(dir="/tmp"),
        gradient_accumulation_steps=given.accumulation,
        max_steps=2 + (given.deep[-1] + given.more) // given.accumulation,
        report_to=[],
        save_strategy="no",
        logging_strategy="no",
        remove_unused_columns=False,
        disable_tqdm=True,
        use_cpu=True,
    )
    words = {"train_dataset": loaders[0].dataset, **words}
    Loading(model=model, args=arguments, **words).train()


def train_with_deepspeed(given, loaders, shared):
    """Train a model whose states DeepSpeed keeps in this host's memory."""
    import deepspeed

    here = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": given.port}
    here.update(RANK=given.rank, LOCAL_RANK=given.rank, WORLD_SIZE=given.ranks)
    os.environ.update({name: str(value) for name, value in here.items()})
    zero = {"stage": given.stage, "offload_optimizer": {"device": "cpu"}}
    if given.stage == 3:
        zero["offload_param"] = {"device": "cpu"}
    settings = {
        "train_micro_batch_size_per_gpu": 1,
        "bf16": {"enabled": True},
        "zero_force_ds_cpu_optimizer": False,
        "zero_allow_untested_optimizer": True,
        "zero_optimization": zero,
    }
    deepspeed.init_distributed("gloo")
    with deepspeed.zero.Init(config_dict_or_path=settings, enabled=given.stage == 3):
        width = given.width
        layers = [torch.nn.Linear(width, width, bias=False) for _layer in range(given.layers)]
        model = torch.nn.Sequential(*layers)
    for layer in layers[: given.layers - given.trained]:
        layer.requires_grad_(False)
    trained = [one for one in model.parameters() if one.requires_grad]
    engine, *_rest = deepspeed.initialize(
        model=model,
        # As DeepSpeed's own, it takes nothing beside its states in a step.
        optimizer=torch.optim.AdamW(trained, fused=True),
        config=settings,
    )
    for epoch in range(given.epochs):
        shared.raise_to("last_epoch", int(epoch == given.epochs - 1))
        for number, _batch in enumerate(loaders[0]):
            loss = engine(torch.ones(1, width, dtype=torch.bfloat16)).float().square().mean()
            engine.backward(loss)
            engine.step()
            if number > given.deep[-1] + given.more:
                break


TRAIN = {
    "deepspeed": train_with_deepspeed,
    "accelerate": train_with_accelerate,
    "transformers": train_with_transformers,
    "trl": train_with_trl,
}
