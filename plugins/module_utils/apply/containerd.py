# SPDX-License-Identifier: BSD-2-Clause
"""Let systemd read containerd's unit, and restart containerd where that is asked for."""

from __future__ import annotations

_TIME_LIMIT = 120.0


def reload_units() -> str:
    """Let the manager read its files; return why it did not, or nothing."""
    return _systemctl("daemon-reload")


def restart_containerd(unit: str) -> str:
    """Restart containerd, which leaves its containers alone; return why it did not come back."""
    refused = reload_units() or _systemctl("reset-failed", unit)
    return refused or _systemctl("restart", unit) or _systemctl("is-active", "--quiet", unit)


def _systemctl(*words: str) -> str:
    import subprocess  # Needed only where something changes; it is slow to import.

    try:
        done = subprocess.run(  # noqa: S603 - no shell, and the program is named by its path
            ["/usr/bin/systemctl", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_TIME_LIMIT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"systemctl {words[0]}: {error}"
    text = done.stdout.decode("utf-8", "replace").strip().splitlines()
    said = text[-1] if text else f"it ended with {done.returncode}"
    return f"systemctl {' '.join(words)}: {said}" if done.returncode else ""
