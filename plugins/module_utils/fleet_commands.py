# SPDX-License-Identifier: BSD-2-Clause
"""Write the command that carries a fix out on many hosts, with the hosts that it is limited to."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from shlex import quote

from .fleet_fixes import EDIT, Fix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .fleet_view import Fleet

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\Z|[0-9A-Fa-f]*:[0-9A-Fa-f:.]+\Z")
"""A name that means itself in ``--limit``; others could be a pattern, or a path."""
_TEMPLATE = re.compile(r"\{[{%#]")
_MOST = 50
HOSTS_FILE = "hosts.txt"
"""Where a person puts the names of more hosts than a command line should hold."""


def list_groups(fleet: Fleet, whole: Iterable[str]) -> dict[frozenset[int], str]:
    """Return groups of the inventory by their members, the shortest name where several are alike.

    :param whole: Groups all of whose hosts are in the fleet; another would take in more hosts.
    """
    members: dict[str, set[int]] = {}
    for index, row in enumerate(fleet.rows):
        for name in row.host.groups:
            members.setdefault(name, set()).add(index)
    found: dict[frozenset[int], str] = {}
    for name in sorted(members, key=lambda one: (-len(one), one)):
        if name in whole and _PLAIN_NAME.match(name):
            found[frozenset(members[name])] = name
    return found


def format_command(
    fleet: Fleet, fix: Fix, groups: Mapping[frozenset[int], str], inventory: Sequence[str] = ()
) -> str:
    """Return the command line of a fix, empty where there is none that all its hosts can run.

    :param groups: Groups by their members, as :func:`list_groups` gives them.
    :param inventory: What ``-i`` is given.
    """
    limit = limit_to(fleet, fix.hosts, groups)
    words = [*(word for source in inventory for word in ("-i", source)), "--limit", limit]
    if not limit:
        return ""
    if fix.kind != EDIT:
        return " ".join(["ansible-playbook mlhost.limits.provision", *map(quote, words)])
    script = join_commands(fix.remedy.get("commands"))
    if not script or _TEMPLATE.search(script) or fix.varies:
        return ""
    module = "--become -m ansible.builtin.shell -a"
    return (
        f"ansible all {' '.join(map(quote, words))} {module} {quote(json.dumps({'cmd': script}))}"
    )


def limit_to(fleet: Fleet, hosts: Iterable[int], groups: Mapping[frozenset[int], str]) -> str:
    """Return what ``--limit`` is given: a group, names, or a file of names where they are many.

    Empty where a name would mean something else there.
    """
    chosen = frozenset(hosts)
    if chosen in groups:
        return groups[chosen]
    names = [fleet.rows[index].host.name for index in sorted(chosen)]
    if not names or not all(map(_PLAIN_NAME.match, names)):
        return ""
    return ",".join(names) if len(names) <= _MOST else f"@{HOSTS_FILE}"


def join_commands(commands: object) -> str:
    """Return commands as one line for a shell, which ends at the first that fails."""
    lines = list_commands(commands)
    if any("\n" in line for line in lines):
        return ""
    return lines[0] if len(lines) == 1 else " && ".join(f"{{ {line}; }}" for line in lines)


def list_commands(commands: object) -> list[str]:
    """Return commands as they are typed into a shell.

    :param commands: As :meth:`Remedy.as_dict` gives them.
    """
    typed = []
    for command in commands if isinstance(commands, list) else []:
        words = list(map(str, command if isinstance(command, list) else [command]))
        is_script = words[:2] == ["sh", "-c"] and len(words) == 3
        typed.append(words[2] if is_script else " ".join(map(quote, words)))
    return typed
