# SPDX-License-Identifier: BSD-2-Clause
"""Let systemd read containerd's unit, and restart containerd where that is asked for."""

from __future__ import annotations

from ..probe.program import last_line, run_program

_TIME_LIMIT = 120.0


def reload_units() -> str:
    """Let the manager read its files; return why it did not, or nothing."""
    return _systemctl("daemon-reload")


def restart_containerd(unit: str) -> str:
    """Restart containerd, which leaves its containers alone; return why it did not come back."""
    refused = reload_units() or _systemctl("reset-failed", unit)
    return refused or _systemctl("restart", unit) or _systemctl("is-active", "--quiet", unit)


def _systemctl(*words: str) -> str:
    code, text = run_program(["/usr/bin/systemctl", *words], _TIME_LIMIT)
    return f"systemctl {' '.join(words)}: {last_line(text)}" if code else ""
