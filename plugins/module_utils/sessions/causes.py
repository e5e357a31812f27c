# SPDX-License-Identifier: BSD-2-Clause
"""Say why a fresh session gets less than a policy asks, by changing one thing after another.

What is at fault first is put right in thought and the session is predicted again, until the
requirement is met: each thing that had to change is a cause.
"""

from __future__ import annotations

from functools import partial

from ..core.cause import Cause, Remedy, append_line, cite, comment_out, replace_line, search
from ..core.finding import Requirement
from ..core.line_edit import edit_line
from ..core.reader import Limit
from ..core.values import (
    ITEMS,
    UNLIMITED,
    Bound,
    Declaration,
    Rlimit,
    format_pair,
    format_quantity,
)
from ..kernel.raises import raise_nr_open
from ..kernel.sysctl_conf import LARGEST_NR_OPEN
from .facts import SessionFacts, find_ending, predict_session
from .limits_conf import LimitsLine, format_limits, parse_limits_conf, parse_value
from .model import find_baseline, find_wanted, is_taken
from .pam_limits import Resolution, declare, rank_domain
from .selinux_causes import blame_reset
from .unread import Unread

CODES = {
    "pam-user-beats-wildcard": "a line for a user or a range of uids beats one for everyone",
    "pam-user-beats-group": "a line for a user or a range of uids beats one for a group",
    "pam-group-beats-wildcard": "a line for a group beats one for everyone",
    "pam-later-file-wins": "of lines of one rank, that of the file that is read later counts",
    "pam-later-line-wins": "of lines of one rank in one file, the last counts",
    "pam-dash-wins": "a '-' line states soft and hard at once, over those stated before it",
    "pam-dash-loses-hard": "a '-' line that loses its soft half loses its hard half as well",
    "pam-stated-too-low": "the line that counts states too little, and no other states enough",
    "pam-stated-too-high": "the line that counts states more than the policy's maximum",
    "pam-hard-clamps-soft": "a hard limit that is lower takes the soft one down with it",
    "pam-soft-alone": "a soft limit without a hard one does not raise the hard one",
    "pam-two-field-line": "a line 'DOMAIN -' takes every limit from whom it matches",
    "pam-above-nr-open": "fs.nr_open is lower than the nofile asked for, so the kernel refuses it",
    "pam-may-not-raise": "what opens the session lacks CAP_SYS_RESOURCE, as in a container",
    "pam-root-not-covered": "on this distribution '*' and groups never mean root",
    "pam-file-not-read": "a file that states enough is not read, because of its name or kind",
    "pam-line-skipped": "a line that states enough cannot be read, and is skipped",
    "pam-not-stated": "no line of a limits file is about this user and this limit",
}

_RELOGIN = "log in again"
_SITE_FILE = "/etc/security/limits.d/95-site.conf"
_RANKS = {0: "user", 1: "group", 4: "wildcard"}


def find_session_causes(wanted: Requirement, facts: SessionFacts) -> list[Cause]:
    """Return everything that keeps a session from a requirement, what comes first first.

    There is none where the session is predicted to meet it.
    """
    return search(facts, partial(_find_next, wanted))[0]


def _meets(wanted: Requirement, limits: dict[str, Rlimit]) -> bool:
    """Tell whether limits are as required, or say nothing of it, as of ``maxlogins``."""
    limit = limits.get(wanted.item)
    return limit is None or wanted.is_met_by(wanted.pick(limit))


def _find_next(wanted: Requirement, facts: SessionFacts) -> tuple[Cause, SessionFacts] | None:
    """Return what is at fault first, and the facts with that put right."""
    ended = find_ending(facts)
    if not (ended or facts.is_closed) and _meets(wanted, predict_session(facts)):
        return None
    unreset = facts._replace(reset=None)
    if facts.reset and not ended and _meets(wanted, predict_session(unreset)):
        return blame_reset(facts.reset), unreset
    if facts.hindrances:
        return facts.hindrances[0].cause, facts._replace(hindrances=facts.hindrances[1:])
    return _blame_lines(wanted, ended or wanted.item, facts)


def _blame_lines(
    wanted: Requirement, item: str, facts: SessionFacts
) -> tuple[Cause, SessionFacts] | None:
    resolution, start = facts.resolution, facts.last_start
    if resolution.stopped_by:
        return _blame_stop(resolution.stopped_by, facts)
    asked = find_wanted(item, resolution, start)
    if not is_taken(item, asked, start._replace(may_raise=True)):
        return _blame_nr_open(wanted, asked, resolution, facts)
    if not is_taken(item, asked, start):
        return _blame_capability(item, asked, resolution, facts)
    bound = resolution.bounds.get((wanted.item, wanted.bound))
    if bound is None:
        return _blame_silence(wanted, facts)
    if not wanted.is_met_by(int(bound.winner.value)):
        return _blame_winner(wanted, bound, facts)
    hard = resolution.bounds.get((wanted.item, "hard"))
    return _blame_clamp(wanted, bound, hard, facts)


def _blame_stop(line: Declaration, facts: SessionFacts) -> tuple[Cause, SessionFacts]:
    text = f"{cite(line)} takes every limit of the files from {facts.user.name}"
    cause = Cause("pam-two-field-line", text, comment_out(line, _RELOGIN), line)
    return cause, _without(line, facts)


def _blame_nr_open(
    wanted: Requirement, asked: Rlimit, resolution: Resolution, facts: SessionFacts
) -> tuple[Cause, SessionFacts] | None:
    """Blame the line that asks for more than the kernel gives, or the kernel."""
    bound = resolution.bounds.get(("nofile", "hard"))
    if bound is None:
        return None
    line, nr_open = bound.winner, facts.start.nr_open
    refused = _describe_refusal("nofile", facts)
    text = (
        f"{cite(line)} asks for more than fs.nr_open, {nr_open}: the kernel refuses it, {refused}"
    )
    code, others = "pam-above-nr-open", [one for one in bound.shadowed if one.value != line.value]
    is_own = wanted.item == "nofile"
    fit = [one.value for one in others if isinstance(one.value, int) and one.value <= nr_open]
    if any(not is_own or wanted.is_met_by(value) for value in fit) or (
        asked.hard > LARGEST_NR_OPEN and not is_own
    ):
        return Cause(code, text, comment_out(line, _RELOGIN), line), _without(line, facts)
    if is_own and (asked.hard > LARGEST_NR_OPEN or wanted.minimum is None):
        return _restate(code, text, _require_hard(wanted, facts), line, facts)
    remedy = raise_nr_open(asked.hard, facts.nr_open_at_boot, facts.nr_open_line, _RELOGIN)
    raised = facts.start._replace(nr_open=asked.hard)
    return Cause(code, text, remedy, line), facts._replace(start=raised)


def _require_hard(wanted: Requirement, facts: SessionFacts) -> Requirement:
    """Return the hard limit that a requirement needs; the policy may want it higher."""
    least, hard = wanted.minimum, facts.asked.hard if facts.asked else None
    if least is not None and hard is not None:
        least = max(least, hard)
    return wanted._replace(bound="hard", minimum=least)


def _describe_refusal(item: str, facts: SessionFacts) -> str:
    """Say what becomes of a session for which the kernel refuses a limit."""
    if facts.ends:
        return "and PAM then refuses the login"
    return f"and the session keeps {format_pair(item, facts.last_start.inherited[item])}"


def _blame_capability(
    item: str, asked: Rlimit, resolution: Resolution, facts: SessionFacts
) -> tuple[Cause, SessionFacts]:
    """Blame that nobody here may raise a hard limit, whatever the files say."""
    bound = resolution.bounds.get((item, "hard"))
    who = cite(bound.winner) if bound else "what process 1 has"
    text = (
        f"{who} is above the hard limit, which nobody without CAP_SYS_RESOURCE may raise: the"
        f" kernel refuses it, {_describe_refusal(item, facts)}"
    )
    pair = ":".join(str(-1 if value >= UNLIMITED else value) for value in asked)
    remedy = Remedy(
        f"start the container with --ulimit {item}={pair}, or with --cap-add SYS_RESOURCE; where"
        " there is no container, let the service that opens the session keep CAP_SYS_RESOURCE"
    )
    raised = facts.start._replace(may_raise=True)
    at = bound.winner if bound else None
    return Cause("pam-may-not-raise", text, remedy, at), facts._replace(start=raised)


def _blame_winner(
    wanted: Requirement, bound: Bound, facts: SessionFacts
) -> tuple[Cause, SessionFacts]:
    """Blame the line that counts, which does not state enough."""
    line = bound.winner
    rivals = tuple(one for one in bound.shadowed if wanted.is_met_by(int(one.value)))
    if not rivals:
        low = wanted.minimum is not None and int(line.value) < wanted.minimum
        text = f"{cite(line)} states too {'little' if low else 'much'}"
        code = "pam-stated-too-low" if low else "pam-stated-too-high"
        return _restate(code, text, wanted, line, facts)
    best = rivals[-1]
    ranks = [_rank(one, facts) for one in (line, best)]
    names = [_RANKS[rank] for rank in ranks]
    verb = "is read after and beats" if ranks[0] == ranks[1] else "beats"
    text = f"{cite(line)} ({names[0]}) {verb} {cite(best)} ({names[1]})"
    remedy = comment_out(line, _RELOGIN, "provision with override")
    return Cause(_code(line, best, ranks), text, remedy, line, rivals), _without(line, facts)


def _code(line: Declaration, rival: Declaration, ranks: list[int]) -> str:
    if ranks[0] != ranks[1]:
        return f"pam-{_RANKS[ranks[0]]}-beats-{_RANKS[ranks[1]]}"
    if line.path != rival.path:
        return "pam-later-file-wins"
    dashes = [one.text.split()[1] == "-" for one in (line, rival)]
    return "pam-dash-wins" if dashes == [True, False] else "pam-later-line-wins"


def _rank(line: Declaration, facts: SessionFacts) -> int:
    return rank_domain(_find_line(line, facts).domain, facts.user, facts.dialect) or 0


def _blame_clamp(
    wanted: Requirement, bound: Bound, hard: Bound | None, facts: SessionFacts
) -> tuple[Cause, SessionFacts] | None:
    """Blame the hard limit that takes a good soft one down with it."""
    if hard is None:
        base = find_baseline(wanted.item, facts.last_start)
        text = (
            f"{cite(bound.winner)} does not raise the hard limit,"
            f" {format_quantity(base.hard, ITEMS[wanted.item].unit)}, and stays below it"
        )
        return _state("pam-soft-alone", text, _require_hard(wanted, facts), facts, bound.winner)
    line = hard.winner
    text = f"{cite(line)} takes the soft limit of {cite(bound.winner)} down with it"
    rivals = tuple(one for one in hard.shadowed if wanted.is_met_by(int(one.value)))
    if rivals:
        ranks = [_rank(one, facts) for one in (line, rivals[-1])]
        verb = "is read after" if ranks[0] == ranks[1] else "beats"
        names = [_RANKS[rank] for rank in ranks]
        text += f": it ({names[0]}) {verb} {cite(rivals[-1])} ({names[1]})"
        remedy = comment_out(line, _RELOGIN, "provision with override")
        cause = Cause("pam-hard-clamps-soft", text, remedy, line, rivals)
        return cause, _without(line, facts)
    return _restate("pam-hard-clamps-soft", text, _require_hard(wanted, facts), line, facts)


def _blame_silence(wanted: Requirement, facts: SessionFacts) -> tuple[Cause, SessionFacts] | None:
    """Blame what keeps a limit unstated: a line of others, a file not read, or nobody's word."""
    for entry in facts.unread:
        if _would_do(wanted, entry.line, facts):
            return _blame_unread(entry, facts)
    dash = _find_lost_dash(wanted, facts)
    if dash:
        return _blame_dash(dash, facts)
    everyone = facts._replace(dialect=facts.dialect._replace(wildcard_root=True))
    for line in facts.lines if facts.user.uid == 0 else ():
        if _would_do(wanted, line, everyone):
            at = declare(line, line.fields[-1])
            text = f"{cite(at)} does not cover root on this distribution"
            return _state("pam-root-not-covered", text, wanted, facts, at)
    pair = find_baseline(wanted.item, facts.last_start)
    same = format_quantity(pair.soft, ITEMS[wanted.item].unit)
    base = same if pair.soft == pair.hard else format_pair(wanted.item, pair)
    bound = "" if _is_free(wanted, facts) else f" {wanted.bound}"
    text = f"no limits file states {wanted.item}{bound}: a session starts with {base}"
    return _state("pam-not-stated", text, wanted, facts, None)


def _is_free(wanted: Requirement, facts: SessionFacts) -> bool:
    """Tell whether neither bound of a limit is stated."""
    bounds = facts.resolution.bounds
    return not any((wanted.item, bound) in bounds for bound in ("soft", "hard"))


def _blame_unread(entry: Unread, facts: SessionFacts) -> tuple[Cause, SessionFacts]:
    at = declare(entry.line, entry.line.fields[-1])
    text = f"{cite(at)} has no effect: {entry.reason}"
    others = tuple(one for one in facts.unread if one != entry)
    if entry.instead:
        cause = Cause("pam-line-skipped", text, replace_line(at, entry.instead, _RELOGIN), at)
        added = parse_limits_conf(entry.instead, at.path)
    else:
        folder = at.path.rpartition("/")[0]
        command = ("mv", "-nT", at.path, f"{folder}/{entry.name}")
        remedy = Remedy(f"rename the file to {entry.name}", (command,), _RELOGIN)
        cause = Cause("pam-file-not-read", text, remedy, at)
        added = [one.line for one in facts.unread if one.line.path == at.path]
        others = tuple(one for one in others if one.line.path != at.path)
    return cause, facts._replace(lines=(*facts.lines, *added), unread=others)


def _find_lost_dash(wanted: Requirement, facts: SessionFacts) -> LimitsLine | None:
    """Return a '-' line whose hard half is lost, since its soft half was."""
    if wanted.bound != "hard":
        return None
    dashes = (line for line in facts.lines if len(line.types) == 2)
    return next((line for line in dashes if _would_do(wanted, line, facts)), None)


def _blame_dash(dash: LimitsLine, facts: SessionFacts) -> tuple[Cause, SessionFacts]:
    at = declare(dash, dash.fields[-1])
    text = f"{cite(at)} loses its hard half with its soft half to a line before it"
    fields = (dash.fields[0], "hard", *dash.fields[2:])
    added = " ".join(fields)
    remedy = Remedy(f'add "{added}" below it', edit_line(at, f"a\\{added}"), _RELOGIN)
    lines = (*facts.lines, dash._replace(fields=fields))
    return Cause("pam-dash-loses-hard", text, remedy, at), facts._replace(lines=lines)


def _would_do(wanted: Requirement, line: LimitsLine, facts: SessionFacts) -> bool:
    """Tell whether a line alone would state enough for the user."""
    if line.item != wanted.item or wanted.bound not in line.types:
        return False
    if rank_domain(line.domain, facts.user, facts.dialect) is None:
        return False
    value = parse_value(line.item, line.fields[3], facts.start.nr_open)
    return value is not None and wanted.is_met_by(value)


def _state(
    code: str, text: str, wanted: Requirement, facts: SessionFacts, at: Declaration | None
) -> tuple[Cause, SessionFacts]:
    """Blame that nothing is stated; the remedy states it for whom the policy asks it."""
    covers = facts.domain and rank_domain(facts.domain, facts.user, facts.dialect) is not None
    line = _write(facts.domain if covers else facts.user.name, wanted)
    if facts.asked and facts.asked.soft == facts.asked.hard and _is_free(wanted, facts):
        line = line.replace(f" {wanted.bound} ", " - ")  # One line states both.
    added = [
        one._replace(path="", line=-len(facts.lines)) for one in parse_limits_conf(line, _SITE_FILE)
    ]
    cause = Cause(code, text, append_line(_SITE_FILE, line, _RELOGIN, is_ended=True), at)
    return cause, facts._replace(lines=(*facts.lines, *added))


def _restate(
    code: str, text: str, wanted: Requirement, line: Declaration, facts: SessionFacts
) -> tuple[Cause, SessionFacts]:
    """Blame a line that nobody else would do better than; the remedy writes it right.

    One that states both bounds goes on to state both, or the other would be lost with it.
    """
    old = _find_line(line, facts)
    written = _write(old.domain, wanted)
    if len(old.types) == 2 and wanted.minimum is not None:
        needed = [wanted.minimum, *((facts.asked.soft, facts.asked.hard) if facts.asked else ())]
        most = max(value for value in needed if value is not None)
        written = _write(old.domain, wanted._replace(minimum=most))
        written = written.replace(f" {wanted.bound} ", " - ")
    (new,) = parse_limits_conf(written, line.path)
    lines = tuple(new._replace(line=one.line) if one == old else one for one in facts.lines)
    cause = Cause(code, text, replace_line(line, written, _RELOGIN), line)
    return cause, facts._replace(lines=lines)


def _write(domain: str, wanted: Requirement) -> str:
    """Return the line that states what is required."""
    value = wanted.maximum if wanted.minimum is None else wanted.minimum
    limit = Limit(soft=value) if wanted.bound == "soft" else Limit(hard=value)
    (line,) = format_limits(domain, {wanted.item: limit})
    return line


def _without(line: Declaration, facts: SessionFacts) -> SessionFacts:
    kept = tuple(one for one in facts.lines if (one.path, one.line) != (line.path, line.line))
    return facts._replace(lines=kept)


def _find_line(line: Declaration, facts: SessionFacts) -> LimitsLine:
    return next(one for one in facts.lines if (one.path, one.line) == (line.path, line.line))
