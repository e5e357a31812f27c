# SPDX-License-Identifier: GPL-3.0-or-later
"""Trainers get a callback in one line, and nobody imports what is not installed."""

from __future__ import annotations

import sys
import threading
from types import ModuleType
from typing import Any

import mlhost_limits
import pytest


def stand_in(name: str, base: str) -> ModuleType:
    module = ModuleType(name)
    setattr(module, base, type(base, (), {}))
    return module


def count_threads() -> int:
    return sum(one.name == "mlhost-guard" for one in threading.enumerate())


def test_the_trainer_of_transformers_is_guarded(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = stand_in("transformers", "TrainerCallback")
    monkeypatch.setitem(sys.modules, "transformers", module)
    told: list[object] = []
    callback = mlhost_limits.TransformersGuard(raise_limits=False, on_limit=told.append)
    assert isinstance(callback, module.TrainerCallback)
    assert callback.guard.options == (False, 0.8, told.append)
    seen = [count_threads()]
    for event in ("on_train_begin", "on_train_end", "on_train_end", "on_train_begin"):
        getattr(callback, event)("arguments", "state", "control", model=None)
        seen.append(count_threads())
    callback.on_train_end(None, None, None)
    assert seen == [1, 1, 0, 0, 1]
    assert count_threads() == 0


@pytest.mark.parametrize("name", ["lightning.pytorch", "pytorch_lightning"])
def test_the_trainer_of_lightning_is_guarded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By whichever of its two names the program has imported it."""
    module: Any = stand_in(name, "Callback")
    monkeypatch.setitem(sys.modules, name, module)
    callback = mlhost_limits.LightningGuard(raise_limits=False)
    assert isinstance(callback, module.Callback)
    callback.setup("trainer", "module", stage="fit")
    assert count_threads() == 1
    callback.teardown("trainer", "module", stage="fit")
    assert count_threads() == 0


@pytest.mark.parametrize(
    ("make", "text"),
    [
        ("TransformersGuard", "transformers is not installed"),
        ("LightningGuard", "lightning.pytorch or pytorch_lightning is not installed"),
    ],
)
def test_what_is_not_installed_is_said(make: str, text: str) -> None:
    with pytest.raises(ImportError, match=text):
        getattr(mlhost_limits, make)()
    assert count_threads() == 0


def test_a_trainer_that_is_broken_is_no_trainer_that_is_absent(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    (tmp_path / "transformers.py").write_text("import no_such_module")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        mlhost_limits.TransformersGuard()
