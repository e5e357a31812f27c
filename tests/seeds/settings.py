# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands that set something for the command they start, and for nothing else."""

from __future__ import annotations

import subprocess

Words = tuple[str, ...]


def shell(script: str) -> Words:
    """Return words that run a script, then become the command behind them."""
    return ("sh", "-ec", f'{script}; exec "$@"', "sh")


def soft_limit(option: str, value: object) -> Words:
    """Set one soft limit, by the letter that ulimit has for it."""
    return shell(f"ulimit -S{option} {value}")


def shared_memory(size: str) -> Words:
    """Mount another /dev/shm, seen by this command only."""
    return ("unshare", "--mount", *shell(f"mount -t tmpfs -o size={size} tmpfs /dev/shm"))


def without(*capabilities: str) -> Words:
    """Drop capabilities, as a container's default set does."""
    dropped = ",".join(f"-{name}" for name in capabilities)
    return ("setpriv", "--inh-caps", dropped, "--bounding-set", dropped)


def can(*words: str) -> bool:
    """Tell whether this machine lets us set that."""
    return subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0
