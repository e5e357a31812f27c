# SPDX-License-Identifier: GPL-3.0-or-later
"""Train three layers of 4096 x 4096 under ZeRO-3, everything offloaded; torchrun starts it."""

import deepspeed
import torch

WIDTH, LAYERS = 4096, 3
CONFIG = {
    "train_micro_batch_size_per_gpu": 1,
    "bf16": {"enabled": True},
    "zero_force_ds_cpu_optimizer": False,
    "zero_allow_untested_optimizer": True,
    "zero_optimization": {
        "stage": 3,
        "offload_optimizer": {"device": "cpu"},
        "offload_param": {"device": "cpu"},
    },
}


def main():
    deepspeed.init_distributed("gloo")
    with deepspeed.zero.Init(config_dict_or_path=CONFIG):
        layers = [torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS)]
        model = torch.nn.Sequential(*layers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=CONFIG)
    for _ in range(2):
        loss = engine(torch.ones(1, WIDTH, dtype=torch.bfloat16)).float().square().mean()
        engine.backward(loss)
        engine.step()
    if torch.distributed.get_rank() == 0:
        print(f"trained {WIDTH * WIDTH * LAYERS} parameters")


if __name__ == "__main__":
    main()
