# SPDX-License-Identifier: BSD-2-Clause
"""The command ``plan``: from results alone, the cheapest fixes for so many hosts, in waves."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .audit_files import read_text
from .audit_results import Clock, read_clock, read_hosts, refuse_garbage
from .core.quote import one_line
from .core.reader import PolicyError
from .core.report import wrap
from .core.values import NamedTuple
from .fleet_choice import Choice, choose_fixes
from .fleet_commands import list_commands
from .fleet_fixes import COSTS, ENDS_WORK, REBOOT, Fix, gather_fixes
from .fleet_view import Fleet
from .fleet_waves import Wave, plan_waves

FORMAT, VERSION = "mlhost.limits/plan", 1
_DRAINS = (ENDS_WORK, REBOOT)
_WORDS = {
    "at once": "nothing",
    "anew": "a new session",
    "restart": "a restart of a service",
    "ends work": "a restart that ends work",
    "reboot": "a reboot",
}
_MOST_NAMED = 5
_PROVISION = "provision the host"


class RolloutPlan(NamedTuple):
    """What to do, on which hosts, and in which order; ``problems`` are those of the files.

    ``notes`` are for whoever reads the plan, and change nothing.
    """

    fleet: Fleet
    fixes: Sequence[Fix]
    lacking: Mapping[int, Collection[int]]
    choice: Choice
    waves: Sequence[Wave]
    written: str
    problems: Sequence[str]
    notes: Sequence[str] = ()

    @property
    def needy(self) -> int:
        """Return how many hosts fall short."""
        return len(self.lacking)

    def count_costs(self) -> dict[str, int]:
        """Return on how many hosts what must happen; of each counts the dearest."""
        found = Counter(self._cost(host) for host in self.choice.hosts)
        return {cost: found[cost] for cost in COSTS if found[cost]}

    def _cost(self, host: int) -> str:
        costs = (self.fixes[number].cost for number in self.lacking[host])
        return max(costs, key=lambda cost: COSTS[cost])

    def as_dict(self) -> dict[str, object]:
        """Return it as plain data."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "written": self.written,
            "hosts": {"all": len(self.fleet.rows), "short": self.needy},
            "green": len(self.choice.hosts),
            "weight": self.choice.weight,
            "least": self.choice.least,
            "costs": self.count_costs(),
            "fixes": list(self._describe_fixes()),
            "waves": [wave._asdict() for wave in self.waves],
            "problems": list(self.problems),
        }

    def _describe_fixes(self) -> Iterator[dict[str, Any]]:
        rows, taken = self.fleet.rows, set(self.choice.hosts)
        for number in self.choice.fixes:
            fix = self.fixes[number]
            hosts = [rows[host].host.name for host in fix.hosts if host in taken]
            yield {
                "kind": fix.kind,
                "text": str(fix.remedy.get("text", "")) or _PROVISION,
                "then": list(fix.then),
                "commands": [] if fix.varies else list_commands(fix.remedy.get("commands")),
                "cost": fix.cost,
                "drains": fix.cost in _DRAINS,
                "hosts": hosts,
            }

    @property
    def lines(self) -> list[str]:
        """Return it for people, at most 80 columns wide."""
        green, weight, least = len(self.choice.hosts), self.choice.weight, self.choice.least
        total = len(self.fleet.rows)
        told = [f"{self.needy} of {total} hosts fall short; {green} of them become green"]
        if not green:
            return told
        over = 100 * (weight - least) / least if least else 0.0
        told.append(f"weight {weight}, at most {over:.1f} % above the least that is possible")
        costs = [f"{_WORDS[cost]} on {count}" for cost, count in self.count_costs().items()]
        told += wrap(f"what it costs the hosts: {', '.join(costs)}")
        for number, fix in enumerate(self._describe_fixes(), 1):
            then = f"; then {', '.join(fix['then'])}" if fix["then"] else ""
            drain = "; drain it first" if fix["drains"] else ""
            told += [
                "",
                *wrap(f"{_count(fix['hosts'])}: {fix['text']}{then}{drain}", f"{number}  "),
            ]
            told += [f"     {one_line(command)}" for command in fix["commands"]]
        told.append("")
        for number, wave in enumerate(self.waves, 1):
            hosts = _count([one for batch in wave.batches for one in batch])
            batches = f"{len(wave.batches)} batch{'es' if len(wave.batches) > 1 else ''}"
            stop = f"stop if more than {wave.most_failed} stay red"
            told.append(f"wave {number}  {wave.name}: {hosts} in {batches}; {stop}")
        return told


def _count(hosts: Sequence[str]) -> str:
    return "1 host" if len(hosts) == 1 else f"{len(hosts)} hosts"


def make_plan(
    names: Sequence[str], green: str, at_once: int, groups: str | None, hours: float
) -> RolloutPlan:
    """Return the plan of some results.

    :param green: How many of the hosts that fall short shall become green: a number or a share.
    :param groups: A file with a host and a group in each line.
    :raises PolicyError: If no file is a result, or so many hosts cannot become green.
    """
    clock = read_clock(hours)
    told = read_groups(Path(groups)) if groups else {}
    fleet, problems = _read(names, clock)
    fixes, lacking, _never = gather_fixes(fleet)
    able = sum(-1 not in mine for mine in lacking.values())
    choice = choose_fixes(fixes, lacking, _count_wanted(green, able))
    rows = fleet.rows
    chosen = {rows[host].host.name: lacking[host] for host in choice.hosts}
    known = {rows[host].host.name: rows[host].host.groups for host in choice.hosts}
    waves = plan_waves(chosen, {**known, **told}, at_once)
    notes = list(_note_strangers(groups, told, fleet)) if groups else []
    return RolloutPlan(fleet, fixes, lacking, choice, waves, clock.now, problems, notes)


def _note_strangers(path: str, told: Iterable[str], fleet: Fleet) -> Iterator[str]:
    """Yield which names of a file are of no host, such as short ones where hosts have long ones."""
    known = {row.host.name for row in fleet.rows}
    strange = [name for name in told if name not in known]
    if strange:
        more = f" and {len(strange) - _MOST_NAMED} more" if len(strange) > _MOST_NAMED else ""
        names = ", ".join(strange[:_MOST_NAMED])
        yield f"--groups: {path} names {names}{more}, of which no result was given"


def _read(names: Sequence[str], clock: Clock) -> tuple[Fleet, list[str]]:
    fleet = Fleet()
    problems: list[str] = []
    for host in refuse_garbage(read_hosts(names, clock, problems), problems, "no plan was made"):
        fleet.add(host)
    return fleet, problems


def _count_wanted(green: str, able: int) -> int:
    """Return how many hosts shall become green.

    :raises PolicyError: If that is not a number or a share.
    """
    match = re.fullmatch(r"([0-9]{1,9})(%?)", green)
    if not match or (match[2] and int(match[1]) > 100):
        accepted = "a number of hosts, or a share such as 90%, is accepted"
        raise PolicyError([f"--green: {green!r} was given; {accepted}"])
    return -(-able * int(match[1]) // 100) if match[2] else int(match[1])


def read_groups(path: Path) -> dict[str, tuple[str, ...]]:
    """Return the groups of hosts: of each line the first word is a host and the second its group.

    :raises PolicyError: If a line is another, or the file cannot be read.
    """
    found: dict[str, dict[str, None]] = {}
    for number, line in enumerate(read_text(path).lstrip("\ufeff").splitlines(), 1):
        words = line.split()
        if not words:
            continue
        if len(words) != 2:
            told = "a host and its group, with a space between, are accepted"
            raise PolicyError([f"{path}:{number}: holds {len(words)} words; {told}"])
        found.setdefault(words[0], {})[words[1].rstrip("*")] = None
    return {host: tuple(mine) for host, mine in found.items()}
