# SPDX-License-Identifier: GPL-3.0-or-later
"""The runs of twenty trainers are read without a question, or with the one that is left."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from mlhost_limits.gather_words import gather_words
from mlhost_limits.words.precedence import take

from tests.places.words.trainers import ALWAYS, TRAINERS, Trainer


@pytest.mark.parametrize("trainer", TRAINERS.values(), ids=list(TRAINERS))
def test_a_trainer_s_words_are_read(
    trainer: Trainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "SLURM_NTASKS_PER_NODE"):
        monkeypatch.delenv(name, raising=False)
    for name, text in trainer.files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    words, _names = gather_words([], shlex.split(trainer.command))
    taken = take(words, {}, str(tmp_path))
    assert (words.problems, taken.problems) == ((), ())
    found = {key: taken.section.get(key) for key in trainer.run}
    assert found == {
        key: value.format(here=tmp_path) if isinstance(value, str) else value
        for key, value in trainer.run.items()
    }
    assert set(taken.asked) - set(ALWAYS) == set(trainer.asked)
