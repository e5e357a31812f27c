# SPDX-License-Identifier: BSD-2-Clause
"""Follow a plan in waves: which hosts come next, what each must go through, and when to stop."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from .core.values import NamedTuple
from .fleet_fixes import EDIT, REBOOT
from .fleet_plan import FORMAT, VERSION
from .fleet_waves import SHARES

WAVES = 1 + len(SHARES)
NOBODY = ("!all",)
"""A pattern that matches no host, and of which Ansible does not complain."""
_OF_PATTERNS = set("*?[]~!&,")
_SHOWN = 5


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
    :raises ValueError: If it is no such document, or has hosts that are not known.
    """
    stated = plan if isinstance(plan, dict) else {}
    if stated.get("format") != FORMAT or stated.get("version") != VERSION:
        raise ValueError(f"is not what `mlhost-limits plan --json` prints, version {VERSION}")
    try:
        waves = [_read_wave(wave, done) for wave in stated["waves"]]
        named = [str(name) for wave in stated["waves"] for one in wave["batches"] for name in one]
        if len(set(named)) < len(named) or not isinstance(stated["written"], str):
            raise ValueError
        fixes = stated["fixes"]
        _list_hosts(fixes)  # None of them may be damaged.
        drains = _list_hosts(fix for fix in fixes if fix["drains"])
        reboots = _list_hosts(fix for fix in fixes if fix["cost"] == REBOOT)
        by_hand = tuple(str(fix["text"]) for fix in fixes if fix["kind"] == EDIT)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ValueError("is damaged: its waves or fixes are not as a plan has them") from None
    _refuse_strangers(named, known)
    if len(waves) > WAVES:
        raise ValueError(f"has {len(waves)} waves; at most {WAVES} are accepted")
    none = [NextWave("", NOBODY, (1,), 0)] * (WAVES - len(waves))
    through = tuple(name for name in dict.fromkeys(named) if name in done)
    return Rollout((*waves, *none), drains, reboots, by_hand, through)


def _read_wave(wave: Mapping[str, Any], done: Collection[str]) -> NextWave:
    if wave["most_failed"] < 0 or not all(isinstance(one, list) for one in wave["batches"]):
        raise ValueError
    batches = [[str(one) for one in batch if one not in done] for batch in wave["batches"]]
    batches = [batch for batch in batches if batch]
    hosts = tuple(name for batch in batches for name in batch)
    return NextWave(
        str(wave["name"]),
        hosts or NOBODY,
        tuple(map(len, batches)) or (1,),
        int(wave["most_failed"]),
    )


def _list_hosts(fixes: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(name) for fix in fixes for name in fix["hosts"]))


def _refuse_strangers(named: Sequence[str], known: Collection[str]) -> None:
    strangers = [name for name in named if name not in known or _OF_PATTERNS & set(name)]
    if strangers:
        shown = ", ".join(strangers[:_SHOWN]) + (", ..." if len(strangers) > _SHOWN else "")
        raise ValueError(
            f"has {len(strangers)} hosts that the inventory has not, or that Ansible would take for"
            f" patterns: {shown}"
        )


def find_stop(wave: NextWave, red: Collection[str]) -> str:
    """Return why a wave ends here, or nothing.

    :param red: Those of its hosts that failed, or that nobody reached, so far.
    """
    if len(red) <= wave.most_failed:
        return ""
    shown = ", ".join(sorted(red)[:_SHOWN]) + (", ..." if len(red) > _SHOWN else "")
    return (
        f"{len(red)} of wave {wave.name} did not become green ({shown}), and {wave.most_failed}"
        " may: the rollout stops. The same command goes on with what is left"
    )
