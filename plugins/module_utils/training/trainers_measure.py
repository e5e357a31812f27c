# SPDX-License-Identifier: BSD-2-Clause
"""Callbacks for the trainers of transformers and Lightning, imported where they are used."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

from .guard_measure import Guard, open_guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LIGHTNING = ("lightning.pytorch", "pytorch_lightning")


class _Held:
    """A guard from when the trainer is made to the end of the training, and for the next."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.guard: Guard = open_guard(**options)
        self._is_held = True

    def begin(self) -> None:
        """Guard the training, again if there was one before."""
        if not self._is_held:
            self.guard.start()
            self._is_held = True

    def end(self) -> None:
        """Let the guard go."""
        if self._is_held:
            self._is_held = False
            self.guard.stop()


def make_transformers_guard(**options: Any) -> Any:
    """Return a callback: ``Trainer(callbacks=[TransformersGuard()])``.

    :param options: Those of :func:`mlhost_limits.guard`.
    :raises ImportError: Where transformers is not installed.
    """
    base = _import(("transformers",)).TrainerCallback
    held = _Held(options)

    def on_train_begin(_self: Any, *_words: Any, **_more: Any) -> None:
        held.begin()

    def on_train_end(_self: Any, *_words: Any, **_more: Any) -> None:
        held.end()

    methods = {"on_train_begin": on_train_begin, "on_train_end": on_train_end, "guard": held.guard}
    return type("TransformersGuard", (base,), methods)()


def make_lightning_guard(**options: Any) -> Any:
    """Return a callback: ``Trainer(callbacks=[LightningGuard()])``.

    :param options: Those of :func:`mlhost_limits.guard`.
    :raises ImportError: Where neither ``lightning`` nor ``pytorch_lightning`` is installed.
    """
    base = _import(_LIGHTNING).Callback
    held = _Held(options)

    def setup(_self: Any, *_words: Any, **_more: Any) -> None:
        held.begin()

    def teardown(_self: Any, *_words: Any, **_more: Any) -> None:
        held.end()

    methods = {"setup": setup, "teardown": teardown, "guard": held.guard}
    return type("LightningGuard", (base,), methods)()


def _import(names: tuple[str, ...]) -> ModuleType:
    """Return the first module that the program uses already, or that is installed."""
    for name in sorted(names, key=lambda one: one not in sys.modules):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as exc:
            if not f"{name}.".startswith(f"{exc.name}."):
                raise
    raise ImportError(f"{' or '.join(names)} is not installed")
