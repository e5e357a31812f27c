# SPDX-License-Identifier: BSD-2-Clause
"""Read the reports of runs that were watched, as evidence for whoever asks why one died."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

from ..core.values import NamedTuple
from ..host.users import name_user
from ..why.log_read import Log
from ..why.reasons import REASONS
from ..why.verdict import FITS, POSSIBLE, SHOWN, Verdict
from .report import FORMAT, VERSION

_HEAD = 200


class Evidence(NamedTuple):
    """What a report shows. ``group`` is the cgroup at its limit, ``doubts`` why it may be wrong."""

    verdict: Verdict
    uid: int
    cgroup: str
    group: str
    doubts: tuple[str, ...] = ()


def is_report(text: str) -> bool:
    """Tell whether a text is a report of ours, by its beginning."""
    return text[:_HEAD].lstrip().startswith("{") and f'"format": "{FORMAT}"' in text[:_HEAD]


def split_reports(logs: Sequence[Log]) -> tuple[list[Evidence], list[Log]]:
    """Return what reports among some logs show, and the other logs.

    :raises ValueError: If a report is not whole, or of another version.
    """
    reports = [one for one in logs if is_report(one.text)]
    return [_read(one) for one in reports], [one for one in logs if one not in reports]


def _read(log: Log) -> Evidence:
    """Return what a report shows: a user's own shows root no more than its words do."""
    seen = parse_report(log.text)
    if not log.uid or os.geteuid():
        return seen
    sure = FITS if seen.verdict.sure == SHOWN else POSSIBLE
    doubt = f"the report is a file of {name_user(log.uid)}, who may have written anything"
    return seen._replace(verdict=seen.verdict._replace(sure=sure), uid=log.uid, doubts=(doubt,))


def parse_report(text: str) -> Evidence:
    """Return what a report shows.

    :raises ValueError: If it is not whole, or of another version.
    """
    try:
        told = json.loads(text)
        version = told["version"]
        if version != VERSION:
            raise ValueError(f"a report of watch has version {version!r}; {VERSION} is accepted")
        if not told["reason"]:
            raise ValueError(f"the report of {told['name']!r} tells of a run that did not fail")
        first, *others = (REASONS[code] for code in (told["reason"], *told["others"]))
        if told["item"] in _ITEMS:
            first = first._replace(item=told["item"])
        sure = SHOWN if told["sure"] == SHOWN else POSSIBLE
        notes = tuple(str(one) for one in told["host"])
        verdict = Verdict(first, sure, "", 0, tuple(others), notes)
        if not isinstance(told["uid"], int):
            raise TypeError("uid")
        return Evidence(verdict, told["uid"], str(told["cgroup"]), str(told["group"]))
    except json.JSONDecodeError as error:
        raise ValueError(f"a report of watch is not whole: {error}") from None
    except (KeyError, TypeError, RecursionError):
        raise ValueError("a report of watch lacks what every one has") from None


_ITEMS = {one.item for one in REASONS.values()} | {"data"}


def join_evidence(seen: Evidence, words: Verdict | None) -> Verdict:
    """Return the verdict of a report with the words of the run, if somebody gave them.

    What was shown counts before words that may mean it; words of another reason stay, and what
    was seen stands beside them.
    """
    verdict = seen.verdict
    if words is None:
        return verdict
    codes = [one.code for one in (words.reason, *words.others)]
    if verdict.reason.code in codes and verdict.is_limit:
        return words._replace(
            reason=verdict.reason, others=(), sure=verdict.sure, notes=verdict.notes
        )
    return words._replace(notes=(*words.notes, *verdict.notes))
