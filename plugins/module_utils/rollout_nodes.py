# SPDX-License-Identifier: BSD-2-Clause
"""What Slurm or Kubernetes says of a node: whether it takes work, and who keeps work from it."""

from __future__ import annotations

import ipaddress
import json
import re

from .core.quote import one_line, quote
from .core.values import NamedTuple

REASON = "mlhost.limits rollout"
ANNOTATION = "mlhost.limits/rollout"
MARK = "drained"
_TAKES_WORK = {
    *("IDLE", "ALLOCATED", "ALLOC", "MIXED", "MIX", "COMPLETING", "COMP", "MAINT", "MAINTENANCE"),
    *("RESERVED", "RESV", "PLANNED", "CLOUD", "DYNAMIC_NORM", "EXTERNAL", "PERFCTRS", "BLOCKED"),
    *("REBOOT_REQUESTED", "REBOOT_CANCEL"),
}
"""Of scontrol(1), NODE STATE CODES: nobody keeps new work from these by an order of theirs."""
_FAILS = {"FAIL", "FAILING", "POWER_DRAIN"}
_HELD = {"DRAIN", "DRAINED", "DRAINING", *_FAILS}
_DOWN = "DOWN"
_COMES_BACK = {
    *("NOT_RESPONDING", "NO_RESPOND", "POWERED_DOWN", "POWERING_DOWN", "POWER_DOWN", "POWERING_UP"),
    *("POWER_UP", "REBOOT_ISSUED", "UNKNOWN", "ERROR", "FUTURE", "DYNAMIC_FUTURE", "INVALID_REG"),
    "INVAL",
}
"""Runs nothing now; after a boot it may come back without anybody's doing."""
_SILENT = "*"


class Node(NamedTuple):
    """What a scheduler says of a node; ``state`` and ``why``, the reason, are in its own words.

    ``is_silent`` tells that it does not answer now, ``is_down`` that it can run nothing, and
    ``is_held`` that it gets no new work.
    """

    state: str
    is_down: bool
    is_silent: bool
    is_held: bool
    is_ours: bool
    why: str


def name_node(stated: str, host: str) -> str:
    """Return what a scheduler calls a host: what is stated, or the short name in the inventory.

    Nobody asks the host: it could give the name of another node, which would then be drained.

    :raises ValueError: If that does not name one node, such as ``ALL`` or ``a[1-9]`` of Slurm.
    """
    accepted = "state what Slurm or Kubernetes calls the host as mlhost_limits_node"
    if not stated and is_address(host):
        raise ValueError(f"{host}: is an address in the inventory; {accepted}")
    name = stated or host.partition(".")[0]
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name) or name.lower() == "all":
        raise ValueError(f"mlhost_limits_node: {quote(name)} does not name one node; {accepted}")
    return name


def is_address(host: str) -> bool:
    """Tell whether it is an address of IPv4 or IPv6."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def read_slurm(text: str) -> Node:
    """Return what ``scontrol show node`` says; the reason ends with who gave it, and when.

    :raises ValueError: If it states no state, or one that is not known.
    """
    match = re.search(r"^\s*State=(\S+)", text, re.MULTILINE)
    if not match:
        raise ValueError(f"has no such node ({one_line(text.strip()) or 'no output'})")
    state = match[1]
    words = set(state.upper().replace(_SILENT, "").split("+"))
    known = _TAKES_WORK | _HELD | _COMES_BACK | {_DOWN}
    if not words <= known:
        strange = ", ".join(sorted(words - known))
        accepted = ", ".join(sorted(known))
        raise ValueError(f"says {one_line(state)}; {strange} is not known; accepted are {accepted}")
    why = _read_reason(text)
    is_silent = _SILENT in state or bool(words & _COMES_BACK)
    is_held = bool(words & _HELD)
    is_ours = is_held and why == REASON and not words & _FAILS
    return Node(state, is_silent or _DOWN in words, is_silent, is_held, is_ours, why)


def _read_reason(text: str) -> str:
    """Return the reason, all lines of it: somebody may have put another below ours."""
    match = re.search(r"^\s*Reason=(.*)", text, re.MULTILINE | re.DOTALL)
    first, *more = match[1].splitlines() if match else [""]
    lines = [re.sub(r" \[[^\[\]]*\]\s*$", "", first)]
    for line in more:
        if re.match(r"\s*[A-Z]\w*=", line):
            break
        lines.append(line.strip())
    return " ".join(lines).strip()


def read_kubernetes(text: str) -> Node:
    """Return what ``kubectl get node --output json`` says.

    :raises ValueError: If there is no such node.
    """
    if not text.strip():
        raise ValueError("has no such node")
    try:
        found = json.loads(text)
        is_held = bool(found["spec"].get("unschedulable"))
        marks = found["metadata"].get("annotations") or {}
        conditions = found["status"].get("conditions") or []
        is_ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ValueError(f"answers what is not a node: {one_line(text.strip())[:80]}") from None
    state = ("Ready" if is_ready else "NotReady") + (",SchedulingDisabled" if is_held else "")
    is_ours = marks.get(ANNOTATION) == MARK
    return Node(state, not is_ready, not is_ready, is_held, is_ours, "")
