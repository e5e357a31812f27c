# SPDX-License-Identifier: BSD-2-Clause
"""What a training host owes its jobs: the policy, the probes and the changes."""

from __future__ import annotations

_FOR_TRAINING = ("LightningGuard", "TransformersGuard", "check", "guard", "plan_workers")


def __getattr__(name: str) -> object:
    """Return a function for training code, which Ansible does not ship (PEP 562)."""
    if name not in _FOR_TRAINING:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.preflight"), name)
