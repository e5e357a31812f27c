# SPDX-License-Identifier: BSD-2-Clause
"""Say of a look at a node whether root's own doing falls short, which alone says that it is bad."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple, Tuple

from ..core.finding import FAIL, PASS, UNKNOWN, Finding, is_short_by_root
from ..core.report import format_failures

TYPE_CHECKING = False
if TYPE_CHECKING:
    Key = Tuple[str, str, str]


class Judgement(NamedTuple):
    """``status`` is pass, fail or unknown; the sentences are one for each place.

    ``short`` are place, item and bound of what fails, or what failed and is not seen to be mended.
    """

    status: str
    failures: tuple[str, ...]
    warnings: tuple[str, ...]
    short: tuple[Key, ...]


def judge_node(findings: Sequence[Finding], before: Collection[Key]) -> Judgement:
    """Judge a node by its findings.

    What users did themselves is a warning. What failed before and is unknown now is not mended:
    a user may be what keeps it from being seen.

    :param before: What fell short at the last look.
    """
    failing = [one for one in findings if is_short_by_root(one)]
    owned = [one for one in findings if one.status == FAIL and one.owner]
    warnings = tuple(format_failures(owned))
    if failing:
        keys = tuple(dict.fromkeys(map(_key, failing)))
        return Judgement(FAIL, tuple(format_failures(failing)), warnings, keys)
    unseen = dict.fromkeys(_key(one) for one in findings if one.status == UNKNOWN)
    still = tuple(key for key in unseen if key in before)
    if still:
        told = (f"{place}: {item} fell short, and cannot be seen" for place, item, _bound in still)
        return Judgement(UNKNOWN, tuple(dict.fromkeys(told)), warnings, still)
    return Judgement(PASS, (), warnings, ())


def _key(finding: Finding) -> Key:
    wanted = finding.requirement
    return wanted.place, wanted.item, wanted.bound
