# SPDX-License-Identifier: BSD-2-Clause
"""A training run. Only checked."""

from __future__ import annotations

from ..core.place import Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..core.check_options import Options as CheckOptions
    from ..core.finding import Finding
    from ..core.place import Codes
    from ..sessions.evidence import Evidence
    from .policy import Training as TrainingRun


class Training(Place["TrainingRun"]):
    """``training`` of a policy."""

    name = "training"

    def check(
        self, asked: TrainingRun, options: CheckOptions, evidence: Evidence
    ) -> Iterable[Finding]:
        from .check import check_training

        return check_training(asked, options, evidence)

    def codes(self) -> Codes:
        from .causes import CODES
        from .workspace_causes import CODES as WORKSPACE

        return (("a training run", CODES), ("a training run", WORKSPACE))
