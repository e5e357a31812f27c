# SPDX-License-Identifier: BSD-2-Clause
"""Judge the packages that a run would import."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from .cache_check import find_user
from .package_rules import judge_packages
from .packages_read import read_versions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.finding import Finding
    from .policy import Training


def check_packages(training: Training) -> Iterator[Finding]:
    """Yield whether the interpreter of the run has each package in a version asked for."""
    if not training.packages:
        return
    python = training.python or sys.executable
    versions, reason = None, ""
    if "container:" in training.place:
        reason = f"{python} of {training.place} is seen only from inside: run the check there"
    else:
        try:
            versions = read_versions(python, find_user(training), training.packages)
        except OSError as exc:
            reason = str(exc)
        except KeyError:
            reason = f"this host has no user {find_user(training)}"
    yield from judge_packages(python, training.packages, versions, reason)
