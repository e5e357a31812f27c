# SPDX-License-Identifier: BSD-2-Clause
"""How a host is looked at: which places, as whom, and how much may be tried."""

from __future__ import annotations

from .named import NamedTuple

SERVICES = ("sshd", "su", "sudo", "cron", "login")
TIME_LIMIT = 110.0


class Options(NamedTuple):
    """How a host is looked at."""

    sections: tuple[str, ...] | None = None
    """``None`` for every one."""
    users: tuple[str, ...] | None = None
    services: tuple[str, ...] = SERVICES
    probe: str = "quiet"
    canary: str = "auto"
    root: str = ""
    """The tree of an image to judge, in place of this host."""
    time_limit: float = TIME_LIMIT
    """Seconds for all of it; what did not answer by then is unknown."""

    def wants(self, name: str) -> bool:
        """Tell whether a section is asked for."""
        return self.sections is None or name in self.sections
