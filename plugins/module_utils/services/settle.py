# SPDX-License-Identifier: BSD-2-Clause
"""Let systemd read its files anew, and restart services so that they run again, or say why not."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

from .measure import run_systemd

_TIME_LIMIT = 120.0
_SETTLED = 2.0  # Seconds: a service that ends because of its limits does so at once.
_RUNNING = ("active", "reloading")
_FIRST_WITH_RELOAD = 240
"""Before it, defaults are read when the manager is executed anew, and not when it reloads."""


class Settling:
    """What makes written files count; called again after a roll-back, it undoes that."""

    def __init__(
        self, reload: bool, users: Sequence[int], logind: bool, restarts: Sequence[str]
    ) -> None:
        """Say what must be told.

        :param reload: Whether the system's manager must read its files.
        :param users: The uids of the managers of users that must.
        :param logind: Whether logind must.
        :param restarts: The units to restart, in this order.
        """
        self.reload = reload
        self.users = users
        self.logind = logind
        self.restarts = restarts
        self.touched: list[str] = []
        self.is_first = True

    def __call__(self) -> str:
        """Do all of it; return why something does not run any more, or nothing."""
        restarts = self.restarts if self.is_first else list(self.touched)
        self.is_first = False
        trouble = self._tell()
        for unit in restarts:
            if trouble and unit not in self.touched:
                break
            if unit not in self.touched:
                self.touched.append(unit)
            trouble = restart_unit(unit) or trouble
        return trouble

    def _tell(self) -> str:
        """Let the managers and logind read their files."""
        if self.reload:
            code, text = run_systemd("systemctl", [_find_reload()], None, _TIME_LIMIT)
            if code:
                return f"systemd did not read its files: {text.strip()}"
        for uid in self.users:
            run_systemd("systemctl", ["daemon-reload"], uid)  # It may have ended meanwhile.
        if self.logind:
            run_systemd("systemctl", ["kill", "--kill-who=main", "-s", "HUP", "systemd-logind"])
        return ""


def _find_reload() -> str:
    text = run_systemd("systemctl", ["--version"])[1]
    version = re.match(r"systemd ([0-9]+)", text)
    old = version is not None and int(version[1]) < _FIRST_WITH_RELOAD
    return "daemon-reexec" if old else "daemon-reload"


def restart_unit(unit: str) -> str:
    """Restart a service and see it run for a while; return why it does not, or nothing."""
    run_systemd("systemctl", ["reset-failed", unit])
    code, text = run_systemd("systemctl", ["restart", unit], None, _TIME_LIMIT)
    if code:
        lines = text.strip().splitlines() or ["no message"]
        return f"{unit} did not restart: {lines[0]}; see journalctl -u {unit}"
    first, started = _show(unit), time.monotonic()
    while time.monotonic() - started < _SETTLED:
        time.sleep(0.1)
        now = _show(unit)
        if now.get("ActiveState") not in _RUNNING or now != first:
            state = now.get("SubState") or "unknown"
            return f"{unit} does not stay up after its restart ({state}); see journalctl -u {unit}"
    return ""


def _show(unit: str) -> dict[str, str]:
    """Return what must not change while a service runs on."""
    words = ["show", "-p", "ActiveState,SubState,MainPID,NRestarts", unit]
    text = run_systemd("systemctl", words)[1]
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
