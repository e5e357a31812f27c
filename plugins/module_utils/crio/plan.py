# SPDX-License-Identifier: BSD-2-Clause
"""Plan the drop-in of crio.conf that gives new containers of CRI-O what a policy asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..containers.policy import ContainerPolicy
from ..core.quote import one_line
from ..core.values import ITEMS, Rlimit, format_quantity
from ..podman.plan import Engine
from .crio_conf import DROP_INS, OPTIONS, OWN, TABLE, order_files, read_all

ENGINE = Engine("CRI-O", "containers.crio", OWN, TABLE, order_files, read_all)


def find_refusals(
    asked: ContainerPolicy, ceilings: Mapping[str, Rlimit], options: Mapping[str, str]
) -> Iterator[str]:
    """Yield why nothing may be written.

    :param ceilings: The limits of crio, where it may give no more than it has.
    :param options: What crio was started with, by name.
    """
    for item, limit in asked.stated.items():
        if item in ceilings and limit.hard > ceilings[item].hard:
            wanted, has = (
                format_quantity(one.hard, ITEMS[item].unit) for one in (limit, ceilings[item])
            )
            yield (
                f"{ENGINE.path}.limits.{item}: {wanted} is above crio's own hard limit, {has}, and"
                " crio lacks CAP_SYS_RESOURCE, so that no container would start"
            )
    other = options.get("config-dir")
    if other and other.partition("=")[2].rstrip("/") != DROP_INS:
        yield f"{ENGINE.path}: crio was started with {one_line(other)} and reads no {OWN}"


def find_beating(asked: ContainerPolicy, options: Mapping[str, str]) -> Iterator[str]:
    """Yield the options of crio that leave our file without effect."""
    for key, is_asked in zip(OPTIONS.values(), (bool(asked.stated), bool(asked.tasks))):
        if is_asked and key in options:
            yield f"crio was started with {one_line(options[key])}: {OWN} has no effect beside it"
