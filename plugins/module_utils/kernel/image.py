# SPDX-License-Identifier: BSD-2-Clause
"""Foretell the sysctls of an image from its files."""

from __future__ import annotations

from collections.abc import Mapping

from ..core.finding import FAIL
from ..core.forecast import Forecast
from .causes import find_kernel_causes, find_unclear
from .diagnose import foretell_key, gather_key
from .model import predict_boot
from .policy import KernelValue, require_kernel
from .tree_read import TreeBoot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..host.image import Tree
    from ..host.place import Foretold


def foresee_kernel(asked: Mapping[str, KernelValue], tree: Tree) -> Foretold:
    """Yield what a boot will make of each sysctl."""
    boot = tree.at(TreeBoot)
    for key, value in asked.items():
        wanted = require_kernel(key, value)
        is_text = value.fields or not str(value.exact or 0).isdigit()
        start = None if is_text else boot.find_start(key)
        facts = gather_key(key, boot, start)
        status, given = foretell_key(wanted, facts, boot), predict_boot(facts)
        if status == FAIL:
            facts = facts._replace(others=boot.others, real=boot.real)
            causes = find_kernel_causes(wanted, facts)
        else:
            causes = find_unclear(wanted, facts)
        value_text = given.values[0] if given.values else None
        reason = causes[0].text if causes else "no file states it"
        yield wanted, Forecast(status, value_text, given.by, tuple(causes), reason)
