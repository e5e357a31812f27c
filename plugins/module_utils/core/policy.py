# SPDX-License-Identifier: BSD-2-Clause
"""What is asked of a host: by its policy, and of the run that checks it or makes it true."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .waivers import Waiver

SERVICES = ("sshd", "su", "sudo", "cron", "login")
TIME_LIMIT = 110.0


class CheckOptions(NamedTuple):
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


class Switch(NamedTuple):
    """An option of ``provision`` that concerns one place alone, as its argument spec has it."""

    type: str
    default: object
    text: str
    """What it says, for the help of the command."""


class ProvisionOptions(NamedTuple):
    """How a policy is made true."""

    sections: tuple[str, ...] | None = None
    """``None`` for every one."""
    absent: bool = False
    override: bool = False
    heal: bool = False
    check_mode: bool = False
    switches: Mapping[str, Any] = {}
    """What a run chooses of the places' switches, by name."""

    def wants(self, name: str) -> bool:
        """Tell whether a section is asked for."""
        return self.sections is None or name in self.sections


class Policy(NamedTuple):
    """What a host owes its jobs. Of what is not stated, nothing is asked."""

    asked: Mapping[str, Any] = {}
    """By the name of the place; its ``policy.py`` has the type."""
    waivers: tuple[Waiver, ...] = ()
    stated: Mapping[str, object] = {}
    """What a host is asked, as plain data with its profile; a share of memory is still a share."""

    def get(self, name: str) -> Any:
        """Return what is asked of a place; ``None`` where it is nothing."""
        return self.asked.get(name)
