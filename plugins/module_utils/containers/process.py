# SPDX-License-Identifier: BSD-2-Clause
"""Say of a process in a container that its engine decides, and neither a unit nor a session."""

from __future__ import annotations

from ..core.cause import Cause, Remedy
from ..core.finding import FAIL, Finding
from ..core.process_owner import MAKER

CODES = {
    "process-in-container": "the process lives in a container, whose engine gave it its limits"
}


def blame_container(finding: Finding, name: str, owner: str = MAKER) -> Finding:
    """Return a finding of a process in a container with that as its cause.

    :param owner: The user whose process it is, or whoever made the container.
    """
    if finding.status != FAIL:
        return finding
    text = f"it lives in the container {name}, whose engine decides: no unit and no login does"
    remedy = Remedy(f"give the container more (containers of the policy), and start {name} anew")
    cause = Cause("process-in-container", text, remedy)
    return finding._replace(causes=(cause,), owner=owner)
