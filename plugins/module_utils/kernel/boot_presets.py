# SPDX-License-Identifier: BSD-2-Clause
"""Find which units the first boot of an image enables, by systemd.preset(5) and their [Install].

Sources: machine-id(5), "First boot semantics"; ``unit_file_query_preset()`` and
``unit_file_preset_all()`` of systemd, which a first boot calls to enable and never to disable.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from ..core.values import NamedTuple
from .boot_units import merge, parse_unit

_UNINITIALIZED = "uninitialized"
_OWNERS = ("WantedBy", "RequiredBy", "UpheldBy")


class Rule(NamedTuple):
    """A line of systemd.preset(5): which units it is about, and the instances it enables."""

    enables: bool
    pattern: str
    instances: tuple[str, ...] = ()


def is_first_boot(machine_id: str | None) -> bool:
    """Tell whether the next boot is the first one: an empty file says that it is not.

    :param machine_id: The text of /etc/machine-id.
    """
    return machine_id is None or machine_id.strip() == _UNINITIALIZED


def parse_presets(texts: Iterable[str]) -> list[Rule]:
    """Return the rules of files in their order, of which the first that matches counts."""
    rows = (line.split() for text in texts for line in text.split("\n"))
    return [
        Rule(words[0] == "enable", words[1], tuple(words[2:]))
        for words in rows
        if len(words) > 1 and words[0] in ("enable", "disable", "ignore")
    ]


def find_preset_starts(
    units: Mapping[str, str], rules: Iterable[Rule]
) -> dict[str, set[tuple[str, bool]]]:
    """Return the units that presets have others start, each as one that may be started.

    :param units: The text of each unit that is there, by its name.
    """
    rules = list(rules)
    found: dict[str, set[tuple[str, bool]]] = defaultdict(set)
    waiting = [one for unit in units for one in _list_enabled(unit, rules)]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        settings = [] if name in seen else _find_install(name, units)
        seen.add(name)
        lists = {key: values.split() for key, values in settings}
        name = _give_instance(name, lists.get("DefaultInstance", []))
        for owner in (one for key in _OWNERS for one in lists.get(key, ())):
            found[owner].add((name, False))
        for alias in lists.get("Alias", ()):
            found[alias].add((name, False))
        waiting += lists.get("Also", ())
    return dict(found)


def _list_enabled(unit: str, rules: Iterable[Rule]) -> list[str]:
    """Return a unit that presets enable, or its instances; without a rule it is enabled."""
    rule = next((one for one in rules if fnmatchcase(unit, one.pattern)), Rule(True, unit))
    if not rule.enables:
        return []
    if not rule.instances or "@." not in unit:
        return [unit]
    return [unit.replace("@.", f"@{one}.") for one in rule.instances]


def _find_install(name: str, units: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return what the section [Install] of a unit says, its lists joined."""
    stem, at, instance = name.partition("@")
    text = units.get(name) or units.get(f"{stem}@.{instance.rpartition('.')[2]}" if at else "", "")
    settings = [one for one in parse_unit("", text) if one.section == "Install"]
    names = dict.fromkeys(one.name for one in settings)
    return [(key, " ".join(one.value for one in merge(settings, key))) for key in names]


def _give_instance(name: str, default: list[str]) -> str:
    return name.replace("@.", f"@{default[0]}.") if default else name
