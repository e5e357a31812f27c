# SPDX-License-Identifier: GPL-3.0-or-later
"""What toys need on this host."""

from __future__ import annotations

from ..core.edit import HEADER
from ..core.plan import Section, SectionPlan, plan_edits
from ..host.files import read_text
from .toy_conf import PATH


def prepare_toys(least: int, absent: bool) -> Section:
    """Return the edit of toys.conf."""
    text = read_text(PATH)
    before = {} if text is None else {PATH: text}
    after = None if absent else f"{HEADER}\nmarbles = {least}\n"
    return Section(SectionPlan(plan_edits(before, {PATH: after})), in_effect=("toys",))
