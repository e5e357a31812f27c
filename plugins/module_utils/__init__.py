# SPDX-License-Identifier: BSD-2-Clause
"""What a training host owes its jobs: the policy, the probes and the changes."""

from __future__ import annotations

_FOR_TRAINING = {
    **dict.fromkeys(
        ("LightningGuard", "TransformersGuard", "check", "guard", "measure", "plan_workers"),
        "preflight",
    ),
    **dict.fromkeys(("atomic_save", "job_cache_dir", "verify_checkpoint"), "saving"),
}
"""What training code imports, and in which file it is."""


def __getattr__(name: str) -> object:
    """Return a function for training code, which Ansible does not ship (PEP 562)."""
    if name not in _FOR_TRAINING:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_FOR_TRAINING[name]}"), name)
