# SPDX-License-Identifier: BSD-2-Clause
"""Tell the manager of the system what to do; each returns why that failed, or nothing."""

from __future__ import annotations

from ..host.program import last_line, run_program

_TIME_LIMIT = 120.0


def reload_units() -> str:
    """Let the manager read its files."""
    return systemctl("daemon-reload")


def restart_unit(unit: str) -> str:
    """Restart a unit, however often it was started of late, and see it active."""
    refused = reload_units() or systemctl("reset-failed", unit)
    return refused or systemctl("restart", unit) or systemctl("is-active", "--quiet", unit)


def systemctl(*words: str) -> str:
    code, text = run_program(["/usr/bin/systemctl", *words], _TIME_LIMIT)
    return f"systemctl {' '.join(words)}: {last_line(text)}" if code else ""
