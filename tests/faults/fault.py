# SPDX-License-Identifier: GPL-3.0-or-later
"""What a fault is: how it is made, what must be named for it, and where it must show.

Faults are written from the manuals of the systems they break, never from the causes of ours.
"""

from __future__ import annotations

import shlex
from typing import Any, NamedTuple

Policy = dict[str, Any]
LOGINS = ("sshd", "su", "sudo", "cron", "login")


class Culprit(NamedTuple):
    """What may be named for a fault.

    ``file`` is at fault, in the one line that holds ``line``; without a line, the file's name must
    be in the sentence. ``words`` is a pattern that the code or the sentence must match.
    """

    file: str = ""
    line: str = ""
    words: str = ""


class Fault(NamedTuple):
    """One thing wrong with a provisioned host.

    ``shows`` are patterns of ``PLACE ITEM BOUND``, each of some finding that falls short.
    ``policy`` is added to that of the base host. ``person`` is a script of what the remedy leaves to
    a person. Two faults can be made on one host where neither ``touches`` what the other touches or
    ``uses``; both are names of files or of states. ``extra`` names what the host has besides, as
    ``tests.host`` does, and how it is set up, see ``base``. ``through`` are the words of a
    program that runs the check, such as a connection that was kept open; such a fault is made alone.
    """

    name: str
    make: str
    culprits: tuple[Culprit, ...]
    shows: tuple[str, ...]
    policy: Policy = {}
    touches: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    person: str = ""
    extra: str = ""
    through: str = ""


def write(path: str, *lines: str) -> str:
    """Return the script that makes a file of these lines."""
    folder = shlex.quote(path.rpartition("/")[0])
    words = " ".join(map(shlex.quote, lines))
    return f"mkdir -p {folder}; printf '%s\\n' {words} > {shlex.quote(path)}"


def append(path: str, *lines: str) -> str:
    """Return the script that adds lines to a file."""
    return f"printf '%s\\n' {' '.join(map(shlex.quote, lines))} >> {shlex.quote(path)}"


def sed(script: str, path: str) -> str:
    """Return the script that edits a file, and fails where nothing was to edit."""
    quoted, name = shlex.quote(script), shlex.quote(path)
    edit = f"cp {name} /run/before; sed -i {quoted} {name}"
    return f"{edit}; if cmp -s {name} /run/before; then exit 9; fi"


def session(item: str, *services: str, user: str = "alice", bound: str = "") -> tuple[str, ...]:
    """Return the patterns of a user's sessions, through all ways in by default."""
    return tuple(f"^session:{user}@{service} {item} {bound}" for service in services or LOGINS)


def are_compatible(one: Fault, other: Fault) -> bool:
    """Tell whether making one leaves the other as it was made."""
    return not (
        set(one.touches) & {*other.touches, *other.uses}
        or set(other.touches) & {*one.touches, *one.uses}
    )


def merge_policies(*policies: Policy) -> Policy:
    """Return what all of them ask for: lists one after the other, mappings key by key."""
    merged: Policy = {}
    for policy in policies:
        for key, value in policy.items():
            below = merged.get(key)
            if isinstance(below, list) and isinstance(value, list):
                merged[key] = [*below, *value]
            elif isinstance(below, dict) and isinstance(value, dict):
                merged[key] = merge_policies(below, value)
            else:
                merged[key] = value
    return merged
