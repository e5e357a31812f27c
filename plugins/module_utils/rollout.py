# SPDX-License-Identifier: BSD-2-Clause
"""Follow a plan in waves: which hosts come next, what each must go through, and when to stop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from .core.quote import one_line, quote
from .core.reader import PolicyError, name_kind
from .core.values import NamedTuple
from .fleet_fixes import EDIT, REBOOT
from .fleet_plan import FORMAT, VERSION
from .fleet_waves import SHARES
from .rollout_nodes import is_address

WAVES = 1 + len(SHARES)
NOBODY = ("!all",)
"""A pattern that matches no host, and of which Ansible does not complain."""
_OF_PATTERNS = set("*?[]~!&,:")
_SHOWN, _LONGEST, _MOST_PROBLEMS = 5, 80, 20
_ACCEPTED = f"{FORMAT!r}, as `mlhost-limits plan --json` prints it, is accepted"


class NextWave(NamedTuple):
    """The hosts of a wave that are left, in order; ``serial`` has the sizes of its batches."""

    name: str
    hosts: tuple[str, ...]
    serial: tuple[int, ...]
    most_failed: int


class Rollout(NamedTuple):
    """What is left of a plan. ``by_hand`` holds what provision does not do, in words."""

    waves: tuple[NextWave, ...]
    drains: tuple[str, ...]
    reboots: tuple[str, ...]
    by_hand: tuple[str, ...]
    done: tuple[str, ...]


def read_rollout(plan: object, done: Collection[str], known: Collection[str]) -> Rollout:
    """Return what is left of a plan.

    :param plan: The document that the command ``plan --json`` prints.
    :param done: The hosts that are through.
    :param known: The hosts of the inventory: a plan is made of results, whose hosts name
        themselves, and none but these are gone to.
    :raises PolicyError: With all that is wrong: it is no such document, is damaged, or has hosts
        that are not known.
    """
    stated: dict[str, Any] = plan if isinstance(plan, dict) else {}
    if stated.get("format") != FORMAT:
        raise PolicyError([f"format: {quote(stated.get('format'))} was given; {_ACCEPTED}"])
    if stated.get("version") != VERSION:
        told = f"{quote(stated.get('version'))} was given; {VERSION} is accepted"
        raise PolicyError([f"version: {told}; make the plan with this release of mlhost.limits"])
    problems = [*find_misshapes(stated)]
    if not problems:
        problems = list(_find_strangers(stated["waves"], known))
    if len(problems) > _MOST_PROBLEMS:
        more = f"and {len(problems) - _MOST_PROBLEMS} more"
        problems = [*problems[:_MOST_PROBLEMS], more]
    if problems:
        raise PolicyError(problems)
    fixes = stated["fixes"]
    named = [name for wave in stated["waves"] for batch in wave["batches"] for name in batch]
    waves = [_read_wave(wave, done) for wave in stated["waves"]]
    none = [NextWave("", NOBODY, (1,), 0)] * (WAVES - len(waves))
    return Rollout(
        (*waves, *none),
        _list_hosts(fix for fix in fixes if fix["drains"]),
        _list_hosts(fix for fix in fixes if fix["cost"] == REBOOT),
        tuple(one_line(fix["text"]) for fix in fixes if fix["kind"] == EDIT),
        tuple(name for name in named if name in done),
    )


def find_misshapes(plan: Mapping[str, Any]) -> Iterator[str]:
    """Yield what of a plan is not as the command writes it, each with its key path."""
    if not isinstance(plan.get("written"), str):
        yield f"written: {quote(plan.get('written'))} was given; a time is accepted"
    for name, look in (("fixes", _look_at_fix), ("waves", _look_at_wave)):
        entries = plan.get(name)
        if not isinstance(entries, list):
            yield f"{name}: {name_kind(entries)} was given; a list of mappings is accepted"
            continue
        for index, entry in enumerate(entries):
            path = f"{name}[{index}]"
            if isinstance(entry, dict):
                yield from look(path, entry)
            else:
                yield f"{path}: {name_kind(entry)} was given; a mapping is accepted"
    count = len(plan["waves"]) if isinstance(plan.get("waves"), list) else 0
    if count > WAVES:
        yield f"waves: {count} were given; at most {WAVES} are accepted"


def _look_at_fix(path: str, fix: Mapping[str, Any]) -> Iterator[str]:
    for key in ("kind", "text", "cost"):
        if not isinstance(fix.get(key), str):
            yield f"{path}.{key}: {name_kind(fix.get(key))} was given; a text is accepted"
    if not isinstance(fix.get("drains"), bool):
        yield f"{path}.drains: {quote(fix.get('drains'))} was given; true or false is accepted"
    yield from _look_at_names(f"{path}.hosts", fix.get("hosts"))


def _look_at_wave(path: str, wave: Mapping[str, Any]) -> Iterator[str]:
    most, batches = wave.get("most_failed"), wave.get("batches")
    if not isinstance(wave.get("name"), str):
        yield f"{path}.name: {name_kind(wave.get('name'))} was given; a text is accepted"
    if isinstance(most, bool) or not isinstance(most, int) or most < 0:
        yield f"{path}.most_failed: {quote(most)} was given; a number of hosts is accepted"
    if not isinstance(batches, list) or not batches:
        kind = "an empty list" if batches == [] else name_kind(batches)
        yield f"{path}.batches: {kind} was given; a list of batches of hosts is accepted"
        return
    for index, batch in enumerate(batches):
        yield from _look_at_names(f"{path}.batches[{index}]", batch)


def _look_at_names(path: str, names: object) -> Iterator[str]:
    is_right = isinstance(names, list) and names and all(isinstance(one, str) for one in names)
    if not is_right:
        kind = "an empty list" if names == [] else name_kind(names)
        kind = "a list with what is not a text" if isinstance(names, list) and names else kind
        yield f"{path}: {kind} was given; a list of names of hosts is accepted"


def _find_strangers(waves: Sequence[Mapping[str, Any]], known: Collection[str]) -> Iterator[str]:
    """Yield what is wrong with the hosts: each of them is in the inventory, and once in a plan."""
    count = Counter(name for wave in waves for batch in wave["batches"] for name in batch)
    strangers = [name for name in count if name not in known]
    patterns = [name for name in count if name in known and _is_pattern(name)]
    twice = [name for name, number in count.items() if number > 1]
    for names, told in (
        (strangers, "that the inventory has not; those of the inventory are accepted"),
        (patterns, "that Ansible takes for patterns; names of single hosts are accepted"),
        (twice, "more than once; each host once is accepted"),
    ):
        if names:
            hosts = "1 host" if len(names) == 1 else f"{len(names)} hosts"
            yield f"waves: {_show(names)}: {hosts} {told}"


def _is_pattern(name: str) -> bool:
    """Tell whether Ansible may find other hosts by it; colons separate names but in an address."""
    return bool(_OF_PATTERNS & set(name)) and not is_address(name)


def _show(names: Sequence[str], mark: str = ", ") -> str:
    shown = mark.join(one_line(name)[:_LONGEST] for name in names[:_SHOWN])
    return shown + (f"{mark}..." if len(names) > _SHOWN else "")


def _read_wave(wave: Mapping[str, Any], done: Collection[str]) -> NextWave:
    batches = [[one for one in batch if one not in done] for batch in wave["batches"]]
    batches = [batch for batch in batches if batch]
    hosts = tuple(name for batch in batches for name in batch)
    return NextWave(
        one_line(wave["name"])[:_LONGEST],
        hosts or NOBODY,
        tuple(map(len, batches)) or (1,),
        wave["most_failed"],
    )


def _list_hosts(fixes: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for fix in fixes for name in fix["hosts"]))


def find_stop(wave: NextWave, red: Collection[str]) -> str:
    """Return why a wave ends here, or nothing.

    :param red: Those of its hosts that failed, or that nobody reached, so far.
    """
    if len(red) <= wave.most_failed:
        return ""
    return (
        f"{len(red)} of wave {wave.name} did not become green ({_show(sorted(red))}), and"
        f" {wave.most_failed}"
        " may: the rollout stops. The same command goes on with what is left"
    )


def find_edits(rollout: Rollout) -> str:
    """Return why a plan is not followed whose edits nobody is said to make, or nothing."""
    if not rollout.by_hand:
        return ""
    count = len(rollout.by_hand)
    return (
        f"the plan has {count} edit{'s' if count > 1 else ''} of lines that are not ours"
        f" ({_show(rollout.by_hand, '; ')}); it is followed with mlhost_limits_by_hand=true where"
        " somebody has made them, or with mlhost_limits_override=true, and provision makes them"
    )


def count_left(rollout: Rollout) -> int:
    """Return how many hosts are not through."""
    return sum(len(wave.hosts) for wave in rollout.waves if wave.hosts != NOBODY)


def tell_progress(rollout: Rollout) -> str:
    """Return how far a plan has come, and what comes next."""
    left, done = count_left(rollout), len(rollout.done)
    if not left:
        through = f"all {done} hosts of the plan are" if done > 1 else "the host of the plan is"
        return f"{through} through: nothing is left" if done else "the plan has no hosts"
    wave = next(wave for wave in rollout.waves if wave.hosts != NOBODY)
    count = f"{len(wave.hosts)} host{'s' if len(wave.hosts) > 1 else ''}"
    return f"{done} of {done + left} hosts are through; next: wave {wave.name}, {count}"
