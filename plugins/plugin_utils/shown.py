# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide what of a result people see, and what the task returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..module_utils.core.quote import clean

_FOR_PROGRAMS = ("json", "jsonl", "null", "oneline", "dense", "tree")
"""Callbacks whose output a program reads, or that keep to one line for each host."""
_DATA = (
    "brief",
    "connection",
    "connection_causes",
    "findings",
    "idle_waivers",
    "report",
    "samples",
)
"""What only a program reads; a person has the report."""
_WIDTH = 80


class Audience:
    """Who reads the result of a task, by what was asked of Ansible.

    :param cli: The words of the command line.
    :param callback: The name of the callback that writes to the terminal.
    :param is_registered: Whether the play keeps the result in a variable.
    :param display: The option of the module.
    """

    def __init__(
        self, cli: Mapping[str, Any], callback: str, is_registered: bool, display: str
    ) -> None:
        one_line, tree = cli.get("one_line"), cli.get("tree")
        of_programs = bool(one_line or tree) or callback.rpartition(".")[2] in _FOR_PROGRAMS
        self.is_program = of_programs or display == "never"
        self._display = display
        self._is_registered = is_registered
        self._is_adhoc = bool(cli.get("module_name"))
        self._verbosity = int(cli.get("verbosity") or 0)

    def pick_lines(self, done: Mapping[str, Any]) -> Sequence[str]:
        """Return what is displayed of a result; every finding where ``-v`` asks for it."""
        if self.is_program or "brief" not in done:
            return ()
        is_verbose = self._verbosity > 0
        wants = self._display == "always" or self._is_adhoc or is_verbose
        is_short = bool(done.get("failed")) or (_falls_short(done) and not self._is_registered)
        is_of_check = "findings" in done
        if is_of_check and not (wants or is_short):
            return ()
        return list(done["report"] if is_verbose and is_of_check else done["brief"])

    def keeps_data(self) -> bool:
        """Tell whether anybody can read the data of a result."""
        return self.is_program or self._is_registered


def _falls_short(done: Mapping[str, Any]) -> bool:
    summary = done.get("summary")
    return isinstance(summary, dict) and bool(summary.get("fail") or summary.get("later"))


def drop_data(done: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a person reads of the result of a check."""
    return {key: value for key, value in done.items() if key not in _DATA}


def format_block(host: str, lines: Sequence[str]) -> str:
    """Return lines of a host as one text, so that those of no other come between.

    Lines come from the host: nothing in them is done by a terminal.
    """
    first, rest = str(lines[0]), lines[1:]
    start = f"{host}: {first}"
    told = [start] if len(start) <= _WIDTH else [f"{host}:", first]
    return "\n".join(clean(str(line)) for line in [*told, *rest])
