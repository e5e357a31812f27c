# SPDX-License-Identifier: GPL-3.0-or-later
"""Train some steps with the real Trainer and a checkpoint every other step."""

import argparse
import os
import sys
import time

import torch
import transformers
from transformers import Trainer, TrainerCallback, TrainingArguments


class Line(torch.nn.Module):
    """The smallest model that a Trainer takes."""

    def __init__(self):
        super().__init__()
        self.line = torch.nn.Linear(4, 1)

    def forward(self, x, labels):
        return {"loss": (self.line(x) - labels).square().mean()}


class Pace(TrainerCallback):
    """Steps that take as long in every run: they begin with a half second of the clock."""

    def on_step_begin(self, *_, **__):
        time.sleep(0.5 - time.time() % 0.5)


def meet(folder):
    """Wait until two runs are here, as those of one batch of jobs are."""
    open(f"{folder}/{os.getpid()}", "w").close()
    while len(os.listdir(folder)) < 2:
        time.sleep(0.01)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("output")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--save-every", type=int, default=2)
    parser.add_argument("--save-total-limit", type=int)
    parser.add_argument("--meet", help="a folder where another run is waited for")
    given = parser.parse_args()
    print(f"transformers {transformers.__version__}")
    arguments = TrainingArguments(
        output_dir=given.output,
        max_steps=given.steps,
        save_steps=given.save_every,
        save_total_limit=given.save_total_limit,
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
    )
    samples = [{"x": torch.ones(4), "labels": torch.ones(1)} for _ in range(64)]
    trainer = Trainer(Line(), arguments, train_dataset=samples)
    if given.meet:
        trainer.add_callback(Pace)
        meet(given.meet)
    trainer.train(resume_from_checkpoint=given.resume)
    last = f"{given.output}/checkpoint-{given.steps}"
    if not os.path.isfile(f"{last}/trainer_state.json"):
        sys.exit(f"{last} is gone: {sorted(os.listdir(given.output))} are left")
    print(f"saved {last}")


if __name__ == "__main__":
    main()
