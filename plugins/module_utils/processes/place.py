# SPDX-License-Identifier: BSD-2-Clause
"""Processes that run, chosen by user, name or unit. Only checked."""

from __future__ import annotations

import re

from ..host.place import Place, require_limit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..core.cause import Link
    from ..core.finding import Finding
    from ..core.policy import CheckOptions
    from ..host.look import Look
    from ..host.place import Codes
    from .policy import ProcessRule

_PROCESS = r"([0-9]+)(?: .*)?"


class Processes(Place["tuple[ProcessRule, ...]"]):
    """``processes`` of a policy."""

    name = path = "processes"
    kind, about = "list", "running processes; only checked"
    names = ("process:PID",)

    def read_policy(self, raw: object, problems: list[str]) -> tuple[ProcessRule, ...] | None:
        from .policy import read_processes

        return read_processes(raw, problems)

    def check(
        self, asked: tuple[ProcessRule, ...], options: CheckOptions, look: Look
    ) -> Iterable[Finding]:
        from .check import check_processes

        return check_processes(asked, look, options.probe)

    def explain(self, kind: str, name: str, item: str, look: Look) -> Sequence[Link] | None:
        process = re.fullmatch(_PROCESS, name)
        if kind != "process" or not process:
            return None
        from .explain import trace_process

        return trace_process(int(process[1]), require_limit(item), look)

    def codes(self) -> Codes:
        from ..containers.process import CODES as IN_CONTAINER
        from .old_session_causes import CODES as OLD_SESSION

        return ((self.names[0], OLD_SESSION), (self.names[0], IN_CONTAINER))
