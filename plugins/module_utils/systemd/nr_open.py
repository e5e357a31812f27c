# SPDX-License-Identifier: BSD-2-Clause
"""Bring together what a unit asks of nofile and fs.nr_open, above which the kernel refuses it.

Source: ``setrlimit_closest()`` of systemd, ``do_prlimit()`` of the kernel.
"""

from __future__ import annotations

from ..core.cause import Cause, cite
from ..core.reader import Limit
from ..core.values import Declaration, Rlimit
from ..kernel.raises import raise_nr_open
from ..kernel.sysctl_conf import LARGEST_NR_OPEN
from .edits import Repair
from .model import UnitFacts, find_asked, predict_unit, rank_statements
from .unread import format_limit
from .want import Asked, declare, find_target, is_enough, write_limit

CODES = {
    "unit-above-nr-open": "a nofile above fs.nr_open is cut to what systemd itself has",
    "unit-refused-by-nr-open": "fs.nr_open is so low that the service does not start",
}

_SYSCTL_FILE = "/etc/sysctl.d/95-site.conf"


def fit_nr_open(wanted: Asked, facts: UnitFacts) -> list[Repair]:
    """Raise fs.nr_open, then ask for no more than it: after both nothing is above it."""
    done: list[Repair] = []
    given = predict_unit(facts)
    while _is_above_nr_open(wanted, given, facts):
        limit = wanted.limit if wanted.item == "nofile" else Limit()
        done.append(_fit(limit, given, facts))
        facts = done[-1].facts
        given = predict_unit(facts)
    return done


def _is_above_nr_open(wanted: Asked, given: dict[str, Rlimit] | None, facts: UnitFacts) -> bool:
    """Tell whether a limit falls short because more is asked for than the kernel takes."""
    if given and (wanted.item != "nofile" or is_enough(wanted.limit, given["nofile"])):
        return False
    needed = max(wanted.limit.soft or 0, wanted.limit.hard or 0)
    possible = wanted.item != "nofile" or needed <= LARGEST_NR_OPEN
    above = find_asked("nofile", facts).hard > facts.manager.nr_open
    return above and possible and facts.manager.may_raise


def _fit(limit: Limit, given: dict[str, Rlimit] | None, facts: UnitFacts) -> Repair:
    """Bring what is asked for and fs.nr_open together."""
    ranked, nr_open = rank_statements("nofile", facts), facts.manager.nr_open
    asked = find_asked("nofile", facts)
    who = cite(declare(ranked[-1])) if ranked else f"systemd's default {_format(asked)}"
    code = "unit-above-nr-open" if given else "unit-refused-by-nr-open"
    gets = f"{facts.title} gets {_format(given['nofile'])}" if given else "the start fails"
    text = f"{who} asks for more than fs.nr_open, {nr_open}: {gets}"
    target = asked
    if asked.hard > LARGEST_NR_OPEN:  # All that there is, then, and what the policy needs.
        target = find_target(limit, Rlimit(min(asked.soft, nr_open), nr_open))
    if target.hard > nr_open:
        return _raise_nr_open(code, text, target.hard, facts)
    at = declare(ranked[-1])
    remedy, after = write_limit(f"LimitNOFILE={_format(target)}", ranked, facts)
    return Repair(Cause(code, text, remedy, at), after)


def _read(line: Declaration) -> int:
    """Return the number that a line gives; 0 where a script computes it."""
    return int(line.value) if str(line.value).isdigit() else 0


def _format(limit: Rlimit) -> str:
    return format_limit("nofile", limit)


def _raise_nr_open(code: str, text: str, value: int, facts: UnitFacts) -> Repair:
    """Raise fs.nr_open now and at boot, where the line that lowers it stands if there is one."""
    line = facts.nr_open_line
    at_boot = facts.nr_open_at_boot or (_read(line) if line else 0)
    ranked = rank_statements("nofile", facts)
    at = declare(ranked[-1]) if ranked else None
    if line and line.path.startswith("/etc/") and at_boot < value:
        at, text = line, f"{text}; {cite(line)} sets that"
    remedy = raise_nr_open(value, at_boot, line)
    raised = facts._replace(manager=facts.manager._replace(nr_open=value), nr_open_line=None)
    return Repair(Cause(code, text, remedy, at), raised)
