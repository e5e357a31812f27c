# SPDX-License-Identifier: BSD-2-Clause
"""Say which services may be restarted on a host that is managed from afar, and in which order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ..core.option_names import name_option

_NEVER = {
    "what depends on it does not come back; boot the host instead": (
        "dbus(-broker)?",
        "systemd-logind",
        "polkit",
    ),
    "it may take the network, and this connection, with it; boot the host instead": (
        "NetworkManager",
        "systemd-networkd",
        "networking",
        "network",
        "wicked(d|d-.*)?",
        "wpa_supplicant(@.*)?",
        "dhcpcd(@.*)?",
        "ifup@.*",
        "firewalld",
    ),
}
_LAST = re.compile(r"sshd?(@.*)?\.service")
"""Sessions outlive it; should it not come back, all else has been proved."""


def find_refusals(units: Iterable[str], own: str, connecting: int) -> Iterator[str]:
    """Yield why units must not be restarted from here.

    :param own: The service that this run is part of.
    :param connecting: The uid of whoever is connected.
    """
    for unit in units:
        reason = _find_refusal(unit, own, connecting)
        if reason:
            yield f"{name_option('services_restart')}: {unit}: {reason}"


def _find_refusal(unit: str, own: str, connecting: int) -> str:
    stem, kind = unit.rpartition(".")[::2]
    if kind != "service" or stem.endswith("@") or not stem:
        return "only a service is restarted, by its whole name, as foo@1.service"
    for reason, names in _NEVER.items():
        if any(re.fullmatch(name, stem) for name in names):
            return reason
    if unit == f"user@{connecting}.service":
        return "it is the service manager of whoever is connected"
    # The sessions of an sshd that logind does not know are part of its service, and outlive it.
    if unit == own and not _LAST.fullmatch(unit):
        return "this very run is part of it, and would end with it"
    return ""


def order_restarts(units: Iterable[str]) -> list[str]:
    """Return the units in the order in which they are restarted: the way in comes last."""
    return sorted(dict.fromkeys(units), key=lambda unit: bool(_LAST.fullmatch(unit)))
