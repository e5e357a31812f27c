# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the module check on a target that keeps the library."""

from __future__ import annotations

from ..plugin_utils.kept_action import KeptAction


class ActionModule(KeptAction):
    """The action check."""

    VERB = "check"
