# SPDX-License-Identifier: BSD-2-Clause
"""Say why a service gets less at its next start than a policy asks, and what puts it right.

What somebody meant is restored in thought, by as few changes as possible; if no line states enough,
the line that counts is rewritten. Each change is a cause.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from ..core.cause import Cause, Remedy, cite
from ..core.reader import Limit
from ..core.values import UNLIMITED, Declaration
from .edits import Repair, is_ours, move, remove, rewrite, silence, state
from .limits import SECTIONS, Statement, read_manager_limits, read_unit_limits
from .model import UnitFacts, find_asked, rank_statements, read_unit
from .nr_open import fit_nr_open
from .unit_file import Source, scan_unit
from .unread import Slip, find_slips, format_limit, leave_out_beaten
from .want import Asked, declare, find_target, is_default, is_enough, write_limit

CODES = {
    "unit-not-stated": "no file states the limit, and systemd's default is too low",
    "unit-stated-too-low": "the unit states too little, and nothing else states enough",
    "unit-stated-too-high": "the unit states more than the policy allows",
    "unit-manager-too-low": "the manager's default is too low, and the unit states nothing",
    "unit-manager-later-wins": "of two manager defaults, that of the file read later counts",
    "unit-beats-manager": "what a unit states counts, over a manager's default that is enough",
    "unit-later-line-wins": "of two lines in one file, the last counts",
    "unit-dropin-beats-unit": "a drop-in beats the unit's own file",
    "unit-dropin-beats-dropin": "of two drop-ins, the one whose name sorts later counts",
    "unit-wide-dropin-wins": "a drop-in for many units beats what is stated for this one",
    "unit-line-ignored": "systemd cannot read the value of a line, and ignores it",
    "unit-line-misplaced": "a line stands in the wrong section, and is ignored",
    "unit-line-misspelled": "systemd does not know the key of a line, and ignores it",
    "unit-line-commented-out": "the line that states enough is commented out, and no other does",
    "unit-reading-ends": "a line is not valid, and systemd stops reading that file there",
    "unit-not-loaded": "a line of the unit's file is not valid, and the unit is not loaded",
    "unit-dropin-hidden": "a drop-in is hidden by one of the same name in a stronger directory",
    "unit-file-hidden": "the unit's file is hidden by another in a stronger directory",
    "unit-dropin-not-read": "systemd does not read a drop-in, because of its name or directory",
}

_DEEPEST = 3  # Changes tried together before the line that counts is written anew.
_MOST = 12  # Changes tried at each step: a file may hold any number of lines.


def find_unit_causes(item: str, limit: Limit, facts: UnitFacts) -> list[Cause]:
    """Return everything that must change in files and in the kernel, what comes first first.

    There is nothing where the next start is predicted to meet the policy. What PAM makes of the
    limits is left out.
    """
    wanted = Asked(item, limit)
    facts = facts._replace(pam=None, files=leave_out_beaten(facts.files))
    repairs: list[Repair] = []
    for step in (_load, _ask_enough, fit_nr_open):
        repairs += step(wanted, repairs[-1].facts if repairs else facts)
    return [repair.cause for repair in repairs]


def _load(_wanted: Asked, facts: UnitFacts) -> list[Repair]:
    """Make a unit file readable that is not loaded as it is."""
    done: list[Repair] = []
    while read_unit(facts).refused and facts.files.main:
        done.append(next(_mend_faults([facts.files.main], facts, "unit-not-loaded")))
        facts = done[-1].facts
    return done


def _ask_enough(wanted: Asked, facts: UnitFacts) -> list[Repair]:
    """Make the files ask for enough, by as few changes as do."""
    for depth in range(_DEEPEST + 1):
        found = _search(wanted, facts, depth)
        if found is not None:
            return found
    return [_restate(wanted, facts)]


def _search(wanted: Asked, facts: UnitFacts, depth: int) -> list[Repair] | None:
    """Return that many changes after which the files ask for enough, or nothing."""
    if is_enough(wanted.limit, find_asked(wanted.item, facts)):
        return []
    for repair in islice(_list_repairs(wanted, facts), _MOST) if depth else ():
        rest = _search(wanted, repair.facts, depth - 1)
        if rest is not None:
            return [repair, *rest]
    return None


def _list_repairs(wanted: Asked, facts: UnitFacts) -> Iterator[Repair]:
    """Yield what restores a line that somebody meant, the surest first."""
    files = facts.files
    sources = [*files.dropins, *filter(None, [files.manager]), *files.manager_dropins]
    mendable = [slip for slip in _list_mendable(wanted, facts) if slip.instead]
    hopeful = [slip for slip in mendable if slip.code == "unit-line-commented-out"]
    yield from (_mend(slip, facts) for slip in mendable if slip not in hopeful)
    yield from _mend_faults([one for one in sources if is_ours(one.path)], facts)
    yield from _unhide(wanted, facts)
    yield from _take_in(facts)
    yield from _silence_winner(wanted, facts)
    yield from (_mend(slip, facts) for slip in hopeful)


def _list_mendable(wanted: Asked, facts: UnitFacts) -> list[Slip]:
    """Return the lines that somebody meant; a comment of a package is not one."""
    return [
        slip
        for slip in list_slips(facts)
        if slip.item == wanted.item
        and (slip.code != "unit-line-commented-out" or is_ours(slip.at.path))
    ]


def list_slips(facts: UnitFacts) -> Iterator[Slip]:
    """Yield the lines of the unit and of the manager that were meant to state a limit."""
    files, section = facts.files, SECTIONS.get(facts.name.rpartition(".")[2], "")
    for source in (*filter(None, [files.main]), *files.dropins):
        yield from find_slips(source, section)
    for source in (*filter(None, [files.manager]), *files.manager_dropins):
        yield from find_slips(source, "Manager", "Default")


def _mend(slip: Slip, facts: UnitFacts) -> Repair:
    """Write a line as it was meant; one that is astray or not ours goes to a drop-in of ours."""
    text = f"{cite(slip.at)} has no effect: {slip.reason}"
    bare = slip.instead[slip.instead.startswith("Default") * len("Default") :]
    if not is_ours(slip.at.path):
        remedy, after = state(bare, facts)
    elif slip.header:
        header = slip.at._replace(line=slip.header)
        remedy, after = rewrite(header, f"[{slip.belongs}]", facts)
        remedy = remedy._replace(text=f"make line {slip.header} [{slip.belongs}]")
    elif slip.belongs:
        first, after = silence(slip.at, facts)
        second, after = state(bare, after)
        remedy = second._replace(commands=(*first.commands, *second.commands))
    else:
        remedy, after = rewrite(slip.at, slip.instead, facts)
    return Repair(Cause(slip.code, text, remedy, slip.at), after)


def _mend_faults(
    sources: Iterable[Source], facts: UnitFacts, code: str = "unit-reading-ends"
) -> Iterator[Repair]:
    """Yield each line at which systemd gives up, made a header again or taken out."""
    for source in sources:
        fault = scan_unit(source.text, source.path).fault
        if fault is None:
            continue
        at = Declaration(fault.path, fault.line, fault.key, fault.value)
        text = f"{cite(at)} {fault.value}, so that systemd reads no further"
        header = re.match(r"\[ *([A-Za-z]+)", fault.key)
        if header:
            remedy, after = rewrite(at, f"[{header[1]}]", facts)
        else:
            remedy, after = silence(at, facts)
        if not is_ours(at.path):
            remedy = Remedy("install the package that owns the file again")
        yield Repair(Cause(code, text, remedy, at), after)


def _unhide(wanted: Asked, facts: UnitFacts) -> Iterator[Repair]:
    """Yield drop-ins and unit files that one of the same name hides."""
    files = facts.files
    for sources in (files.dropins, files.manager_dropins):
        first: dict[str, Source] = {}
        for source in sources:
            hider = first.setdefault(source.path.rpartition("/")[2], source)
            if hider.text != source.text:
                yield from _show(wanted, facts, hider, source)
    for source in files.others:
        if files.main and files.main.text != source.text:
            yield from _show(wanted, facts, files.main, source)


def _show(wanted: Asked, facts: UnitFacts, hider: Source, hidden: Source) -> Iterator[Repair]:
    """Yield how a hidden file that states enough comes to count."""
    line = _read_alone(wanted, facts, hidden)
    if line is None:
        return
    text = f"{hider.path} hides {cite(line)}"
    main = hider == facts.files.main
    if main or scan_unit(hider.text, hider.path).settings:
        stated = line.text[line.text.startswith("Default") * len("Default") :]
        remedy, after = state(stated, facts)
    else:
        remedy, after = remove(hider.path, facts)
    code = "unit-file-hidden" if main else "unit-dropin-hidden"
    at = Declaration(hider.path, 0, "", "")
    yield Repair(Cause(code, text, remedy, at, (line,)), after)


def _read_alone(wanted: Asked, facts: UnitFacts, hidden: Source) -> Declaration | None:
    """Return the line of a hidden file that states enough, if it has one."""
    if hidden in facts.files.manager_dropins:
        reading = read_manager_limits(None, [hidden])
    else:
        reading = read_unit_limits(facts.name.rpartition(".")[2], hidden, [])
    stated = [one for one in reading.statements if one.item == wanted.item]
    if stated and is_enough(wanted.limit, stated[-1].limit):
        return declare(stated[-1])
    return None


def _take_in(facts: UnitFacts) -> Iterator[Repair]:
    """Yield files that systemd would read under another name."""
    for stray in facts.files.strays:
        remedy, after = move(stray.source, stray.path, facts)
        at = Declaration(stray.source.path, 0, "", "")
        text = f"systemd does not read {stray.source.path}: {stray.reason}"
        yield Repair(Cause("unit-dropin-not-read", text, remedy, at), after)


def _silence_winner(wanted: Asked, facts: UnitFacts) -> Iterator[Repair]:
    """Yield the line that counts, taken out so that another counts."""
    ranked = rank_statements(wanted.item, facts)
    if ranked and is_ours(ranked[-1].setting.path):
        at = declare(ranked[-1])
        remedy, after = silence(at, facts)
        yield Repair(_blame(wanted, ranked, facts, remedy), after)


def _blame(wanted: Asked, ranked: list[Statement], facts: UnitFacts, remedy: Remedy) -> Cause:
    """Name the line that counts, with those that state enough and lose to it."""
    winner = ranked[-1]
    at = declare(winner)
    rivals = [one for one in ranked[:-1] if is_enough(wanted.limit, one.limit)]
    shadows = tuple(declare(one) for one in rivals)
    if rivals:
        code, text = _code(winner, rivals[-1], facts), f"{cite(at)} beats {cite(shadows[-1])}"
    else:
        much = winner.limit.hard > (wanted.limit.max or UNLIMITED)
        text = f"{cite(at)} states too {'much' if much else 'little'}"
        code = "unit-stated-too-high" if much else "unit-stated-too-low"
        if is_default(winner) and not much:
            code = "unit-manager-too-low"
            text += "" if facts.defaults_of else f", and {facts.name} states nothing"
    return Cause(code, text, remedy, at, shadows)


def _code(winner: Statement, rival: Statement, facts: UnitFacts) -> str:
    """Return why one line counts and the other does not."""
    path, other = winner.setting.path, rival.setting.path
    if is_default(winner):
        return "unit-manager-later-wins"
    if is_default(rival):
        return "unit-beats-manager"
    if path == other:
        return "unit-later-line-wins"
    folder = path.rpartition("/")[0].rpartition("/")[2]
    if folder != f"{facts.name}.d":
        return "unit-wide-dropin-wins"
    main = facts.files.main
    own = main is not None and other == main.path
    return "unit-dropin-beats-unit" if own else "unit-dropin-beats-dropin"


def _restate(wanted: Asked, facts: UnitFacts) -> Repair:
    """Write what is asked for where it counts, or would if systemd could read the line there."""
    ranked = rank_statements(wanted.item, facts)
    target = find_target(wanted.limit, find_asked(wanted.item, facts))
    text = f"Limit{wanted.item.upper()}={format_limit(wanted.item, target)}"
    for slip in reversed(_list_mendable(wanted, facts)):
        repair = _rewrite_slip(slip, text, wanted, facts)
        if repair:
            return repair
    remedy, after = write_limit(text, ranked, facts)
    if ranked:
        return Repair(_blame(wanted, ranked, facts, remedy), after)
    given = format_limit(wanted.item, facts.manager.defaults[wanted.item])
    why = f"no file states {wanted.item} for {facts.title}, and systemd's default is {given}"
    return Repair(Cause("unit-not-stated", why, remedy), after)


def _rewrite_slip(slip: Slip, text: str, wanted: Asked, facts: UnitFacts) -> Repair | None:
    """Write what is asked for over a line that does not count, where it would count there."""
    if slip.belongs or slip.code == "unit-line-commented-out" or not is_ours(slip.at.path):
        return None
    key = "Default" if slip.at.path.rpartition("/")[0].endswith((".conf.d", "/systemd")) else ""
    remedy, after = rewrite(slip.at, key + text, facts)
    winner = rank_statements(wanted.item, after)[-1].setting
    if (winner.path, winner.line) != (slip.at.path, slip.at.line):
        return None
    why = f"{cite(slip.at)} has no effect: {slip.reason}"
    return Repair(Cause(slip.code, why, remedy, slip.at), after)
