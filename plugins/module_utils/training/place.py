# SPDX-License-Identifier: BSD-2-Clause
"""A training run. Only checked."""

from __future__ import annotations

from ..host.place import Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..core.finding import Finding
    from ..core.policy import CheckOptions
    from ..host.look import Look
    from ..host.place import Codes
    from .policy import Training as TrainingRun


class Training(Place["TrainingRun"]):
    """``training`` of a policy."""

    name = path = "training"
    is_of_run = True
    about = "the numbers of one training run; only checked"

    def read_policy(self, raw: object, problems: list[str]) -> TrainingRun | None:
        from .policy import read_training

        return read_training(raw, problems)

    def find_missing(self, asked: TrainingRun) -> Iterable[str]:
        from .policy import find_missing

        return find_missing(asked)

    def check(self, asked: TrainingRun, options: CheckOptions, look: Look) -> Iterable[Finding]:
        from .check import check_training

        return check_training(asked, options, look)

    def codes(self) -> Codes:
        from .causes import CODES
        from .folder_rules import CODES as WORKSPACE

        return (("a training run", CODES), ("a training run", WORKSPACE))
