# SPDX-License-Identifier: BSD-2-Clause
"""Judge from a run's last words what it died of, and how sure that is."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..core.values import NamedTuple
from .facts import AGAINST, DOUBT, HINT, SURE, Sign
from .log_text import Found, Words, are_chained, ended_well, find_failures, is_ignored, worked_on
from .message import AFTER, CAUSE, PLAIN, WRAPPER
from .no_limits import BY_HAND
from .reason import Reason
from .reasons import CGROUP, COMMIT, REASONS

SHOWN, FITS, POSSIBLE = "shown by the host", "fits the words", "only possible"
_RANKS = (CAUSE, PLAIN, AFTER, WRAPPER)
_SHORTLY = 40  # Lines between an order and what follows it.
_ORDER = re.compile(
    r"CANCELL?ED AT|TERM_\w+LIMIT|job killed:|[Ee]xceeded (?:\w+ )?memory limit"
    r"|Forcefully terminating all other processes"
)
_EXITED = re.compile(r"srun: error: .*Exited with exit code (?!0\b|9\b|137\b)")
_WRAPS = re.compile(
    r"Job failed: exit code|Process completed with exit code|failed to solve: "
    r"|[Ss]ee root cause above|^(?:error: )?command '.*' failed with exit|ShardCannotStart"
    r"|Application startup failed|SystemExit: |LD_PRELOAD cannot be preloaded"
    r"|I/O operation on closed file|Directory not empty: '/tmp/pymp-"
    r"|^RuntimeError: worker \d+ failed"
)
"""What others say of a failure whose words stand above."""
_NEEDS = re.compile(
    r"^(?:fatal )?[Ee](?:rror|RROR): |[Cc]onnection refused|Errno 111\]"
    r"|^(?:rm|cp|mv|ls|cat|tar|sed): cannot "
    r"|^curl: \(7\)|No such file or directory: '(?!/)"
)
"""What fails for want of what was to be there, if it stands a few lines below a failure."""
_NEXT = 30
_RANKS_KILLED = re.compile(r"srun: error: .*: Killed")
_EPISODE = 200
"""Lines above the last message in which others may tell more of the same end."""


class Verdict(NamedTuple):
    """What a run died of.

    ``others`` are reasons that say the same, ``line`` is the message and ``number`` its line among
    those read, from 1. ``notes`` say what the host shows. ``earlier`` is a message that stands
    before it and was not what ended the run. ``at`` is where in the line its words begin.
    """

    reason: Reason
    sure: str
    line: str
    number: int
    others: tuple[Reason, ...] = ()
    notes: tuple[str, ...] = ()
    needed: tuple[str, int] | None = None
    earlier: str = ""
    near: str = ""
    rank: int = 0
    at: int = 0

    @property
    def is_limit(self) -> bool | None:
        """Tell whether a limit ended the run; ``None`` where it may be one or none."""
        kinds = {one.is_limit for one in (self.reason, *self.others)}
        return kinds.pop() if len(kinds) == 1 else None


def judge_words(words: Words) -> Verdict | None:
    """Return what the words of a run tell by themselves; nothing where they name no failure."""
    found = [one for one in find_failures(words) if not is_ignored(words, one)]
    found = _drop_wrappers(_drop_orders(found))
    found = [one for one in found if not worked_on(words, one, one is found[-1])]
    if not found:
        return None
    went_well = ended_well(words, found[-1])
    if went_well:
        return None
    chosen = _choose(words, found)
    needed = find_needed(chosen)
    codes = _narrow(chosen, found)
    if needed and needed[0] == REQUEST and needed[1] >= _HUGE:
        codes = tuple(sorted(codes, key=lambda code: code != COMMIT))
    reasons = tuple(REASONS[code] for code in codes)
    sure = FITS if len(reasons) == 1 and not chosen.is_unsure and went_well is False else POSSIBLE
    return Verdict(
        reasons[0],
        sure,
        chosen.line,
        chosen.number + 1,
        reasons[1:],
        needed=needed,
        earlier=_find_earlier(chosen, found),
        near=chosen.near,
        rank=chosen.message.rank,
        at=chosen.at,
    )


def _drop_orders(found: Sequence[Found]) -> list[Found]:
    """Return the messages without kills that a launcher ordered, as it had said why above."""
    orders = [one.number for one in found if _ORDER.search(one.line)]
    exits = [one.number for one in found if _EXITED.search(one.line)]
    kept = []
    for one in found:
        is_kill = one.message.reasons[0] == CGROUP and BY_HAND in one.message.reasons
        causes = [*orders, *(exits if _RANKS_KILLED.search(one.line) else ())]
        if not (is_kill and any(0 < one.number - number <= _SHORTLY for number in causes)):
            kept.append(one)
    return kept


def _drop_wrappers(found: Sequence[Found]) -> list[Found]:
    """Return the messages without those that only follow from a failure above them.

    What ran a command tells that it failed; the next commands of a script, and those who were
    connected, fail shortly afterwards for want of it.
    """
    causes = [one.number for one in found if one.message.rank == CAUSE]
    kept = []
    for one in found:
        above = [one.number - number for number in causes if number < one.number]
        if above and (_WRAPS.search(one.line) or (above[-1] <= _NEXT and _NEEDS.search(one.line))):
            continue
        kept.append(one)
    return kept


def _choose(words: Words, found: Sequence[Found]) -> Found:
    """Return the message that counts: the last one that does not follow from another's end.

    An error that came while a limit's was handled follows from it too. Of what follows, the first
    counts.
    """
    by_rank = {rank: [one for one in found if one.message.rank == rank] for rank in _RANKS}
    causes, plain, after = by_rank[CAUSE], by_rank[PLAIN], by_rank[AFTER]
    if causes and plain and plain[-1].number > causes[-1].number:
        return causes[-1] if are_chained(words, causes[-1], plain[-1]) else plain[-1]
    if causes or plain:
        return (causes or plain)[-1]
    if after:
        return next(one for one in after if after[-1].number - one.number <= _EPISODE)
    return found[-1]


def _narrow(chosen: Found, found: Sequence[Found]) -> tuple[str, ...]:
    """Return the reasons that fit every message of this end that can be of the same one."""
    codes = chosen.message.reasons
    for one in reversed(found):
        if not 0 <= chosen.number - one.number <= _EPISODE or one.message.rank < CAUSE:
            continue
        both = tuple(code for code in codes if code in one.message.reasons)
        codes = both or codes
    return codes


def _find_earlier(chosen: Found, found: Sequence[Found]) -> str:
    """Return a limit's message above an error that is none, for people to look at."""
    if REASONS[chosen.message.reasons[0]].is_limit:
        return ""
    for one in reversed(found):
        if one.number < chosen.number and REASONS[one.message.reasons[0]].is_limit:
            return one.line
    return ""


def weigh(verdict: Verdict, signs: Sequence[Sign]) -> Verdict:
    """Return a verdict with what the host shows: a reason that it shows counts before all.

    What it excludes is left out, unless nothing were left. What may be of another run comes first,
    and stays no more than possible; what it would exclude if the run was here comes last.
    """
    reasons = (verdict.reason, *verdict.others)
    worths = (SURE, HINT, AGAINST)
    by_worth = {worth: [one for one in signs if one.worth == worth] for worth in worths}
    for one in by_worth[SURE]:
        notes = tuple(sign.text for sign in by_worth[SURE] if sign.code == one.code)
        reason = one.reason or REASONS[one.code]
        return verdict._replace(reason=reason, sure=SHOWN, others=(), notes=notes)
    against = {one.code for one in by_worth[AGAINST]}
    hinted = [one.code for one in by_worth[HINT]]
    left = [one for one in reasons if one.code not in against]
    if not left:  # The words stand against the host, which may look at another time or place.
        notes = tuple(one.text for one in by_worth[AGAINST])
        return verdict._replace(sure=POSSIBLE, notes=notes)
    doubted = {one.code for one in signs if one.worth == DOUBT}
    closer = {one.code: one.reason for one in by_worth[HINT] if one.reason}
    left.sort(key=lambda one: (one.code not in hinted, one.code in doubted))
    left = [closer.get(one.code) or one for one in left]
    counted = by_worth[HINT] if hinted else by_worth[AGAINST] if len(left) < len(reasons) else ()
    return verdict._replace(
        reason=left[0],
        others=tuple(left[1:]),
        sure=FITS if len(left) == 1 else POSSIBLE,
        notes=tuple(dict.fromkeys(one.text for one in counted)),
    )


REQUEST = "request"
"""Stands for an item where a message tells how much was asked for at once."""

MINIMUM = "minimum"
"""Stands for an item where a message tells how much was not even enough to begin with."""

_HUGE = 2**40  # Bytes that no host has, and no limit of a process is set to.
_SIZES = {"": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50}
_NUMBER = "[0-9]{1,18}"
_NEEDED = (
    ("vm.max_map_count", re.compile(rf"vm\.max_map_count.*at least \[({_NUMBER})\]")),
    ("nofile", re.compile(rf"max file descriptors .*at least \[({_NUMBER})\]")),
    (
        MINIMUM,
        re.compile(rf"mlock ({_NUMBER})-byte buffer \(after previously locking ({_NUMBER}) b"),
    ),
    (REQUEST, re.compile(rf"you tried to allocate ({_NUMBER}) bytes")),
    (REQUEST, re.compile(rf"memory allocation of ({_NUMBER}) bytes failed")),
    (
        REQUEST,
        re.compile(r"Unable to allocate ([0-9]{1,9}(?:\.[0-9]{0,6})?) ([KMGTP]iB|B)(?![\w.])"),
    ),
    (REQUEST, re.compile(rf"shared memory segment \S+ \(size ({_NUMBER})\)")),
)


def find_needed(found: Found) -> tuple[str, int] | None:
    """Return the value that would have been enough, or the size that was asked for, if told."""
    for item, pattern in _NEEDED:
        match = pattern.search(found.line)
        if match is None:
            continue
        if item == MINIMUM:
            return item, int(match[1]) + int(match[2])
        unit = match[2] if match.re.groups > 1 else ""
        return item, int(float(match[1]) * _SIZES[unit])
    return None
