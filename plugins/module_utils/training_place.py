# SPDX-License-Identifier: BSD-2-Clause
"""A training run. Only checked."""

from __future__ import annotations

from .place import Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .check_options import Options as CheckOptions
    from .place import Codes
    from .policy.finding import Finding
    from .policy.training_policy import Training as TrainingRun
    from .probe.evidence import Evidence


class Training(Place["TrainingRun"]):
    """``training`` of a policy."""

    name = "training"

    def check(
        self, asked: TrainingRun, options: CheckOptions, evidence: Evidence
    ) -> Iterable[Finding]:
        from .check_training import check_training

        return check_training(asked, options, evidence)

    def codes(self) -> Codes:
        from .policy.training_causes import CODES
        from .policy.workspace_causes import CODES as WORKSPACE

        return (("a training run", CODES), ("a training run", WORKSPACE))
