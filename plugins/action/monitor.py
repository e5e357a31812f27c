# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the module monitor on a target that keeps the library, which is what it installs."""

from __future__ import annotations

from ..plugin_utils.kept_action import KeptAction


class ActionModule(KeptAction):
    """The action monitor."""

    VERB = "monitor"
    _supports_async = False
